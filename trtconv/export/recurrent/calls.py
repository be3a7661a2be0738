"""Calls of torch's recurrent layers, handed to a handler by the functions' names, as torch.nn calls them.

Under a mode for functions nn.TransformerEncoder would go another way. The functions are replaced while any thread has a
handler: a thread that outlives a block of another one would put back what that one had replaced.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

FUNCTIONS = frozenset(("lstm", "gru", "rnn_tanh", "rnn_relu"))
# Gets the name of the function, what it would be without the handler, and the arguments.
Handler = Callable[[str, Callable[..., Any], Any, Any], Any]


class _Handlers(threading.local):
    """Those of a thread, the innermost last."""

    def __init__(self) -> None:
        self.items: list[Handler] = []


_HANDLERS = _Handlers()
_LOCK = threading.Lock()
_blocks = 0


@contextmanager
def layer_calls(handler: Handler) -> Iterator[None]:
    """In the block, calls of this thread go to the handler; blocks nest."""
    _count_blocks(1)
    _HANDLERS.items.append(handler)
    try:
        yield
    finally:
        _HANDLERS.items.remove(handler)
        _count_blocks(-1)


def _count_blocks(change: int) -> None:
    import torch

    global _blocks
    with _LOCK:
        before, _blocks = _blocks, _blocks + change
        for name in FUNCTIONS if 0 in (before, _blocks) else ():
            if before:
                delattr(torch._VF, name)
            else:
                setattr(torch._VF, name, _handed_on(name, getattr(torch._VF, name)))


def _handed_on(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any, **named: Any) -> Any:
        return _at(len(_HANDLERS.items), args, named)

    def _at(level: int, args: Any, named: Any) -> Any:
        """What the first `level` handlers make of a call."""
        if not level:
            return function(*args, **named)
        handler = _HANDLERS.items[level - 1]
        return handler(name, lambda *a, **n: _at(level - 1, a, n), args, named)

    return call
