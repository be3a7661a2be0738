"""Which operators stay in FP32 and why, and through which ones an FP32 island grows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trtconv.core.model.drawing import DRAWING
from trtconv.core.precision import BF16


@dataclass(frozen=True)
class Reason:
    """Why a node stays in FP32.

    `kind` is one of `asked`, `range` (sums, squares, exponentials), `coordinates`, `decisions`, `epsilon`, `overflow`,
    `integers`, `quantized`, `loop`, `schema`, `target`, `custom`, `random`, `user cast`.
    """

    kind: str
    text: str


_RANGE = {
    "sums leave the range of half precision": (
        "ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", "GlobalAveragePool", "CumSum", "CumProd", "DFT", "STFT",
        "MelWeightMatrix", "HannWindow", "HammingWindow", "BlackmanWindow",
    ),
    "sums of squares leave the range of half precision": (
        "ReduceL2", "ReduceSumSquare", "LpNormalization", "LpPool", "GlobalLpPool", "MeanVarianceNormalization", "LRN",
    ),
    "exponentials and powers leave the range of half precision": (
        "Exp", "Pow", "Log", "ReduceLogSum", "ReduceLogSumExp", "Softplus", "Sinh", "Cosh", "Det",
    ),
}  # fmt: skip
_OTHERS = {
    "coordinates": (
        "positions, angles and ranks need more than half precision's bits",
        ("Range", "TopK", "NonMaxSuppression", "RoiAlign", "MaxRoiPool", "GridSample", "AffineGrid", "DeformConv",
         "Sin", "Cos", "Tan", "Upsample"),
    ),
    "decisions": ("a jump hangs on the last bits of its input", ("Ceil", "Floor", "Mod", "Round")),
    "quantized": (
        "quantization is left as it is", ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear")
    ),
    "random": ("random numbers are drawn as before", DRAWING),
    "schema": (
        "its element type is part of the operator, as in sequences",
        ("EyeLike", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert",
         "SequenceMap", "SplitToSequence", "ConcatFromSequence", "Optional", "OptionalGetElement"),
    ),
    "loop": ("state is carried from one iteration to the next in FP32", ("Loop", "Scan")),
}  # fmt: skip

REASONS: Mapping[str, Reason] = {
    **{op: Reason("range", text) for text, ops in _RANGE.items() for op in ops},
    **{op: Reason(kind, text) for kind, (text, ops) in _OTHERS.items() for op in ops},
}
# Not a matter of accuracy: these keep their type whatever the caller blocks.
ALWAYS = frozenset(op for op, r in REASONS.items() if r.kind in ("quantized", "random", "schema", "loop"))
# Operators that the parser or the builder refuses in a type, whatever ONNX allows: each was tried on TensorRT-RTX 1.7
# (parse and build of one node), where every other operator that ONNX allows in FP16 and BF16 was built.
LACKING: Mapping[str, frozenset[str]] = {BF16.name: frozenset({"ConvTranspose", "GRU", "HardSwish", "Mish"})}
BLOCK_OPS = frozenset(REASONS) - ALWAYS
"""The operators that stay in FP32 unless the caller names others."""

ARITHMETIC = frozenset({
    "Abs", "Add", "Ceil", "Clip", "Div", "Exp", "Floor", "Log", "Max", "Mean", "Min", "Mod", "Mul", "Neg", "Pow",
    "Reciprocal", "Round", "Sign", "Sqrt", "Sub", "Sum", "Where",
})  # fmt: skip
RESHAPES = frozenset({"Cast", "Expand", "Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
VIEWS = RESHAPES | {
    "Concat",
    "Gather",
    "GatherElements",
    "GatherND",
    "Pad",
    "ScatterElements",
    "ScatterND",
    "Slice",
    "Split",
    "Tile",
    "Trilu",
}
# Values made of integers, shapes and constants alone stay exact through these.
EXACT = ARITHMETIC | VIEWS | {
    "ConstantOfShape", "CumSum", "Range", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "EyeLike", "Cos", "Sin",
}  # fmt: skip
GATHERS = frozenset({"Gather", "GatherElements", "GatherND"})
# What is computed only to be summed or exponentiated joins the sum: products of halves overflow at 256 * 256.
FEEDS_SUM = frozenset({"Abs", "Div", "Mul", "Neg", "Pow", "Sub"})
FEEDS_COORDINATES = ARITHMETIC | VIEWS | {"Sigmoid", "Tanh", "ConstantOfShape"}
CONTRACTIONS = frozenset({"Einsum", "Gemm", "MatMul"})
# What TensorRT fuses between a quantized operator and the QuantizeLinear after it.
FEEDS_QUANTIZE = RESHAPES | {
    "Add", "AveragePool", "BatchNormalization", "Clip", "Concat", "GlobalAveragePool", "HardSigmoid", "HardSwish",
    "LeakyRelu", "MaxPool", "Mul", "PRelu", "Relu", "Sigmoid",
}  # fmt: skip
COMPARISONS = frozenset({"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"})
# A finite constant beyond the range stands for an infinity here, so that clamping it keeps the meaning.
BOUNDS = COMPARISONS | {"Where", "Max", "Min", "Clip", "Pad"}
# A constant that is almost zero guards a division or a logarithm here.
GUARDS = ARITHMETIC | COMPARISONS | RESHAPES
# Which of two near values is the larger is not to be decided by the rounding of a last sum.
PICKS = frozenset({"ArgMax", "ArgMin"})
# These read a value of any type and give integers or truth values.
ANY_TYPE = PICKS | {"Shape", "Size", "NonZero", "IsNaN"}
