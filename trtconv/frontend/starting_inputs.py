"""The inputs and ranges that a first config has: an exported program says them; of a module, forward is run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.requests import ModuleSource
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec

if TYPE_CHECKING:
    from trtconv.export.signature.likely_inputs import LikelyInput


@dataclass(frozen=True)
class StartingInputs:
    """`ran`: forward ran with these inputs over these ranges. Else `problem` is what it said of those that came
    furthest, and `where` the user's line; the inputs are then no more than what names and layers make likely.
    `any_length` are lists of which forward reads as many tensors as there are.
    """

    inputs: tuple[LikelyInput, ...]
    ranges: dict[str, str] = field(default_factory=dict)
    ran: bool = True
    problem: str = ""
    where: str = ""
    any_length: tuple[str, ...] = ()

    @property
    def required(self) -> tuple[LikelyInput, ...]:
        """Those that forward does not run without."""
        return tuple(i for i in self.inputs if not i.optional)

    @property
    def options(self) -> str:
        """The options to type, with an example where nothing tells the dims of an input."""
        words = (
            f"--input '{i.name}:{i.dtype}[{','.join(map(str, i.dims if i.dims is not None else ('N', 10)))}]'"
            for i in self.required
        )
        return " ".join(words)


def starting_inputs(source: ModuleSource) -> StartingInputs:
    """Raises what loading the module or the program raises."""
    from trtconv.export.module.source import load_module, require_torch
    from trtconv.export.signature.likely_inputs import LikelyInput, likely_inputs
    from trtconv.export.signature.program_inputs import program_inputs

    if source.spec.endswith(".onnx"):
        return _file_inputs(source.base / source.spec)
    if source.spec.endswith(".pt2"):
        require_torch()
        specs, space = program_inputs(source.base / source.spec)
        inputs = tuple(LikelyInput(s.name, s.dtype.name, s.dims) for s in specs)
        return StartingInputs(inputs, {n: str(space[n]) for n in space})
    module = load_module(source)
    return _run_inputs(module, likely_inputs(module), source)


def _file_inputs(path: Path) -> StartingInputs:
    """Those of an ONNX file, with the sizes at which ONNX Runtime ran it."""
    from trtconv.core.model.file import load_model, signature
    from trtconv.export.signature.likely_inputs import LikelyInput
    from trtconv.foreign.interface import read_interface
    from trtconv.foreign.original import FileOriginal
    from trtconv.foreign.proposal import propose_ranges

    model = load_model(path)
    specs = read_interface(path, model).inputs
    recorded = signature(model).space
    proposal = propose_ranges(FileOriginal(path), specs, recorded)
    changed = {s.name: s for s in proposal.inputs}
    by_name = {s.name: changed.get(s.name, s) for s in specs}
    inputs = tuple(_with_spec(LikelyInput(name), by_name) for name in by_name)
    ranges = {n: str(r) for n, r in recorded.merged(proposal.space).dims}
    return StartingInputs(inputs, ranges, ran=not proposal.refusal, problem=proposal.refusal)


def _run_inputs(module: Any, likely: tuple[LikelyInput, ...], source: ModuleSource) -> StartingInputs:
    from trtconv.export.module.quiet import collected_noise
    from trtconv.export.module.runner import ModuleRunner
    from trtconv.export.signature.containers import open_parameters, search_parts
    from trtconv.foreign.proposal import propose_ranges

    required = [i for i in likely if not i.optional]
    if not required and not open_parameters(module):
        return StartingInputs(likely, ran=False, problem="forward takes no tensors")
    parts = search_parts(module, required, source.base)
    likely, search = (*parts.likely, *(i for i in likely if i.optional)), parts.search
    if search.inputs is None:
        return StartingInputs(likely, ran=False, problem=search.last.error, where=search.last.where)
    specs = search.inputs
    with collected_noise():
        proposal = propose_ranges(ModuleRunner(module, specs, source.base), specs, ShapeSpace())
    renamed = {s.name: s for s in proposal.inputs}
    by_name = _with_lengths([renamed.get(s.name, s) for s in specs], proposal.space)
    inputs = tuple(_with_spec(i, by_name) for i in likely)
    ranges = {n: str(r) for n, r in proposal.space.dims}
    return StartingInputs(
        inputs, ranges, ran=not proposal.refusal, problem=proposal.refusal, any_length=parts.any_length
    )


def _with_lengths(specs: Sequence[TensorSpec], space: ShapeSpace) -> dict[str, TensorSpec]:
    """The inputs by name; those that count something, such as frames, do so up to the least size in the space."""
    from trtconv.export.signature.forms import LENGTHS

    sizes = [r.min for n, r in space.dims if n != "N"]
    chosen = (1.0, float(min(sizes, default=int(LENGTHS[1]))))
    return {s.name: replace(s, value_range=chosen) if s.value_range == LENGTHS else s for s in specs}


def _with_spec(likely: LikelyInput, specs: dict[str, TensorSpec]) -> LikelyInput:
    spec = specs.get(likely.name)
    if spec is None:
        return likely
    values = None if spec.value_range is None else (int(spec.value_range[0]), int(spec.value_range[1]))
    return replace(likely, dtype=spec.dtype.name, dims=spec.dims, value_range=values)
