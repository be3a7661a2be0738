"""State that no sample changes: forward writes it from its inputs, and its content comes out the same.

`self.alarm |= x.amax() < -35` writes False over False at all samples, and the next call after a cold frame is another
one. Where inputs reach what a call leaves, and what it found there reaches its outputs, it is state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from trtconv.export.lasting.outside import Slot
from trtconv.export.module.noise.repeatable import same_bits
from trtconv.export.sizes.work import watching_mode
from trtconv.export.symbolic.recording.aliases import memory_of

if TYPE_CHECKING:
    import torch

    from trtconv.export.module.runner import ModuleRunner

    Feed = Mapping[str, Any]
    Slots = Callable[[], Mapping[Slot, Sequence[torch.Tensor]]]
    Versions = Mapping[Slot, Sequence[tuple[torch.Tensor, int]]]

# Slots whose content is tried in a run of its own.
MOST_TRIED = 4
# How far the content is moved: a threshold may be far away, and what is computed with a NaN is one.
MOVES = (1.0, 1e6, -1e6, math.nan)
# Of these a result has the shape and type of an argument, and none of its values. A row that a lookup renormalises is
# the one that each lookup makes of it.
OF_SHAPES = frozenset(
    ("zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like", "randint_like", "new_zeros",
     "new_ones", "new_full", "new_empty", "new_empty_strided", "sym_size", "sym_stride", "sym_numel",
     "embedding_renorm_")
)  # fmt: skip


def versions_of(slots: Mapping[Slot, Sequence[torch.Tensor]]) -> Versions:
    """The tensors in the slots with how often each was written."""
    return {slot: [(tensor, tensor._version) for tensor in tensors] for slot, tensors in slots.items()}


def written_since(before: Versions, slots: Mapping[Slot, Sequence[torch.Tensor]]) -> dict[Slot, list[torch.Tensor]]:
    """The tensors in the slots that are others than before, or were written, whatever is in them."""
    written = {}
    for slot, tensors in slots.items():
        same = {(id(tensor), version) for tensor, version in before.get(slot, ())}
        new = [tensor for tensor in tensors if (id(tensor), tensor._version) not in same]
        if new:
            written[slot] = new
    return written


def rarely_written(runner: ModuleRunner, feed: Feed, slots: Slots) -> list[Slot]:
    """The slots whose tensors a call with these inputs writes from them, and from whose content outputs come.

    Runs the module once, and a few times more for each of at most `MOST_TRIED` slots. Raises what the module raises.
    """
    before, spread = versions_of(slots()), _Spread()
    runner.watched(feed, spread.watched)
    written = [s for s, tensors in written_since(before, slots()).items() if any(map(spread.reached, tensors))]
    return [slot for slot in written[:MOST_TRIED] if _reaches_outputs(runner, feed, slots, slot)]


class _Spread:
    """Which memory has values in it that come from the inputs of a run."""

    def __init__(self) -> None:
        self.memory: set[int] = set()

    def reached(self, tensor: torch.Tensor) -> bool:
        """Whether some of the values come from the inputs."""
        return memory_of(tensor) in self.memory

    @contextmanager
    def watched(self, inputs: Mapping[str, torch.Tensor]) -> Iterator[None]:
        """A run with these inputs."""
        self.memory = _memory_of_all(inputs)
        spread = self

        class Watching(watching_mode()):  # type: ignore[misc]
            def watch(self, func: Any, args: Any, kwargs: Any) -> Any:
                result = func(*args, **kwargs)
                spread.follow(func, (args, kwargs), result)
                return result

        with Watching():
            yield

    def follow(self, operator: Any, arguments: Any, result: Any) -> None:
        """Note what an operator made of its arguments."""
        operands = _memory_of_all(arguments)
        packet = getattr(operator, "overloadpacket", operator)
        name = getattr(packet, "__name__", "")
        carries = name not in OF_SHAPES and not operands.isdisjoint(self.memory)
        results = _memory_of_all(result)
        if carries:
            self.memory |= results
        else:
            # New memory where others' was.
            self.memory -= results - operands


def _reaches_outputs(runner: ModuleRunner, feed: Feed, slots: Slots, slot: Slot) -> bool:
    """Whether outputs are other ones when the slot's tensors have another content before the call."""
    contents = [tensor.detach().clone() for tensor in slots().get(slot, ())]

    def outputs_after(move: float) -> dict[str, Any]:
        _put(slots().get(slot, ()), [_moved(content, move) for content in contents])
        return runner(feed)

    try:
        usual = outputs_after(0)
        return any(not same_bits(usual, outputs_after(move)) for move in MOVES)
    finally:
        _put(slots().get(slot, ()), contents)


def _put(tensors: Sequence[torch.Tensor], contents: Sequence[torch.Tensor]) -> None:
    import torch

    with torch.no_grad():
        for tensor, content in zip(tensors, contents, strict=False):
            # What was expanded has one place for several elements.
            if tensor.shape == content.shape and tensor.dtype == content.dtype and 0 not in tensor.stride():
                tensor.copy_(content)


def _moved(content: torch.Tensor, move: float) -> torch.Tensor:
    import torch

    if content.dtype == torch.bool:
        return ~content if move else content
    if not content.dtype.is_floating_point and not content.dtype.is_complex and math.isnan(move):
        return content
    return content + (move if content.dtype.is_floating_point or content.dtype.is_complex else int(move))


def _memory_of_all(values: Any) -> set[int]:
    import torch
    from torch.utils import _pytree

    return {memory_of(v) for v in _pytree.tree_leaves(values) if isinstance(v, torch.Tensor)} - {0}
