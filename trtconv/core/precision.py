"""Precisions, each described once: what `--precision` names, what ONNX and TensorRT call it, and what it rounds.

Adding one is adding its entry, and its name to the targets that have it (`precisions` in core/targets/tables).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from trtconv.core.errors import InvalidRequestError, UnsupportedError, did_you_mean

if TYPE_CHECKING:
    import numpy as np

    from trtconv.core.targets import Target

# How many roundings in a row an output may have gone through before it counts as wrong.
ROUNDINGS = 20
AUTO = "auto"


@dataclass(frozen=True)
class Precision:
    """One precision in which a network can compute.

    `dtype` is the element type of a tensor in it, by trtconv's name, and `onnx` its `TensorProto.DataType`.
    `significand` counts the bits of the significand with the hidden one. `largest`, `normal` and `least` are the
    largest finite, the smallest normal and the smallest value over zero; for int8 in steps of the scale.
    `carrier` says what carries it: `type` the element types of the graph, `flag` a setting of the builder,
    `qdq` QuantizeLinear and DequantizeLinear. `flag` is the builder flag of a weakly typed TensorRT, or empty.
    """

    name: str
    dtype: str
    onnx: int
    significand: int
    largest: float
    normal: float
    least: float
    carrier: Literal["type", "flag", "qdq"]
    flag: str

    @property
    def unit_roundoff(self) -> float:
        """The largest relative error of one rounding to nearest, 2^-significand; of int8 half a step of 127."""
        return 0.5 / self.largest if self.dtype == "int8" else 2.0**-self.significand

    @property
    def is_half(self) -> bool:
        """True for the 16-bit types that a graph carries."""
        return self.carrier == "type" and self.significand < FP32.significand

    @property
    def onnx_type(self) -> str:
        """The type as ONNX schemas write it, `tensor(float16)`."""
        names = {"float32": "float", "float8e4m3fn": "float8e4m3fn"}
        return f"tensor({names.get(self.dtype, self.dtype)})"

    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype; those that NumPy lacks come from ml_dtypes."""
        import numpy as np

        if self.dtype in ("bfloat16", "float8e4m3fn"):
            import ml_dtypes

            names = {"bfloat16": "bfloat16", "float8e4m3fn": "float8_e4m3fn"}
            dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, names[self.dtype]))
            return dtype
        return np.dtype(self.dtype)

    def is_in(self, target: Target) -> bool:
        """True where the target computes in it."""
        return self.name in target.facts.precisions


# IEEE 754-2019 binary32 and binary16; bfloat16 and TF32 have the exponent of binary32 (NVIDIA A100 whitepaper);
# E4M3FN as in "FP8 Formats for Deep Learning" (2022), without infinities.
FP32 = Precision("fp32", "float32", 1, 24, 3.4028234663852886e38, 2.0**-126, 2.0**-149, "type", "")
TF32 = Precision("tf32", "float32", 1, 11, 3.4011621342146535e38, 2.0**-126, 2.0**-136, "flag", "TF32")
FP16 = Precision("fp16", "float16", 10, 11, 65504.0, 2.0**-14, 2.0**-24, "type", "FP16")
BF16 = Precision("bf16", "bfloat16", 16, 8, 255 * 2.0**120, 2.0**-126, 2.0**-133, "type", "BF16")
FP8 = Precision("fp8", "float8e4m3fn", 17, 4, 448.0, 2.0**-6, 2.0**-9, "qdq", "FP8")
INT8 = Precision("int8", "int8", 3, 7, 127.0, 1.0, 1.0, "qdq", "INT8")
PRECISIONS: tuple[Precision, ...] = (FP32, TF32, FP16, BF16, FP8, INT8)
# Those whose element types a graph carries: what `--precision` names.
TYPED: tuple[Precision, ...] = tuple(p for p in PRECISIONS if p.carrier == "type")
TYPED_NAMES: tuple[str, ...] = tuple(p.name for p in TYPED)
HALVES: tuple[Precision, ...] = tuple(p for p in TYPED if p.is_half)
HALF_NAMES: tuple[str, ...] = tuple(p.name for p in HALVES)
# Those that Q/DQ pairs carry, whose scales come from the user's data.
QUANTISED: tuple[Precision, ...] = tuple(p for p in PRECISIONS if p.carrier == "qdq")
QUANTISED_NAMES: tuple[str, ...] = tuple(p.name for p in QUANTISED)
# What `--precision` names.
REQUESTED_NAMES: tuple[str, ...] = (*TYPED_NAMES, *sorted(QUANTISED_NAMES, reverse=True))
# The first compute capability with tensor cores for it (CUDA C++ Programming Guide, arithmetic instructions).
FIRST_CAPABILITY: Mapping[str, tuple[int, int]] = {"bf16": (8, 0), "fp8": (8, 9)}


def precision_named(name: str) -> Precision:
    """The precision called so. Raises InvalidRequestError for an unknown one."""
    for precision in PRECISIONS:
        if precision.name == name:
            return precision
    names = [p.name for p in PRECISIONS]
    raise InvalidRequestError(
        f"unknown precision '{name}'{did_you_mean(name, names)}", hint="one of " + ", ".join(names)
    )


def require_capabilities(precision: str, capabilities: Iterable[str]) -> None:
    """Raise UnsupportedError for a GPU (by compute capability, `7.5`) that has no kernels in the precision."""
    first = FIRST_CAPABILITY.get(precision)
    for text in capabilities if first is not None else ():
        numbers = tuple(int(n) if n.isdecimal() else 0 for n in text.split("."))
        if first is not None and numbers < first:
            raise UnsupportedError(
                f"compute capability {text} has no {precision}, which begins at {first[0]}.{first[1]}",
                hint="leave it out of --compute-capability, or choose another precision",
            )


def typed_as(number: int) -> Precision | None:
    """The precision whose element type has this ONNX number; None for types that are none of a graph's precisions."""
    return next((p for p in TYPED if p.onnx == number), None)
