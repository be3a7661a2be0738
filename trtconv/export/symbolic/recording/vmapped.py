"""`torch.vmap` while a module is traced: members run one by one, samples as a batch where torch fixes their sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

# Members of an ensemble that become nodes of their own. Beyond, the batched form of torch is the smaller graph.
MOST_MEMBERS = 16
# Functions of [N, C, ...] whose samples do not know of each other; with the spatial axes of those that take [C, ...].
OF_A_BATCH = {
    f"{name}{rank}d": rank
    for name in ("conv", "conv_transpose", "avg_pool", "max_pool", "adaptive_avg_pool", "adaptive_max_pool")
    for rank in (1, 2, 3)
} | dict.fromkeys(("batch_norm", "group_norm", "instance_norm", "interpolate"))
OF_THE_LAST_AXES = frozenset({"layer_norm", "rms_norm", "pixel_shuffle", "pixel_unshuffle"})
# Functions of an axis counted from the first, which with the samples in front is the next.
OF_AN_AXIS = frozenset({"cat", "stack"})


@contextmanager
def vmap_by_sizes() -> Iterator[None]:
    """In the block, `torch.vmap` keeps the symbolic sizes of what it maps over.

    torch's own rules of some functions (`linear` and `conv` of batched weights, `layer_norm`, `cat`, `interpolate`)
    read all sizes as numbers, and the trace would hold at one size only.
    """
    from torch._functorch import vmap

    batched = vmap._flat_vmap

    def run(
        func: Any, size: Any, in_dims: Any, inputs: Any, spec: Any, out_dims: Any, randomness: str, **named: Any
    ) -> Any:
        if randomness == "error" and _are_members(size, in_dims, inputs):
            return _stacked(func, size, in_dims, inputs, spec, out_dims, named)
        with _samples_as_batch(size):
            return batched(func, size, in_dims, inputs, spec, out_dims, randomness, **named)

    with mock.patch.object(vmap, "_flat_vmap", run):
        yield


def _are_members(size: Any, in_dims: Sequence[int | None], inputs: Sequence[Any]) -> bool:
    """True for a few of something computed with; indices are those of a mask, which is made for all pairs at once."""
    import torch

    return (
        isinstance(size, int)
        and size <= MOST_MEMBERS
        and any(
            dim is not None and isinstance(value, torch.Tensor) and value.is_floating_point()
            for dim, value in zip(in_dims, inputs, strict=True)
        )
    )


def _stacked(
    func: Any,
    size: int,
    in_dims: Sequence[int | None],
    inputs: Sequence[Any],
    spec: Any,
    out_dims: Any,
    named: Mapping[str, Any],
) -> Any:
    import torch
    from torch.utils import _pytree

    results = []
    for i in range(size):
        member = [v if dim is None else v.select(dim, i) for v, dim in zip(inputs, in_dims, strict=True)]
        results.append(func(*_pytree.tree_unflatten(member, spec), **named))
    structure = _pytree.tree_structure(results[0])
    if isinstance(results[0], torch.Tensor) and isinstance(out_dims, tuple):
        # torch takes `out_dims=(0,)` for one output, too.
        (out_dims,) = out_dims
    dims = _pytree._broadcast_to_and_flatten(out_dims, structure)
    if dims is None:
        raise ValueError("vmap: out_dims is not compatible with the structure of the outputs")
    by_output = zip(*(_pytree.tree_leaves(result) for result in results), strict=True)
    outputs = [
        parts[0] if dim is None else torch.stack(parts, dim) for parts, dim in zip(by_output, dims, strict=True)
    ]
    return _pytree.tree_unflatten(outputs, structure)


@contextmanager
def _samples_as_batch(size: Any) -> Iterator[None]:
    """In the block, which is one `vmap` over `size` samples, functions see all of them where torch fixes sizes."""
    import torch
    from torch.overrides import TorchFunctionMode

    samples = _Samples((torch._C._functorch.maybe_current_level() or 0) + 1, size)

    class SamplesAsBatch(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            named = kwargs or {}
            result = samples.call(func, getattr(func, "__name__", ""), args, named)
            return func(*args, **named) if result is NotImplemented else result

    with SamplesAsBatch():
        yield


@dataclass(frozen=True)
class _Samples:
    """The samples of one `vmap`: its level among those that are open, and how many there are (a number or a size)."""

    level: int
    size: Any

    def call(self, func: Callable[..., Any], name: str, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """The function of all samples at once, or NotImplemented for one that torch maps well itself."""
        import torch

        if name == "linear" and len(args) > 1 and self.holds(args[1]):
            product = args[0] @ args[1].transpose(-1, -2)
            bias = args[2] if len(args) > 2 else named.get("bias")
            return product if bias is None else product + bias
        if name in OF_AN_AXIS and args and any(map(self.holds, args[0])):
            dim = args[1] if len(args) > 1 else named.get("dim", 0)
            return self.mapped(func([*map(self.all_of, args[0])], dim + 1 if dim >= 0 else dim))
        if not args or not self.holds(args[0]) or any(map(self.holds, (*args[1:], *named.values()))):
            return NotImplemented
        if name == "batch_norm" and (named.get("training") or True in args[5:6]):
            # Each sample has statistics of its own.
            return NotImplemented
        is_one_of_batch = name in OF_A_BATCH and args[0].dim() - 1 == OF_A_BATCH[name]
        if name in OF_THE_LAST_AXES or is_one_of_batch:
            result = func(self.all_of(args[0]), *args[1:], **named)
            return self.mapped(result) if isinstance(result, torch.Tensor) else NotImplemented
        if name in OF_A_BATCH:
            every = self.all_of(args[0])
            batch = every.shape[1]
            result = func(every.reshape(self.size * batch, *every.shape[2:]), *args[1:], **named)
            if isinstance(result, torch.Tensor):
                return self.mapped(result.reshape(self.size, batch, *result.shape[1:]))
        return NotImplemented

    def holds(self, value: Any) -> bool:
        """True for a tensor of which the function under this `vmap` sees one sample."""
        import torch

        functorch = torch._C._functorch
        return (
            isinstance(value, torch.Tensor)
            and functorch.is_batchedtensor(value)
            and bool(functorch.maybe_get_level(value) == self.level)
        )

    def all_of(self, tensor: Any) -> Any:
        """The tensor with the samples as its first axis: [size, ...]."""
        from torch._functorch import predispatch

        return predispatch._remove_batch_dim(tensor, self.level, self.size, 0)

    def mapped(self, tensor: Any) -> Any:
        """A tensor [size, ...] as its samples."""
        from torch._functorch import predispatch

        return predispatch._add_batch_dim(tensor, 0, self.level)
