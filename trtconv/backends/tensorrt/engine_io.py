"""What an engine takes and gives, read by the tensor API that every version from 8.6 on has."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trtconv.backends.protocol import EngineTensor, Profile, Shape
from trtconv.core.dtypes import DType, parse_dtype
from trtconv.core.errors import InvalidRequestError, UnsupportedError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# TensorRT's name of an element type -> NumPy's, where it has one.
NUMPY_NAMES = {
    "FLOAT": "float32",
    "HALF": "float16",
    "BF16": "bfloat16",
    "INT32": "int32",
    "INT64": "int64",
    "INT8": "int8",
    "UINT8": "uint8",
    "BOOL": "bool",
}


def engine_tensors(trt: Any, engine: Any) -> tuple[EngineTensor, ...]:
    """All inputs and outputs, in the engine's order."""
    return tuple(_tensor(trt, engine, engine.get_tensor_name(i)) for i in range(engine.num_io_tensors))


def _tensor(trt: Any, engine: Any, name: str) -> EngineTensor:
    return EngineTensor(
        name=name,
        dtype=_dtype(engine.get_tensor_dtype(name), name),
        shape=tuple(engine.get_tensor_shape(name)),
        is_input=engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT,
        host=engine.get_tensor_location(name) == trt.TensorLocation.HOST,
    )


def _dtype(dtype: Any, name: str) -> DType:
    if dtype.name not in NUMPY_NAMES:
        raise UnsupportedError(f"'{name}' has the element type {dtype.name}, which NumPy does not know")
    return parse_dtype(NUMPY_NAMES[dtype.name])


def numpy_type(dtype: Any, name: str) -> np.dtype[Any]:
    """NumPy's type for TensorRT's. Raises UnsupportedError where NumPy has none; `name` is for its words."""
    return _dtype(dtype, name).numpy()


def engine_profiles(engine: Any, tensors: tuple[EngineTensor, ...]) -> tuple[Profile, ...]:
    """The optimization profiles; inputs in host memory are left out, since their profile is about values."""
    inputs = [t for t in tensors if t.is_input and not t.host]
    return tuple(
        {t.name: _triple(engine, t, index) for t in inputs} for index in range(max(1, engine.num_optimization_profiles))
    )


def _triple(engine: Any, tensor: EngineTensor, index: int) -> tuple[Shape, Shape, Shape]:
    # A static input has no shapes in a profile, and 8.6 answers with dims of rank -1.
    if -1 not in tensor.shape:
        return tensor.shape, tensor.shape, tensor.shape
    shapes = engine.get_tensor_profile_shape(tensor.name, index)
    low, opt, high = (tuple(int(d) for d in shape) for shape in shapes)
    return low, opt, high


def choose_profile(profiles: tuple[Profile, ...], shapes: Mapping[str, Shape]) -> int:
    """The profile for these input shapes: one tuned for exactly them, else the one with the smallest maximum.

    Raises InvalidRequestError that says which dim of which input lies outside which range.
    """
    fits = [i for i, p in enumerate(profiles) if not _outside(p, shapes)]
    if not fits:
        reasons = [f"profile {i}: {_outside(p, shapes)}" for i, p in enumerate(profiles)]
        only = len(profiles) == 1
        raise InvalidRequestError(
            f"the engine does not take these shapes: {_outside(profiles[0], shapes)}"
            if only
            else "no profile of the engine holds these shapes",
            details=() if only else reasons,
            hint="build the engine with a range that has them: trtconv build --dynamic NAME=MIN:OPT:MAX",
        )

    def rank(index: int) -> tuple[bool, int, int]:
        profile = profiles[index]
        exact = all(profile[n][1] == s for n, s in shapes.items() if n in profile)
        return not exact, sum(math.prod(t[2]) for t in profile.values()), index

    return min(fits, key=rank)


def _outside(profile: Profile, shapes: Mapping[str, Shape]) -> str:
    for name, shape in shapes.items():
        if name not in profile:
            continue
        low, _, high = profile[name]
        if len(low) != len(shape):
            return f"'{name}' has {len(shape)} dims, the engine's has {len(low)}"
        for axis, (least, size, most) in enumerate(zip(low, shape, high, strict=True)):
            if not least <= size <= most:
                allowed = str(least) if least == most else f"{least} to {most}"
                return f"dim {axis} of '{name}' is {size}, it takes {allowed}"
    return ""


def require_inputs(values: Mapping[str, Any], inputs: tuple[EngineTensor, ...]) -> None:
    """Raise InvalidRequestError for an input that is missing."""
    for tensor in inputs:
        if tensor.name not in values:
            names = [t.name for t in inputs]
            odd = [n for n in values if n not in names]
            near = f"; what is '{odd[0]}'?" if odd else ""
            raise InvalidRequestError(
                f"the engine's input '{tensor.name}' is missing{near}", hint="its inputs are " + ", ".join(names)
            )


def shape_of(value: Any) -> Shape:
    """The shape of an array of any library, or of what NumPy can make one of."""
    import numpy as np

    shape = getattr(value, "shape", None)
    return tuple(int(d) for d in (np.shape(value) if shape is None else shape))


def as_input(value: Any, tensor: EngineTensor) -> Array:
    """The value as a C-contiguous array of the engine's element type.

    TensorRT 8.6 turns int64 inputs into int32 and every version turns float64 into float32; values that do not fit
    raise InvalidRequestError instead of being wrapped or clamped.
    """
    import numpy as np

    array = np.asarray(value)
    target_dtype = tensor.dtype.numpy()
    if array.dtype == target_dtype:
        return array if array.flags.c_contiguous else np.ascontiguousarray(array).reshape(array.shape)
    if tensor.dtype.kind == "int" and array.dtype.kind in "iu":
        bounds = np.iinfo(target_dtype)
        if array.size and (array.min() < bounds.min or array.max() > bounds.max):
            raise InvalidRequestError(
                f"input '{tensor.name}' holds values outside {tensor.dtype.name}, which the engine computes with",
                hint=f"keep them between {bounds.min} and {bounds.max}",
            )
    elif tensor.dtype.kind == "float" and array.dtype.name == "float64":
        pass
    else:
        raise InvalidRequestError(
            f"input '{tensor.name}' is {array.dtype.name}, the engine takes {tensor.dtype.name}",
            hint="convert it first; a change of kind would not be what the module was given",
        )
    return np.ascontiguousarray(array.astype(target_dtype)).reshape(array.shape)
