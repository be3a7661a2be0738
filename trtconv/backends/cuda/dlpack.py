"""DLPack by ctypes: device memory to and from torch, CuPy, JAX without copying and without importing any of them.

Layouts are those of dlpack.h version 0.8, the unversioned `dltensor` capsule that every library still reads.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from typing import Any

from trtconv.core.dtypes import DType, parse_dtype
from trtconv.core.errors import InvalidRequestError

CUDA = 2
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4, "bool": 6}


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))


_api = ctypes.pythonapi
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", _api))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
# In a capsule's destructor its count is zero already, so that it must not become a Python object again.
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_raw_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_NAME = b"dltensor"


@dataclass
class Imported:
    """A tensor of another library: where it is, and the capsule that keeps it alive."""

    pointer: int
    shape: tuple[int, ...]
    dtype: DType
    device: int
    owner: Any

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * self.dtype.size


def import_cuda(source: Any, stream: int) -> Imported | None:
    """Read a CUDA tensor that has `__dlpack__`; its producer makes `stream` wait for it. None for other objects.

    Raises InvalidRequestError for one that is not C-contiguous: the engine reads memory as it lies.
    """
    if not hasattr(source, "__dlpack__") or int(source.__dlpack_device__()[0]) != CUDA:
        return None
    capsule = source.__dlpack__(stream=stream)
    managed = ctypes.cast(_pointer(capsule, _NAME), ctypes.POINTER(_Managed)).contents
    tensor = managed.tensor
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides and not is_contiguous(shape, [tensor.strides[i] for i in range(tensor.ndim)]):
        raise InvalidRequestError("a CUDA tensor is not contiguous", hint="pass tensor.contiguous()")
    # The capsule is not marked as used, so its own destructor frees the producer's tensor with the last reference.
    return Imported(int(tensor.data or 0) + tensor.byte_offset, shape, _dtype(tensor), tensor.device_id, capsule)


def is_contiguous(shape: tuple[int, ...], strides: list[int]) -> bool:
    """True when strides, in elements, are those of a C-ordered array."""
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size not in (0, 1) and stride != step:
            return False
        step *= size
    return True


def _dtype(tensor: _Tensor) -> DType:
    kind = next((k for k, c in _CODES.items() if c == tensor.code), "")
    name = "bool" if kind == "bool" else f"{kind}{tensor.bits}"
    return parse_dtype(name)


def export_cuda(pointer: int, shape: tuple[int, ...], dtype: DType, device: int, owner: Any) -> Any:
    """A `dltensor` capsule over device memory; `owner` is kept until the consumer deletes its tensor."""
    dims = (ctypes.c_int64 * max(len(shape), 1))(*shape)
    kind = "uint" if dtype.name.startswith("uint") else "bfloat" if dtype.name == "bfloat16" else dtype.kind
    managed = _Managed()
    managed.tensor = _Tensor(
        data=pointer,
        device_type=CUDA,
        device_id=device,
        ndim=len(shape),
        code=_CODES[kind],
        bits=dtype.size * 8,
        lanes=1,
        shape=dims,
        strides=None,
        byte_offset=0,
    )
    box = _Box(managed, dims, owner)
    managed.deleter = _release
    managed.context = id(box)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(box))
    return _new(ctypes.addressof(managed), _NAME, ctypes.cast(_destructor, ctypes.c_void_p))


class _Box:
    """Everything that has to live as long as an exported tensor."""

    def __init__(self, managed: _Managed, dims: Any, owner: Any) -> None:
        self.managed, self.dims, self.owner = managed, dims, owner


@_Deleter  # type: ignore[untyped-decorator]
def _release(address: int) -> None:
    managed = ctypes.cast(address, ctypes.POINTER(_Managed)).contents
    box = ctypes.cast(managed.context, ctypes.py_object)
    ctypes.pythonapi.Py_DecRef(box)


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)  # type: ignore[untyped-decorator]
def _destructor(capsule: int) -> None:
    """Called when a capsule dies; one that was consumed has another name and frees itself through its deleter."""
    if _is_valid(capsule, _NAME):
        _release(_raw_pointer(capsule, _NAME))
