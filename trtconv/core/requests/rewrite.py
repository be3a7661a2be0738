"""What `trtconv rewrite` asks for."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from trtconv.core.option import option, paths_seen_from
from trtconv.core.precision import AUTO, FP32, HALF_NAMES, QUANTISED_NAMES, REQUESTED_NAMES
from trtconv.core.requests.export import (
    ALIGN_FLAG,
    ALIGN_HELP,
    PAD_FLAG,
    PAD_HELP,
    RANGE_METAVAR,
    parse_ranges,
)
from trtconv.core.shape_space.fixed_rows import MOST_DETECTIONS, SUPPRESSIONS
from trtconv.core.shape_space.padding import MODES
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.targets import Target, parse_target

# As many boxes as an output may have: TensorRT has tensors of at most 2^31 - 1 elements.
MOST_ROWS = 1 << 20
CALIBRATIONS = ("max", "percentile", "entropy", "mse")


@dataclass(frozen=True)
class RewriteRequest:
    """`trtconv rewrite`. `rule_files` are the user's own rules; `plugins` is `auto`, `never` or names with commas.

    `plugin_libraries` are those that will be loaded, which `auto` wants to know; nothing is loaded by a rewrite.

    `script` is `file.py:function`, which changes the graph before any rule looks at it.

    `data` is what int8 and fp8 are calibrated with; `rest` is the precision of what they leave alone. `quantise_only`
    names the layers to quantise (None takes all that gain by it). `fold_norms` brings the graph into the form that
    quantisation starts from, whatever the precision.

    `nms` says what becomes of outputs whose number of rows the values decide (`native`, `topk`, `auto`);
    `max_detections` is how many rows they have at a fixed size.

    `keep_fp32` names nodes that stay in FP32 when `precision` or `rest` is fp16 or bf16 (`trtconv check --find-fp32`
    finds them).
    `space` is laid over the ranges that the model records; `align` and `pad_to_multiple` as in ExportRequest.

    `rewritten` is what a rewrite of the same model for the same target wrote in its own precision: its rules and proofs
    are taken over, and only the precision is applied.
    """

    model: Path
    output: Path
    target: Target = field(
        metadata=option(
            "--target",
            help="tensorrt==8.6, tensorrt==10, tensorrt==11 or tensorrt-rtx.",
            group="Rewrite",
            example="--target tensorrt==10",
            metavar="TARGET",
            completes="target",
            key="rewrite.target",
            parse=parse_target,
            parse_config=lambda text, base: parse_target(text) if text else None,
        )
    )
    only: tuple[str, ...] = field(
        default=(),
        metadata=option(
            "--only",
            help="Apply only this rule (repeatable).",
            completes="rule",
            group="Rewrite",
            metavar="RULE",
            many=True,
            key="rewrite.only",
        ),
    )
    skip: tuple[str, ...] = field(
        default=(),
        metadata=option(
            "--skip",
            help="Leave this rule out (repeatable).",
            completes="rule",
            group="Rewrite",
            metavar="RULE",
            many=True,
            key="rewrite.skip",
        ),
    )
    also: tuple[str, ...] = field(
        default=(),
        metadata=option(
            "--also",
            help="Apply this rule too, although the target does not need it (repeatable).",
            completes="rule",
            group="Rewrite",
            metavar="RULE",
            many=True,
            key="rewrite.also",
        ),
    )
    proof: bool = field(
        default=True,
        metadata=option(
            "--no-proof",
            help="Skip the numeric proof of each rewrite.",
            group="Rewrite",
            form="flag",
            key="rewrite.proof",
            parse=lambda skipped: not skipped,
        ),
    )
    rule_files: tuple[Path, ...] = field(
        default=(),
        metadata=option(
            "--rules",
            help="A Python file with rules of your own.",
            group="Rewrite",
            form="path",
            many=True,
            key="rewrite.rules",
            parse_config=paths_seen_from,
        ),
    )
    script: str = field(
        default="",
        metadata=option(
            "--script",
            help="A graph-surgeon script to run first, and prove.",
            group="Rewrite",
            example="--script surgery.py:simplify",
            metavar="FILE:FUNCTION",
            key="rewrite.script",
            parse_config=lambda text, base: str(base / text) if text else "",
        ),
    )
    nms: str = field(
        default="native",
        metadata=option(
            "--nms",
            help="Detections: native keeps their number as it is, topk fixes it and adds a count, auto: topk for "
            "suppressions and where the target needs it (default native).",
            group="Rewrite",
            form="choice",
            choices=SUPPRESSIONS,
            key="rewrite.nms",
        ),
    )
    max_detections: int = field(
        default=MOST_DETECTIONS,
        metadata=option(
            "--max-detections",
            help=f"With --nms topk: the rows of an output (default {MOST_DETECTIONS}).",
            group="Rewrite",
            form="integer",
            bounds=(1, MOST_ROWS),
            key="rewrite.max_detections",
        ),
    )
    plugins: str = field(
        default="never",
        metadata=option(
            "--plugins",
            help="Use plugin nodes where they pay (default never).",
            group="Rewrite",
            metavar="auto|never|NAME,...",
            key="rewrite.plugins",
        ),
    )
    plugin_libraries: tuple[Path, ...] = field(
        default=(),
        metadata=option(
            "--plugin",
            help="A library that build will load, for --plugins auto; rewrite loads nothing.",
            group="Rewrite",
            form="path",
            many=True,
            key="build.plugins",
            parse_config=paths_seen_from,
        ),
    )
    precision: str = field(
        default=AUTO,
        metadata=option(
            "--precision",
            help="Element type (default: as the graph is).",
            group="Rewrite",
            form="choice",
            choices=(AUTO, *REQUESTED_NAMES),
            key="build.precision",
        ),
    )
    data: str = field(
        default="",
        metadata=option(
            "--data",
            help="With int8 or fp8: what calibrates it.",
            group="Rewrite",
            metavar="FOLDER|FILE|FILE.py:FUNCTION",
            key="contract.data",
            parse_config=lambda text, base: str(base / text) if text else "",
        ),
    )
    preprocess: str = field(
        default="",
        metadata=option(
            "--preprocess",
            help="How images of --data become inputs.",
            group="Rewrite",
            metavar="size=224,mean=...,std=...,layout=NCHW",
            key="contract.preprocess",
        ),
    )
    calibration: str = field(
        default="max",
        metadata=option(
            "--calibration",
            help="How ranges are taken from the data (default max).",
            group="Rewrite",
            form="choice",
            choices=CALIBRATIONS,
            key="contract.calibration",
        ),
    )
    rest: str = field(
        default=FP32.name,
        metadata=option(
            "--rest",
            help="With int8 or fp8: the precision of everything else (default fp32).",
            group="Rewrite",
            form="choice",
            choices=(FP32.name, *HALF_NAMES),
        ),
    )
    keep_fp32: tuple[str, ...] = field(
        default=(),
        metadata=option(
            "--keep-fp32",
            help="With a half precision: this node stays FP32.",
            group="Rewrite",
            metavar="NODE",
            many=True,
            key="rewrite.keep_fp32",
        ),
    )
    space: ShapeSpace = field(
        default_factory=ShapeSpace,
        metadata=option(
            "--dynamic",
            help="Ranges of the dims.",
            completes="range",
            group="Shapes",
            example="--dynamic N=1:4:16 H=320:640:1280%32",
            metavar=RANGE_METAVAR,
            many=True,
            parse=parse_ranges,
        ),
    )
    align: bool = field(default=False, metadata=option(ALIGN_FLAG, help=ALIGN_HELP, group="Shapes", form="flag"))
    pad_to_multiple: str = field(
        default="",
        metadata=option(PAD_FLAG, help=PAD_HELP, group="Shapes", form="choice", choices=MODES, metavar="[MODE]"),
    )
    quantise_only: tuple[str, ...] | None = None
    fold_norms: bool = False
    rewritten: Path | None = None

    @property
    def quantised(self) -> bool:
        """True where Q/DQ pairs are asked for."""
        return self.precision in QUANTISED_NAMES


FORMS_BY_PRECISION = frozenset({"TrtconvChannelGate"})
"""Plugins with one rule for FP32 and another for half precision."""


def precision_decides_rules(precision: str, plugins: str, target: Target) -> bool:
    """True where other rules fire for this precision than for FP32.

    INT8 and FP8 fold batch norms first; `--plugins auto` judges a plugin by its measurements in the precision; and a
    few plugins take another part of the graph in FP32.
    """
    words = {word.strip() for word in plugins.split(",")}
    other_part = bool(words & FORMS_BY_PRECISION) and precision not in (AUTO, FP32.name)
    return precision in QUANTISED_NAMES or (target.has_plugins and (AUTO in words or other_part))
