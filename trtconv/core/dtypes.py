"""Element types by one name each, and what they are called in NumPy, ONNX and torch.

ONNX numbers are `onnx.TensorProto.DataType` (onnx.proto3); they are fixed by the format, so they can be written
here without importing onnx.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import InvalidRequestError, did_you_mean

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class DType:
    """One element type: its trtconv name, size in bytes, ONNX number, and kind (`float`, `int`, `bool`)."""

    name: str
    size: int
    onnx: int
    kind: str

    @property
    def is_float(self) -> bool:
        """True for float16, bfloat16, float32 and float64."""
        return self.kind == "float"

    def limits(self) -> tuple[float, float]:
        """The smallest and largest value; for 64-bit integers, those that a float64 holds without rounding."""
        if self.kind == "bool":
            return 0.0, 1.0
        if self.kind == "int":
            top = 2.0 ** min(8 * self.size - (self.name[0] != "u"), 53)
            return (0.0 if self.name[0] == "u" else -top), top - 1.0
        # A float64 range of 1.8e308 to either side would be too wide to be sampled.
        top = {"float16": 65504.0, "bfloat16": 3.38e38, "float32": 3.4e38}.get(self.name, 8e307)
        return -top, top

    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype; bfloat16 comes from ml_dtypes."""
        import numpy as np

        if self.name == "bfloat16":
            import ml_dtypes

            bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
            return bfloat16
        return np.dtype(self.name)


DTYPES: tuple[DType, ...] = (
    DType("float32", 4, 1, "float"),
    DType("uint8", 1, 2, "int"),
    DType("int8", 1, 3, "int"),
    DType("uint16", 2, 4, "int"),
    DType("int16", 2, 5, "int"),
    DType("int32", 4, 6, "int"),
    DType("int64", 8, 7, "int"),
    DType("bool", 1, 9, "bool"),
    DType("float16", 2, 10, "float"),
    DType("float64", 8, 11, "float"),
    DType("uint32", 4, 12, "int"),
    DType("uint64", 8, 13, "int"),
    DType("bfloat16", 2, 16, "float"),
)

_ALIASES = {
    "float": "float32",
    "fp32": "float32",
    "half": "float16",
    "fp16": "float16",
    "bf16": "bfloat16",
    "double": "float64",
    "fp64": "float64",
    "long": "int64",
    "int": "int32",
}


def parse_dtype(text: str) -> DType:
    """Return the dtype called `text` (`float32`, `fp16`, `int64`, ...). Raises InvalidRequestError for others."""
    name = _ALIASES.get(text, text)
    for dtype in DTYPES:
        if dtype.name == name:
            return dtype
    dtype_names = [d.name for d in DTYPES]
    raise InvalidRequestError(
        f"unknown dtype '{text}'{did_you_mean(text, dtype_names)}", hint="one of " + ", ".join(dtype_names)
    )


def dtype_from_onnx(number: int) -> DType:
    """The dtype with the ONNX `TensorProto.DataType` number. Raises InvalidRequestError for strings and others."""
    for dtype in DTYPES:
        if dtype.onnx == number:
            return dtype
    name = {8: "string", 14: "complex64", 15: "complex128"}.get(number, f"number {number}")
    raise InvalidRequestError(
        f"a tensor has the ONNX element type {name}, which no engine has",
        hint="cut that part off: look up labels and texts outside of the engine, give complex numbers as two floats",
    )


def dtype_from_numpy(dtype: np.dtype[np.generic]) -> DType:
    """Return the dtype of a NumPy array's elements."""
    return parse_dtype(dtype.name)
