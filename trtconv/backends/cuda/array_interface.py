"""`__cuda_array_interface__`, by which pycuda, Numba and CuPy hand over device memory (version 3 of the protocol)."""

from __future__ import annotations

from typing import Any

from trtconv.backends.cuda.context import wait_for
from trtconv.backends.cuda.dlpack import Imported, is_contiguous
from trtconv.core.dtypes import dtype_from_numpy
from trtconv.core.errors import InvalidRequestError


def import_array_interface(source: Any, stream: int, driver: Any) -> Imported | None:
    """Read an array that has the interface; `stream` waits for the producer's. None for other objects."""
    import numpy as np

    found = getattr(source, "__cuda_array_interface__", None)
    if not isinstance(found, dict):
        return None
    dtype, shape = np.dtype(found["typestr"]), tuple(int(d) for d in found["shape"])
    strides = found.get("strides")
    if strides is not None and not is_contiguous(shape, [s // dtype.itemsize for s in strides]):
        raise InvalidRequestError("a CUDA array is not contiguous", hint="copy it into a contiguous one")
    producer = found.get("stream")
    if producer is not None:
        # 1 and 2 are the driver's handles of the default streams as well.
        wait_for(driver, stream, int(producer))
    pointer = int(found["data"][0] or 0)
    return Imported(pointer, shape, dtype_from_numpy(dtype), 0, source)


def array_interface(pointer: int, shape: tuple[int, ...], typestr: str, stream: int) -> dict[str, Any]:
    """The interface of our own device memory; the consumer waits for `stream` itself."""
    return {"shape": shape, "typestr": typestr, "data": (pointer, False), "strides": None, "stream": stream,
            "version": 3}  # fmt: skip
