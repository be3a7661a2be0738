import gc
import weakref

import numpy as np
import pytest

from trtconv.backends.cuda import dlpack
from trtconv.backends.cuda.array_interface import import_array_interface
from trtconv.core.dtypes import parse_dtype
from trtconv.core.errors import InvalidRequestError


class Owner:
    """Stands for a buffer: lets a test see when it is let go."""


@pytest.fixture
def on_cpu(monkeypatch):
    """DLPack's number of the CPU in place of CUDA's, so that NumPy can be the other side."""
    monkeypatch.setattr(dlpack, "CUDA", 1)


class Exported:
    def __init__(self, array, owner):
        self._array, self._owner = array, owner

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        dtype = parse_dtype(self._array.dtype.name)
        return dlpack.export_cuda(self._array.ctypes.data, self._array.shape, dtype, 0, self._owner)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int32", "int8", "uint8", "bool"])
def test_numpy_reads_what_is_exported(on_cpu, dtype):
    array = (np.arange(24).reshape(2, 3, 4) % 2).astype(dtype)
    observed = np.from_dlpack(Exported(array, array))
    np.testing.assert_array_equal(observed, array)
    assert observed.dtype == array.dtype
    assert observed.ctypes.data == array.ctypes.data


def test_a_scalar_and_an_empty_array(on_cpu):
    assert np.from_dlpack(Exported(np.array(3.5, np.float32), None)) == np.float32(3.5)
    assert np.from_dlpack(Exported(np.zeros((0, 3), np.float32), None)).shape == (0, 3)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("consumed", [True, False])
def test_the_owner_lives_exactly_as_long_as_the_tensor(on_cpu, consumed):
    array, owner = np.ones(4, np.float32), Owner()
    reference = weakref.ref(owner)
    exported = Exported(array, owner)
    held = np.from_dlpack(exported) if consumed else exported.__dlpack__()
    del owner, exported
    gc.collect()
    assert reference() is not None
    del held
    gc.collect()
    assert reference() is None


def test_numpy_is_imported(on_cpu):
    class Source:
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, *, stream):
            assert stream == 7
            return self.array.__dlpack__()

    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    tensor = dlpack.import_cuda(Source(array), 7)
    assert (tensor.pointer, tensor.shape, tensor.dtype.name) == (array.ctypes.data, (2, 3), "int32")
    with pytest.raises(InvalidRequestError, match="not contiguous"):
        dlpack.import_cuda(Source(array.T), 7)


def test_host_arrays_are_none_of_its_business():
    assert dlpack.import_cuda(np.zeros(3), 0) is None
    assert dlpack.import_cuda([1, 2], 0) is None


class Device:
    """An array with `__cuda_array_interface__`, as pycuda's are."""

    def __init__(self, array, **changes):
        interface = {"shape": array.shape, "typestr": array.dtype.str, "data": (array.ctypes.data, False), "version": 3}
        self.__cuda_array_interface__ = {**interface, **changes}


class Driver:
    """Counts the calls that order one stream after another."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        return lambda *arguments: self.calls.append((name, *arguments)) or 0

    def recorded(self):
        """The streams of which work is waited for."""
        return [arguments[1] for name, *arguments in self.calls if name == "cuEventRecord"]


class Memory:
    """What the interface needs of a `CudaMemory`; `foreign` are addresses in another context."""

    def __init__(self, foreign=()):
        self.driver, self.foreign = Driver(), foreign

    def owns(self, pointer):
        return pointer not in self.foreign


def test_the_array_interface():
    array, memory = np.arange(6, dtype=np.float16).reshape(2, 3), Memory()
    driver = memory.driver
    tensor = import_array_interface(Device(array), 7, memory)
    assert (tensor.pointer, tensor.shape, tensor.dtype.name) == (array.ctypes.data, (2, 3), "float16")
    # pycuda names no stream, and may still copy by the default one.
    assert driver.recorded() == [1]
    import_array_interface(Device(array, stream=2), 7, memory)
    assert driver.recorded() == [1, 2]
    assert [stream for name, stream, *_ in driver.calls if name == "cuStreamWaitEvent"] == [7, 7]
    with pytest.raises(InvalidRequestError, match="not contiguous"):
        import_array_interface(Device(array, strides=(2, 4)), 7, memory)
    assert import_array_interface(Device(array, strides=(6, 2)), 7, memory) is not None
    assert import_array_interface(array, 7, memory) is None


def test_an_array_of_another_context_is_refused():
    array = np.arange(6, dtype=np.float32)
    with pytest.raises(InvalidRequestError, match="another CUDA context") as caught:
        import_array_interface(Device(array), 7, Memory(foreign=(array.ctypes.data,)))
    assert "pycuda.autoprimaryctx" in caught.value.hint
