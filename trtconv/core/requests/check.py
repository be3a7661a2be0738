"""What `trtconv check` asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from trtconv.core.option import option
from trtconv.core.requests.export import INPUT_METAVAR, RANGE_METAVAR, parse_ranges, parse_tensors
from trtconv.core.requests.module_source import ModuleSource
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.core.tolerance import Tolerance
from trtconv.core.trust.trust import NO_CODE, EngineCode, named_code

POWER_FLAG, BARE_POWER = "--power", 60


ALLOW_CODE = option(
    "--allow-code",
    help="Let this code in an engine run: of the host (version compatible), or plugins' kernels.",
    group="Trust",
    example="--allow-code host",
    form="choice",
    choices=("host", "plugins"),
    many=True,
    parse=named_code,
)


@dataclass(frozen=True)
class CheckRequest:
    """`trtconv check`. `reference` None looks beside the subject; `against` runs a module instead of reading a file.

    `allow_unrunnable`: an engine that this machine cannot run is a note and not an error. `foreign`: an engine that
    trtconv did not build is taken without a manifest. `code` is what in an engine may run. `source_check`: sources that
    changed since the export are an error; `sources_known`: the caller has just read them, and nothing is said of them.
    `space` and `inputs` are laid over what the subject, or a foreign file that it is compared with, says of its inputs.
    `power` is the number of faults to try (0: none), within about `power_seconds`.
    """

    subject: Path
    reference: Path | None = field(
        default=None,
        metadata=option(
            "--reference",
            help="Reference file (default: the one beside SUBJECT).",
            group="Check",
            form="path",
        ),
    )
    against: ModuleSource | None = None
    tolerance: Tolerance | None = None
    outputs: tuple[tuple[str, Tolerance], ...] = ()
    plugins: tuple[Path, ...] = field(
        default=(),
        metadata=option(
            "--plugin",
            help="A plugin library that the engine needs.",
            group="Check",
            form="path",
            many=True,
        ),
    )
    allow_unrunnable: bool = False
    foreign: bool = field(
        default=False,
        metadata=option(
            "--foreign-engine",
            help="Take an engine that trtconv did not build: it has no manifest.",
            group="Trust",
            form="flag",
        ),
    )
    code: EngineCode = field(
        default=NO_CODE,
        metadata=ALLOW_CODE,
    )
    source_check: bool = field(
        default=True,
        metadata=option(
            "--no-source-check",
            help="Take an artifact that was moved away from its sources.",
            group="Trust",
            form="flag",
            parse=lambda skipped: not skipped,
        ),
    )
    power: int = field(
        default=0,
        metadata=option(
            POWER_FLAG,
            help=f"Put N small faults (bare: {BARE_POWER}) into the graph; count those that are reported.",
            group="Check",
            form="integer",
            bounds=(0, 100_000),
            metavar="[N]",
            key="check.power",
        ),
    )
    sources_known: bool = False
    power_seconds: float = float("inf")
    space: ShapeSpace = field(
        default_factory=ShapeSpace,
        metadata=option(
            "--dynamic",
            help="Ranges of the dims, where SUBJECT does not record them.",
            completes="range",
            group="Shapes",
            example="--dynamic N=1:4:16 H=320:640:1280%32",
            metavar=RANGE_METAVAR,
            many=True,
            parse=parse_ranges,
        ),
    )
    inputs: tuple[TensorSpec, ...] = field(
        default=(),
        metadata=option(
            "--input",
            help="Names dims, and gives value ranges, of the inputs of a foreign ONNX file.",
            completes="input",
            group="Shapes",
            example="--input images:float32[N,3,H,W]",
            metavar=INPUT_METAVAR,
            many=True,
            parse=parse_tensors,
        ),
    )
