"""What a module does in threads of its own: modes of torch, and its recorder, hold in one thread alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from multiprocessing.pool import ThreadPool
from threading import Thread
from typing import Any
from unittest import mock

Around = Callable[[], AbstractContextManager[Any]]
# The threads of a pool may be older than the run; these take the function first that they are to run.
_OF_POOLS = (
    (ThreadPoolExecutor, ("submit",)),
    (ThreadPool, ("apply_async", "_map_async", "imap", "imap_unordered")),
)


@contextmanager
def in_threads(around: Around) -> Iterator[None]:
    """In the block, what threads run that are started, or what pools of threads are given, runs within `around()`."""
    start = Thread.start

    def start_within(thread: Thread) -> None:
        thread.run = partial(_run_within, around, thread.run)  # type: ignore[method-assign]
        start(thread)

    def handing_over(method: Any) -> Any:
        def hand_over(pool: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
            return method(pool, partial(_run_within, around, function), *args, **kwargs)

        return hand_over

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(Thread, "start", start_within))
        for pool, names in _OF_POOLS:
            for name in names:
                stack.enter_context(mock.patch.object(pool, name, handing_over(getattr(pool, name))))
        yield


def _run_within(around: Around, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    with around():
        return call_in_thread(function, args, kwargs)


def call_in_thread(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """The outermost frame of the module in another thread."""
    return function(*args, **kwargs)
