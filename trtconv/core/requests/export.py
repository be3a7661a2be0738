"""What `trtconv export` asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trtconv.core.dtypes import parse_dtype
from trtconv.core.errors import InvalidRequestError
from trtconv.core.option import comma_list, option
from trtconv.core.requests.module_source import ModuleSource
from trtconv.core.shape_space.padding import MODES
from trtconv.core.shape_space.space import ShapeSpace, parse_range, parse_space
from trtconv.core.tensors import TensorSpec, parse_dims, parse_tensor
from trtconv.core.tolerance import Tolerance

ALIGN_FLAG, PAD_FLAG = "--align", "--pad-to-multiple"
ALIGN_HELP = "Narrow ranges to the multiples at which all is defined."
PAD_HELP = "Pad inputs to such multiples and cut outputs back. MODE: auto, reflect, edge, zero."
RANGE_METAVAR = "NAME=MIN:OPT:MAX[%MULTIPLE]"
INPUT_METAVAR = "[PARAMETER=]NAME:DTYPE[D0,...]"


def parse_tensors(texts: tuple[str, ...]) -> tuple[TensorSpec, ...]:
    """The inputs of the command line. Raises InvalidRequestError for one that is named twice."""
    return _without_twins(tuple(parse_tensor(t) for t in texts))


def parse_ranges(texts: tuple[str, ...]) -> ShapeSpace:
    """The ranges of the command line; the empty text of a bare `--dynamic` names none."""
    return parse_space(t for t in texts if t)


def _config_tensors(sections: Any, base: Path) -> tuple[TensorSpec, ...]:
    return _without_twins(tuple(_of_section(s) for s in sections))


def _of_section(section: Any) -> TensorSpec:
    name, parameter = (section.rename, section.name) if section.rename else (section.name, "")
    dims = parse_dims(",".join(map(str, section.dims)), name)
    return TensorSpec(name, parse_dtype(section.dtype), dims, section.range, parameter)


def _without_twins(specs: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
    names = [s.name for s in specs]
    twin = next((n for n in names if names.count(n) > 1), None)
    if twin is not None:
        raise InvalidRequestError(f"the input '{twin}' is given twice", hint="keep one of them")
    return specs


def merge_tensors(
    config: tuple[TensorSpec, ...] | None, overrides: tuple[TensorSpec, ...] | None
) -> tuple[TensorSpec, ...]:
    """Inputs of the command line laid over those of the config, in the config's order; further ones follow."""
    chosen = {s.name: s for s in config or ()} | {s.name: s for s in overrides or ()}
    return tuple(chosen.values())


def config_ranges(ranges: Any, base: Path) -> ShapeSpace:
    """`[dynamic]` of a config."""
    return ShapeSpace(tuple((n, parse_range(str(r), n)) for n, r in ranges.items()))


def merge_ranges(config: ShapeSpace | None, overrides: ShapeSpace | None) -> ShapeSpace:
    """Ranges of the command line laid over those of the config."""
    return (config or ShapeSpace()).merged(overrides or ShapeSpace())


@dataclass(frozen=True)
class ExportRequest:
    """`trtconv export`. `exporter` is `auto`, `dynamo` or `torchscript`; `opset` None takes the exporter's best.

    `align` narrows the space to sizes at which the module is defined; `pad_to_multiple` is a mode (`auto`, `reflect`,
    `edge`, `zero`) in which inputs are padded to such sizes, or empty. `config` is the file that the request came from;
    its digest is recorded, nothing is read from it.
    """

    source: ModuleSource
    inputs: tuple[TensorSpec, ...] = field(
        metadata=option(
            "--input",
            help="An input; dims: integers, names, or P+S.",
            completes="input",
            group="Shapes",
            example="--input images:float32[N,3,H,W]",
            metavar=INPUT_METAVAR,
            many=True,
            key="input",
            parse=parse_tensors,
            parse_config=_config_tensors,
            merge=merge_tensors,
        )
    )
    space: ShapeSpace = field(
        metadata=option(
            "--dynamic",
            help="The range of a named dim.",
            completes="range",
            group="Shapes",
            example="--dynamic N=1:4:16 H=320:640:1280%32",
            metavar=RANGE_METAVAR,
            many=True,
            key="dynamic",
            parse=parse_ranges,
            parse_config=config_ranges,
            merge=merge_ranges,
        )
    )
    output: Path
    exporter: str = field(
        default="auto",
        metadata=option(
            "--exporter",
            help="Default auto: by evidence.",
            group="Model",
            form="choice",
            choices=("auto", "dynamo", "torchscript"),
            key="export.exporter",
        ),
    )
    opset: int | None = field(
        default=None,
        metadata=option(
            "--opset",
            help="ONNX opset (default: the exporter's best).",
            group="Model",
            form="integer",
            bounds=(1, 1000),
            key="export.opset",
        ),
    )
    tolerance: Tolerance | None = None
    align: bool = field(
        default=False,
        metadata=option(ALIGN_FLAG, help=ALIGN_HELP, group="Shapes", form="flag", key="export.align", unless=PAD_FLAG),
    )
    pad_to_multiple: str = field(
        default="",
        metadata=option(
            PAD_FLAG,
            help=PAD_HELP,
            group="Shapes",
            form="choice",
            choices=MODES,
            metavar="[MODE]",
            key="export.pad_to_multiple",
            unless=ALIGN_FLAG,
        ),
    )
    output_names: tuple[str, ...] = field(
        default=(),
        metadata=option(
            "--output-names",
            help="Names for the outputs, in the order in which the module returns them.",
            group="Model",
            metavar="NAME,...",
            key="export.output_names",
            parse=comma_list("--output-names", "scores,boxes"),
        ),
    )
    config: Path | None = None
