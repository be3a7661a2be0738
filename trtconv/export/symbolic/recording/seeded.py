"""Draws from a generator that forward seeds: the same numbers in each call, which the file holds as constants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from trtconv.core.errors import TrtconvError
from trtconv.export.symbolic.recording.tracer import unrecorded
from trtconv.export.symbolic.sizes import any_symbolic

CREATED = frozenset({"rand", "randn", "randint", "randperm", "normal"})
WRITTEN = frozenset({"normal_", "uniform_", "bernoulli_", "random_", "exponential_", "log_normal_", "cauchy_"})


@dataclass
class SeededDraws:
    """The draws of one traced run: from a generator that a call names, or from torch's own once forward seeds it.

    One that outlives forward gives other numbers in the next call: the module differs from itself then, and is refused
    for it.
    """

    _is_seeded: bool = False

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note in the block that forward seeds torch's own generator."""
        import torch

        def seed(number: Any, *, first: Callable[..., Any] = torch.manual_seed) -> Any:
            self._is_seeded = True
            return first(number)

        with mock.patch.object(torch, "manual_seed", seed), mock.patch.object(torch.random, "manual_seed", seed):
            yield

    def constant(self, func: Any, name: str, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """The numbers that a call draws, or NotImplemented for one that draws none or from no seed.

        Raises TrtconvError where how many a generator draws, or from what, is known in a run only.
        """
        import torch

        has_generator = isinstance(named.get("generator"), torch.Generator)
        if not has_generator and not (self._is_seeded and name in CREATED | WRITTEN):
            return NotImplemented
        numbers = _constant(func, name, args, named)
        if numbers is NotImplemented and has_generator:
            raise TrtconvError(
                f"'{name}' draws from a generator, which a file cannot hold, by sizes or values of the input",
                hint="draw the numbers in __init__, keep them with register_buffer, and take a slice of them by the "
                "size; or take them as an input",
            )
        return numbers


def _constant(func: Any, name: str, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    import torch

    if name in CREATED and not any(isinstance(a, torch.Tensor) for a in args):
        sizes = [n for a in (*args, named.get("size", ())) for n in (a if isinstance(a, (list, tuple)) else (a,))]
        return NotImplemented if any_symbolic(sizes) else _drawn(func, args, named)
    if name in WRITTEN and isinstance(args[0], torch.Tensor) and not any_symbolic([*args[0].shape, *args[1:]]):
        target, *rest = args
        with _untraced():
            like = torch.zeros([*map(int, target.shape)], dtype=target.dtype)
        return target.copy_(_drawn(func, (like, *rest), named))
    return NotImplemented


def _drawn(func: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    import torch

    with _untraced():
        numbers = func(*args, **named)
        values, dtype = numbers.tolist(), numbers.dtype
    return torch.tensor(values, dtype=dtype)


def _untraced() -> ExitStack:
    """A block in which tensors are plain ones, of numbers, and nothing is recorded."""
    import torch
    from torch._subclasses.fake_tensor import unset_fake_temporarily
    from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing

    stack = ExitStack()
    stack.enter_context(torch._C.DisableTorchFunction())
    stack.enter_context(unrecorded())
    stack.enter_context(unset_fake_temporarily())
    stack.enter_context(disable_proxy_modes_tracing())
    return stack
