"""Recurrent layers, which torch takes apart into steps before a trace or a dispatch mode sees them.

Their functions take (x, state, weights, biases, layers, dropout, training, both_ways, batch_first), and return the
sequence and the last states. For a packed sequence they take (x, batch sizes, state, ...): that is left to torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from trtconv.core.errors import TrtconvError
from trtconv.export.recurrent.calls import FUNCTIONS, layer_calls


class OneLengthError(TrtconvError):
    """torch.export would write a recurrent layer for one length only."""


def is_recurrent(func: Any, args: Any) -> bool:
    """Is this a call of such a function for a padded sequence, with its arguments by position?"""
    return getattr(func, "__name__", "") in FUNCTIONS and is_padded(args)


def is_padded(args: Any) -> bool:
    """Are these the arguments of such a function for a padded sequence?"""
    return len(args) == 9 and isinstance(args[3], bool)  # of a packed one the weights come fourth


def by_time(run: Callable[[Any, tuple[Any, ...]], Any], x: Any, state: Any, batch_first: bool) -> tuple[Any, ...]:
    """What `run` gives for x [T, N, C] and the states [layers * ways, N, H], in the form in which the call has them.

    `run` gives the sequence and the last states; the call may have no batch, or the batch first.
    """
    states = tuple(state) if isinstance(state, (tuple, list)) else (state,)
    if x.dim() == 2:
        y, *last = run(x[:, None], tuple(s[:, None] for s in states))
        return (y[:, 0], *(s[:, 0] for s in last))
    y, *last = run(x.transpose(0, 1) if batch_first else x, states)
    return (y.transpose(0, 1) if batch_first else y, *last)


def empty_result(args: Any) -> Any:
    """What the call returns, of the same shapes and without values: a layer decides nothing by its sizes."""
    x, state = args[0], args[1]
    states = tuple(state) if isinstance(state, (tuple, list)) else (state,)
    width = states[0].shape[-1] * (2 if args[7] else 1)
    return (x.new_empty((*x.shape[:-1], width)), *(s.clone() for s in states))


class Operator:
    """An operator of aten with its facts (`_schema`, `overloadpacket`), run by another function."""

    def __init__(self, operator: Any, function: Callable[..., Any]) -> None:
        self._operator, self._function, self.__name__ = operator, function, operator.overloadpacket.__name__

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run the function."""
        return self._function(*args, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operator, name)


@contextmanager
def whole_layers(run: Callable[[Any, Any], Any]) -> Iterator[None]:
    """Calls of plain tensors go to `run(operator, arguments)`, without the modes that are on.

    The operator calls what stood under the name before, so that such blocks nest.
    """
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    def whole(name: str, function: Callable[..., Any], args: Any, named: Any) -> Any:
        if named or not is_padded(args) or type(args[0]) is not torch.Tensor:
            return function(*args, **named)
        operator = Operator(getattr(torch.ops.aten, name).input, function)
        with _disable_current_modes():
            return run(operator, args)

    with layer_calls(whole):
        yield
