"""pycuda's driver module over host memory, with pycuda's own rule for freeing, recorded.

The rule (`scoped_context_activation` in pycuda's cuda.hpp): a resource is freed where its context is on top of the
thread's stack; else in the thread that made the context; else it leaks with a warning. Only the first is accepted here.
"""

from __future__ import annotations

import ctypes
import threading
from importlib.machinery import ModuleSpec
from types import ModuleType

HANDLE = 0xC0


class FakePycuda:
    """`problems` are frees and calls without the context; `live` counts what was not freed yet."""

    def __init__(self, limit: int = 1 << 20):
        self.limit, self.used, self.live = limit, 0, 0
        self.problems: list[str] = []
        self.freed_in: list[int] = []
        self.pushes = self.pops = 0
        self.retained = 0
        self._local = threading.local()
        self.lock = threading.Lock()

    @property
    def stack(self) -> list:
        if not hasattr(self._local, "stack"):
            self._local.stack = []
        return self._local.stack

    def need(self, what: str) -> Context:
        if not self.stack:
            self.problems.append(f"{what} without a context")
            raise LogicError("no currently active context?")
        return self.stack[-1]

    def freed(self, what: str, context: Context, size: int = 0) -> None:
        if not self.stack or self.stack[-1] is not context:
            self.problems.append(f"{what} freed where its context is not current")
        with self.lock:
            self.live -= 1
            self.used -= size
            self.freed_in.append(threading.get_ident())

    def modules(self) -> dict[str, ModuleType]:
        """`pycuda` and `pycuda.driver`, for sys.modules."""
        package, driver = ModuleType("pycuda"), ModuleType("pycuda.driver")
        package.__spec__, driver.__spec__ = ModuleSpec("pycuda", None), ModuleSpec("pycuda.driver", None)
        package.driver = driver
        driver.Error, driver.MemoryError, driver.LogicError = Error, OutOfMemory, LogicError
        driver.init = lambda: None
        driver.Device = lambda index: Device(self)
        driver.mem_alloc = lambda size: DeviceAllocation(self, size)
        driver.mem_get_info = lambda: (self.limit - self.used, self.limit)
        driver.Stream = lambda flags=0: Stream(self)
        driver.Event = lambda: Event(self)
        driver.memcpy_htod_async = self.memcpy_htod_async
        driver.memcpy_dtoh_async = self.memcpy_dtoh_async
        driver.memcpy_dtod_async = self.memcpy_dtod_async
        return {"pycuda": package, "pycuda.driver": driver}

    def memcpy_htod_async(self, target, source, stream):
        self.need("memcpy_htod_async")
        assert isinstance(stream, Stream)
        ctypes.memmove(target, source.ctypes.data, memoryview(source).nbytes)

    def memcpy_dtoh_async(self, target, source, stream):
        self.need("memcpy_dtoh_async")
        assert isinstance(stream, Stream)
        ctypes.memmove(target.ctypes.data, source, memoryview(target).nbytes)

    def memcpy_dtod_async(self, target, source, size, stream):
        self.need("memcpy_dtod_async")
        ctypes.memmove(target, source, size)


class Error(Exception):
    pass


class OutOfMemory(Error):
    pass


class LogicError(Error):
    pass


class Device:
    def __init__(self, fake):
        self.fake = fake

    def retain_primary_context(self):
        self.fake.retained += 1
        return Context(self.fake)


class Context:
    def __init__(self, fake):
        self.fake = fake

    def push(self):
        self.fake.pushes += 1
        self.fake.stack.append(self)

    def pop(self):
        self.fake.pops += 1
        self.fake.stack.pop()


class Resource:
    """Bound to the context that is current when it is made, as pycuda's `context_dependent` is."""

    size = 0

    def __init__(self, fake):
        self.fake, self.context = fake, fake.need(type(self).__name__)
        with fake.lock:
            fake.live += 1

    def __del__(self):
        if hasattr(self, "context"):
            self.fake.freed(type(self).__name__, self.context, self.size)


class DeviceAllocation(Resource):
    def __init__(self, fake, size):
        with fake.lock:
            if fake.used + size > fake.limit:
                raise OutOfMemory("cuMemAlloc failed: out of memory")
            fake.used += size
        super().__init__(fake)
        self.size, self._block = size, ctypes.create_string_buffer(size)

    def __int__(self):
        return ctypes.addressof(self._block)


class Stream(Resource):
    @property
    def handle(self):
        return id(self)

    def synchronize(self):
        self.fake.need("Stream.synchronize")


class Event(Resource):
    def record(self, stream):
        self.fake.need("Event.record")
        assert isinstance(stream, Stream)

    def synchronize(self):
        pass

    def time_since(self, start):
        return 2.0


class FakeDriver:
    """The driver's functions that are asked beside pycuda; `foreign` are addresses in another context."""

    def __init__(self):
        self.foreign = set()

    def cuCtxGetCurrent(self, handle):
        handle._obj.value = HANDLE
        return 0

    def cuPointerGetAttribute(self, owner, what, pointer):
        owner._obj.value = HANDLE + 1 if pointer in self.foreign else HANDLE
        return 0
