"""A TensorRT of NumPy: enough of the runtime's interface to run the runner where no GPU is.

Device memory is host memory. The one engine it knows computes y = 2x, n = number of positive x (a size that depends
on data), and passes int32 `ids` through; it checks addresses and shapes as strictly as the real one does.
"""

from __future__ import annotations

import ctypes
import enum
import sys
from dataclasses import dataclass, field

import numpy as np

from trtconv.backends.cuda.scope import ContextScope
from trtconv.backends.runtime.latency import WallInterval
from trtconv.core.errors import TrtconvError


class TensorIOMode(enum.Enum):
    NONE, INPUT, OUTPUT = range(3)


class TensorLocation(enum.Enum):
    DEVICE, HOST = range(2)


class DataType(enum.Enum):
    FLOAT, HALF, INT8, INT32, BOOL = range(5)


class ILogger:
    pass


class IOutputAllocator:
    pass


class IProfiler:
    pass


__version__ = "8.6.0"


@dataclass
class Tensor:
    mode: TensorIOMode
    dtype: DataType
    shape: tuple[int, ...]
    location: TensorLocation = TensorLocation.DEVICE


def read(pointer: int, shape, dtype) -> np.ndarray:
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * count).from_address(pointer), dtype).reshape(shape)


class Context:
    def __init__(self, engine):
        self.engine, self.shapes, self.addresses, self.profile = engine, {}, {}, -1
        self.allocators, self.calls, self.last = {}, [], (-1,)

    def set_optimization_profile_async(self, index, stream):
        self.profile = index
        return 0 <= index < self.engine.num_optimization_profiles

    def set_input_shape(self, name, shape):
        low, _, high = self.engine.profiles[self.profile][name]
        self.shapes[name] = tuple(shape)
        self.calls.append("set_input_shape")
        return all(a <= s <= b for a, s, b in zip(low, shape, high, strict=True))

    def infer_shapes(self):
        return [n for n, t in self.engine.tensors.items() if t.mode is TensorIOMode.INPUT and n not in self.shapes]

    def get_tensor_shape(self, name):
        # As 8.6 does, the size of the last run is given after a run.
        return {"y": self.shapes["x"], "n": self.last, "same": self.shapes["ids"]}.get(name, self.shapes.get(name))

    def set_tensor_address(self, name, pointer):
        self.addresses[name] = pointer
        return pointer != 0

    def set_output_allocator(self, name, allocator):
        self.allocators[name] = allocator
        return True

    def execute_async_v3(self, stream):
        self.calls.append("execute")
        x = read(self.addresses["x"], self.shapes["x"], np.float32)
        ids = read(self.addresses["ids"], self.shapes["ids"], np.int32)
        read(self.addresses["y"], x.shape, np.float32)[...] = 2 * x
        read(self.addresses["same"], ids.shape, np.int32)[...] = ids
        positive = x[x > 0]
        pointer = self.allocators["n"].reallocate_output("n", 0, positive.nbytes, 256)
        if not pointer:
            return False
        read(pointer, positive.shape, np.float32)[...] = positive
        self.last = positive.shape
        self.allocators["n"].notify_shape("n", positive.shape)
        return True


@dataclass
class Engine:
    profiles: tuple = (
        {"x": ((1, 2), (2, 2), (4, 2)), "ids": ((1,), (2,), (4,))},
        {"x": ((1, 2), (8, 2), (64, 2)), "ids": ((1,), (8,), (64,))},
    )
    tensors: dict = field(
        default_factory=lambda: {
            "x": Tensor(TensorIOMode.INPUT, DataType.FLOAT, (-1, 2)),
            "ids": Tensor(TensorIOMode.INPUT, DataType.INT32, (-1,)),
            "y": Tensor(TensorIOMode.OUTPUT, DataType.FLOAT, (-1, 2)),
            "same": Tensor(TensorIOMode.OUTPUT, DataType.INT32, (-1,)),
            "n": Tensor(TensorIOMode.OUTPUT, DataType.FLOAT, (-1,)),
        }
    )
    contexts: list = field(default_factory=list)
    refuse: bool = False

    @property
    def num_io_tensors(self):
        return len(self.tensors)

    @property
    def num_optimization_profiles(self):
        return len(self.profiles)

    def get_tensor_name(self, index):
        return list(self.tensors)[index]

    def get_tensor_mode(self, name):
        return self.tensors[name].mode

    def get_tensor_dtype(self, name):
        return self.tensors[name].dtype

    def get_tensor_shape(self, name):
        return self.tensors[name].shape

    def get_tensor_location(self, name):
        return self.tensors[name].location

    def get_tensor_profile_shape(self, name, index):
        return list(self.profiles[index][name])

    def create_execution_context(self):
        if self.refuse:
            return None
        self.contexts.append(Context(self))
        return self.contexts[-1]


class Runtime:
    def __init__(self, logger):
        self.logger = logger

    def deserialize_cuda_engine(self, data):
        return Engine()


def logger():
    """The logger that trtconv gave this TensorRT."""
    from trtconv.backends.tensorrt.messages import logger_of

    return logger_of(sys.modules[__name__])


@dataclass
class Buffer:
    pointer: int
    size: int
    owner: object


@dataclass
class Stream:
    handle: int


class HostMemory:
    """CudaMemory over host memory; `limit` bytes can be taken, and only with the context current."""

    name = "host"
    driver = None

    def __init__(self, limit: int = 1 << 20):
        self.limit, self.streams = limit, 0
        self.scope = ContextScope(lambda: None, lambda: None)

    def current(self):
        return self.scope

    def owns(self, pointer):
        return True

    def allocate(self, size):
        assert self.scope.entered
        if size > self.limit:
            raise TrtconvError("the GPU is out of memory")
        owner = ctypes.create_string_buffer(max(size, 1))
        return Buffer(ctypes.addressof(owner), size, owner)

    def create_stream(self):
        self.streams += 1
        return Stream(self.streams)

    def upload(self, pointer, array, stream):
        ctypes.memmove(pointer, array.ctypes.data, array.nbytes)

    def download(self, array, pointer, stream):
        ctypes.memmove(array.ctypes.data, pointer, array.nbytes)

    def copy(self, target, source, size, stream):
        ctypes.memmove(target, source, size)

    def synchronize(self, stream):
        pass

    def interval(self, stream):
        return WallInterval()
