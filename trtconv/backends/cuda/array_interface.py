"""`__cuda_array_interface__`, by which pycuda, Numba and CuPy hand over device memory (version 3 of the protocol)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trtconv.backends.cuda.context import wait_for
from trtconv.backends.cuda.dlpack import Imported, is_contiguous
from trtconv.core.dtypes import dtype_from_numpy
from trtconv.core.errors import InvalidRequestError

if TYPE_CHECKING:
    from trtconv.backends.cuda.memory import CudaMemory

# CU_STREAM_LEGACY, the default stream.
LEGACY_STREAM = 1


def import_array_interface(source: object, stream: int, memory: CudaMemory) -> Imported | None:
    """Read an array that has the interface; None for other objects.

    `stream` waits for the one that the array names, or for the default one.

    To be called with the context current. Raises InvalidRequestError for an array that is not contiguous or lies in
    another context.
    """
    import numpy as np

    interface = getattr(source, "__cuda_array_interface__", None)
    if not isinstance(interface, dict):
        return None
    dtype, shape = np.dtype(interface["typestr"]), tuple(int(d) for d in interface["shape"])
    strides = interface.get("strides")
    if strides is not None and not is_contiguous(shape, [s // dtype.itemsize for s in strides]):
        raise InvalidRequestError("a CUDA array is not contiguous", hint="copy it into a contiguous one")
    pointer = int(interface["data"][0] or 0)
    if pointer and not memory.owns(pointer):
        raise InvalidRequestError(
            "a CUDA array lies in another CUDA context than the engine",
            hint="use the device's primary context: `import pycuda.autoprimaryctx` in place of `pycuda.autoinit`",
        )
    producer = interface.get("stream")
    # 1 and 2 are the driver's handles of the default streams as well. pycuda names none, and copies by the first: from
    # pageable memory such a copy returns before the data is on the device (CUDA's notes on synchronisation of copies).
    wait_for(memory.driver, stream, LEGACY_STREAM if producer is None else int(producer))
    return Imported(pointer, shape, dtype_from_numpy(dtype), 0, source)


def array_interface(pointer: int, shape: tuple[int, ...], typestr: str, stream: int) -> dict[str, Any]:
    """The interface of our own device memory; the consumer waits for `stream` itself."""
    return {
        "shape": shape,
        "typestr": typestr,
        "data": (pointer, False),
        "strides": None,
        "stream": stream,
        "version": 3,
    }
