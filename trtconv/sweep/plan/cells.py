"""The matrix: models x shape spaces x targets x precisions x GPU kinds, with what is included and excluded."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.core.precision import precision_named
from trtconv.core.targets import parse_target
from trtconv.sweep.plan.registry import read_registry
from trtconv.sweep.plan.sections import CellPattern, SweepContractSection, SweepFile, SweepModelSection

NO_GPU = "none"
# The shape space that the model's own file names.
OWN_SPACE = "own"
AXES = ("model", "space", "target", "precision", "gpu")


@dataclass(frozen=True)
class Model:
    """A model of a sweep. Paths are absolute; `config` is a trtconv.toml, or None where `spec` names the model."""

    name: str
    config: Path | None
    spec: str
    inputs: tuple[str, ...] = ()
    weights: Path | None = None
    options: tuple[str, ...] = ()
    # Its own shape space, as `--dynamic` takes it.
    dynamic: str = ""
    # Added to the environment of its export.
    variables: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Cell:
    """One engine that is asked for. `space` is a text like "N=1:4:16", or `own`; `gpu` a kind, or `none`.

    `precision` is one that the graph is typed in, or the name of a contract.
    """

    model: str
    space: str
    target: str
    precision: str
    gpu: str

    @property
    def id(self) -> str:
        """`hrnet/own/tensorrt-rtx/fp16/none`."""
        return "/".join(getattr(self, axis) for axis in AXES)


@dataclass(frozen=True)
class Matrix:
    """The cells in order, their models by name, and a sentence for each group of cells that cannot be."""

    models: dict[str, Model]
    cells: tuple[Cell, ...]
    notes: tuple[str, ...] = ()


def make_matrix(sweep: SweepFile, base: Path) -> Matrix:
    """The cells of a sweep whose relative paths are seen from `base`.

    Cells whose target has not their precision are left out with a note. Raises InvalidRequestError for a model that is
    not there, two models of one name, and an include or exclude that names no model of the sweep.
    """
    sections = [named for section in sweep.model for named in expand_model(section, base)]
    models: dict[str, Model] = {}
    cells: dict[Cell, None] = {}
    for model, section in sections:
        if model.name in models:
            raise InvalidRequestError(f"two models are called '{model.name}'", hint="give one of them another name")
        models[model.name] = model
        axes = sweep.sweep
        cells |= dict.fromkeys(
            Cell(model.name, *rest)
            for rest in itertools.product(
                section.spaces or axes.spaces or [OWN_SPACE],
                section.targets or axes.targets,
                section.precisions or axes.precisions,
                section.gpus or axes.gpus,
            )
        )
    for pattern in sweep.exclude:
        _require_match(pattern, models)
        cells = {c: None for c in cells if not matches(pattern, c)}
    for include in sweep.include:
        if include.model not in models:
            raise InvalidRequestError(f"include names no model '{include.model}'{did_you_mean(include.model, models)}")
        cells[Cell(include.model, include.space or OWN_SPACE, include.target, include.precision, include.gpu)] = None
    return _possible(models, cells, sweep.contracts)


def expand_model(section: SweepModelSection, base: Path) -> list[tuple[Model, SweepModelSection]]:
    """The models of a section: one for each config that its pattern finds, or for each chosen name of its registry."""
    if section.registry:
        return [named for entry in read_registry(section, base) for named in expand_model(entry, base)]
    weights = base / section.weights if section.weights else None
    common = Model(
        section.name,
        None,
        "",
        tuple(section.inputs),
        weights,
        tuple(section.options),
        section.dynamic,
        tuple(sorted(section.variables.items())),
    )
    if section.module:
        head, _, factory = section.module.rpartition(":")
        file = head if head.endswith(".py") else "" if factory != section.module else section.module
        spec = section.module
        if file:
            if not (base / file).is_file():
                raise InvalidRequestError(f"there is no model file '{base / file}'", hint=f"it is seen from '{base}'")
            spec = str((base / file).absolute()) + (f":{factory}" if head else "")
        name = section.name or (factory if head else Path(spec).stem)
        return [(replace(common, name=name, spec=spec), section)]
    paths = sorted(base.glob(section.config)) if not Path(section.config).is_absolute() else [Path(section.config)]
    if not paths or not all(p.is_file() for p in paths):
        raise InvalidRequestError(f"no config matches '{section.config}'", hint=f"it is seen from '{base}'")
    if section.name and len(paths) > 1:
        raise InvalidRequestError(
            f"the name '{section.name}' would stand for {len(paths)} models", hint="leave 'name' out with a pattern"
        )
    return [(replace(common, name=section.name or _name_of(p), config=p.absolute()), section) for p in paths]


def _name_of(config: Path) -> str:
    """The name of a config's file, or of its folder where all configs are called trtconv.toml."""
    return config.parent.name if config.stem == "trtconv" else config.stem


def matches(pattern: CellPattern, cell: Cell) -> bool:
    """True when all parts of the cell match."""
    return all(fnmatchcase(getattr(cell, axis), getattr(pattern, axis)) for axis in AXES)


def select_cells(cells: Sequence[Cell], patterns: Iterable[str]) -> tuple[Cell, ...]:
    """The cells that `--only` names: `AXIS=PATTERN` (several with commas between), or a pattern of the whole id.

    Raises InvalidRequestError for a pattern that matches nothing.
    """
    chosen: dict[Cell, None] = {}
    for text in patterns:
        tests = [_test_of(word) for word in text.split(",")]
        hits = [c for c in cells if all(test(c) for test in tests)]
        if not hits:
            raise InvalidRequestError(f"--only '{text}' matches no cell", hint="trtconv sweep FILE --plan lists them")
        chosen |= dict.fromkeys(hits)
    return tuple(c for c in cells if c in chosen) if chosen else tuple(cells)


def _test_of(word: str) -> Callable[[Cell], bool]:
    axis, equals, pattern = word.partition("=")
    if equals and axis in AXES:
        return lambda cell: fnmatchcase(getattr(cell, axis), pattern)
    return lambda cell: fnmatchcase(cell.id, word) or fnmatchcase(cell.id, f"{word}/*")


def _require_match(pattern: CellPattern, models: dict[str, Model]) -> None:
    if not any(fnmatchcase(name, pattern.model) for name in models):
        raise InvalidRequestError(f"exclude names no model '{pattern.model}'{did_you_mean(pattern.model, models)}")


def searched_precisions(contract: SweepContractSection, target: str) -> tuple[str, ...]:
    """Those of a contract that a target computes in; its own where it names none."""
    return tuple(n for n in contract.precisions if precision_named(n).is_in(parse_target(target)))


def _possible(models: dict[str, Model], cells: Iterable[Cell], contracts: Mapping[str, SweepContractSection]) -> Matrix:
    """Without the cells whose target does not compute in their precision, or in any of their contract's."""
    chosen, dropped = [], dict[str, int]()
    for cell in cells:
        contract = contracts.get(cell.precision)
        if (
            precision_named(cell.precision).is_in(parse_target(cell.target))
            if contract is None
            else not contract.precisions or searched_precisions(contract, cell.target)
        ):
            chosen.append(cell)
        else:
            text = f"{cell.target} does not compute in {cell.precision}"
            dropped[text] = dropped.get(text, 0) + 1
    if not chosen:
        raise InvalidRequestError("the sweep has no cells", hint="look at its excludes and precisions")
    notes = tuple(f"{text}: {count} cell{'s' * (count != 1)} left out" for text, count in dropped.items())
    return Matrix({c.model: models[c.model] for c in chosen}, tuple(chosen), notes)
