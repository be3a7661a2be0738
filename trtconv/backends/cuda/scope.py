"""A context that is current only while a call runs, and the freeing of what was let go in between.

pycuda frees an allocation, stream or event when the last reference goes: in the thread where that happens, which may
be any thread and any moment that the garbage collector chooses. Where the context is not on top of that thread's
stack, pycuda warns and leaks; while a CUDA graph is being captured, freeing memory invalidates the capture. Resources
are therefore put in a queue, which is emptied where the context is current and nothing is captured.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType


class _Depth(threading.local):
    """How many blocks the calling thread is in."""

    depth = 0


class ContextScope:
    """`with scope:` has the context current in the calling thread. Blocks nest and any thread may enter.

    The outermost block of a thread pushes and pops, so that a thread which has left all blocks is as it was before.
    """

    def __init__(self, push: Callable[[], object], pop: Callable[[], object]) -> None:
        self._push, self._pop = push, pop
        self._local = _Depth()
        self._discarded: deque[Callable[[], object]] = deque()

    def __enter__(self) -> None:
        local = self._local
        if local.depth:
            local.depth += 1
            return
        self._push()
        local.depth = 1
        if self._discarded:
            self.free_discarded()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        local = self._local
        if local.depth > 1:
            local.depth -= 1
            return
        if self._discarded:
            self.free_discarded()
        local.depth = 0
        self._pop()

    @property
    def entered(self) -> bool:
        """True inside a block of the calling thread."""
        return self._local.depth > 0

    def discard(self, free: Callable[[], object]) -> None:
        """Call `free` with the context current: at once outside of a block, else when the block is left."""
        self._discarded.append(free)
        if not self.entered:
            with self:
                pass

    def free_discarded(self) -> None:
        """Free what was let go. To be called inside a block, and not while a CUDA graph is captured."""
        while True:
            try:
                free = self._discarded.popleft()
            except IndexError:
                return
            # One that fails (its context was destroyed, say) must not keep the others.
            with contextlib.suppress(Exception):
                free()


class DeviceResource:
    """Something on the device that goes with the last reference, through the queue of a scope."""

    def __init__(self, scope: ContextScope, free: Callable[[], object]) -> None:
        self._scope, self._free = scope, free

    def __del__(self) -> None:
        # While the interpreter ends, the driver may be gone already.
        with contextlib.suppress(Exception):
            self._scope.discard(self._free)
