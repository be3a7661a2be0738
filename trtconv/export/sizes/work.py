"""How much a run of a module computes: by that, and not by a clock, sizes are chosen for what runs often.

A clock would choose others on a busy machine. So the operations of a run are counted as torch dispatches them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from trtconv.export.recurrent.steps import whole_layers

# What writing an element costs beside a multiplication or an addition in a product of matrices: memory is slower.
PER_ELEMENT = 32.0
FUSED_ATTENTION = frozenset(("_native_multi_head_attention", "_transformer_encoder_layer_fwd"))
# Operators that torch's counter does not know, and that multiply rows by the matrices among their arguments.
BY_MATRICES = (
    "mkldnn_rnn_layer",
    *FUSED_ATTENTION,
    "_thnn_fused_lstm_cell",
    "lstm",
    "gru",
    "rnn_tanh",
    "rnn_relu",
    "linear",
)


@dataclass
class Work:
    """The floating point operations of a run, and the operators in it by name."""

    operations: float = 0.0
    names: frozenset[str] = frozenset()


def watching_mode() -> type:
    """The class of modes whose `watch(func, args, kwargs)` is called for each operator of aten.

    torch.cond and its kin run as a whole. What torch compiles for them under a mode fails at the next size without it,
    so it is forgotten. A recurrent layer is one operator too: torch would dispatch each of its steps.
    """
    import torch
    from torch._ops import HigherOrderOperator
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watching(TorchDispatchMode):  # type: ignore[misc]
        supports_higher_order_operators = True
        compiled = False

        def __enter__(self) -> Any:
            self.layers = whole_layers(lambda operator, args: self.watch(operator, args, {}))
            self.layers.__enter__()
            return super().__enter__()

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if isinstance(func, HigherOrderOperator):
                self.compiled = True
                return func(*args, **(kwargs or {}))
            return self.watch(func, args, kwargs or {})

        def __exit__(self, *error: Any) -> None:
            super().__exit__(*error)
            self.layers.__exit__(*error)
            if self.compiled:
                torch._dynamo.reset()

    return Watching


@contextmanager
def counted_work() -> Iterator[Work]:
    """Count what torch runs in the block; the result is complete at its end."""
    work = Work()
    names: set[str] = set()

    class Counter(watching_mode()):  # type: ignore[misc]
        def watch(self, func: Any, args: Any, kwargs: Any) -> Any:
            result = func(*args, **kwargs)
            names.add(func.overloadpacket.__name__)
            # A nested tensor has no sizes: what it costs is not counted.
            with suppress(RuntimeError, TypeError, ValueError, AttributeError):
                work.operations += _operations(func, args, kwargs, result)
            return result

    try:
        with Counter():
            yield work
    finally:
        work.names = frozenset(names)


def _operations(func: Any, args: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> float:
    from torch.utils.flop_counter import flop_registry

    operations = 0.0
    count = flop_registry.get(func.overloadpacket)
    if count is not None:
        operations += float(count(*args, **keywords, out_val=result))
    elif func.overloadpacket.__name__ in BY_MATRICES:
        operations += _by_matrices(args)
    if not _is_view(func):
        operations += PER_ELEMENT * sum(t.numel() for t in _tensors(result))
    return operations


def _by_matrices(args: Sequence[Any]) -> float:
    tensors = _tensors(args)
    if not tensors or not tensors[0].dim():
        return 0.0
    rows = tensors[0].numel() / max(1, tensors[0].shape[-1])
    return float(2.0 * rows * sum(math.prod(t.shape) for t in tensors[1:] if t.dim() == 2))


def _tensors(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for part in value for t in _tensors(part)]
    return []


def _is_view(func: Any) -> bool:
    """True for an operator that gives its input's memory in another shape."""
    aliases = [r.alias_info for r in func._schema.returns]
    return any(a is not None and not a.is_write for a in aliases)
