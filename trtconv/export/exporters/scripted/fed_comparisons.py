"""Inputs on the boundaries of comparisons that a run of the module itself makes with what it was fed.

The decisions of a file are probed in its graph (`trtconv.proof.probes`). One in the body of a Loop stands for as many
as the loop has steps, each with a number of its own (`x[:, t] > 40.0 + int(t / 4)`), which may be another in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import TrtconvError
from trtconv.core.tensors import value_ranges
from trtconv.export.symbolic.arithmetic.half_precision import COMPARISONS
from trtconv.proof.probes.boundaries import Boundaries

if TYPE_CHECKING:
    import numpy as np
    import torch

    from trtconv.export.exporters.attempt import ExportTask
    from trtconv.proof.reference import ReferenceSample

    Array = np.ndarray[Any, np.dtype[Any]]

COPIES = frozenset(("clone", "_to_copy", "contiguous", "lift_fresh"))
# Elements may be compared with several numbers; each set of feeds has one of them for each element.
MOST_SETS, MOST_COMPARED = 2, 1 << 20
# Beside a boundary means so many roundings of the input's type away.
AWAY = 256
# On it, under it, over it.
SIDES = (0, -1, 1)


@dataclass(frozen=True)
class Compared:
    """Elements of an input (by their number in it) with what they were compared to, in FP64."""

    name: str
    elements: Array
    numbers: Array


def samples_as_fed(job: ExportTask, before: int) -> list[ReferenceSample]:
    """What the module gives on the boundaries of its comparisons, at points numbered after so many before them.

    It is watched at the first sizes and the largest.
    """
    random = [s for s in job.samples.items if s.point.values == "random"]
    largest = max(random, key=lambda s: sum(v.nbytes for v in s.inputs.values()))
    bounds = value_ranges(job.request.inputs)
    samples: list[ReferenceSample] = []
    for base in {s.point: s for s in (job.samples.items[0], largest)}.values():
        with suppress(TrtconvError):
            compared = compared_as_fed(job, base.inputs)
            feeds = list(boundary_feeds(base.inputs, compared, bounds))
            probes = Boundaries(tuple(f for f, _ in feeds), len(compared), (), tuple(p for _, p in feeds))
            samples += probes.samples(job.runner, base.point, before + len(samples))
    return samples


def compared_as_fed(job: ExportTask, inputs: Mapping[str, Array]) -> list[Compared]:
    """The comparisons of a run with elements of the inputs, or copies of them. Raises what the runner raises."""
    compared: list[Compared] = []
    job.runner.watched(inputs, lambda tensors: _watching(tensors, compared))
    return compared


def _watching(tensors: Mapping[str, torch.Tensor], compared: list[Compared]) -> Any:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    # By the address of a tensor's memory: the input, and which of its elements lies where.
    origins: dict[int, tuple[str, torch.Tensor]] = {}
    # Memory that is used again would have a wrong origin.
    alive = list(tensors.values())

    def address(tensor: torch.Tensor) -> int:
        return int(tensor.untyped_storage().data_ptr())

    def origin(tensor: Any) -> tuple[str, torch.Tensor] | None:
        if not isinstance(tensor, torch.Tensor) or address(tensor) not in origins:
            return None
        name, elements = origins[address(tensor)]
        return name, elements.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def note(operand: Any, other: Any) -> None:
        traced = origin(operand)
        if traced is None or origin(other) is not None or sum(c.elements.size for c in compared) > MOST_COMPARED:
            return
        if isinstance(other, torch.Tensor) and other.dtype.is_complex:
            return
        numbers = other.double() if isinstance(other, torch.Tensor) else torch.tensor(float(other), dtype=torch.float64)
        elements, numbers = torch.broadcast_tensors(traced[1], numbers)
        compared.append(Compared(traced[0], elements.reshape(-1).numpy().copy(), numbers.reshape(-1).numpy().copy()))

    class Watching(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            name = func.overloadpacket.__name__
            if name in COMPARISONS and len(args) > 1:
                note(args[0], args[1])
                note(args[1], args[0])
            elif name in COPIES and isinstance(result, torch.Tensor) and result.is_contiguous():
                traced = origin(args[0])
                if traced is not None and result.storage_offset() == 0 and address(result) not in origins:
                    origins[address(result)] = traced[0], traced[1].reshape(-1).clone()
                    alive.append(result)
            return result

    for name, tensor in tensors.items():
        if tensor.numel() and not tensor.dtype.is_complex and tensor.dtype != torch.bool:
            origins[address(tensor)] = name, torch.arange(tensor.numel())
    return Watching()


def boundary_feeds(
    base: Mapping[str, Array], compared: list[Compared], bounds: Mapping[str, tuple[float, float]]
) -> Iterator[tuple[dict[str, Array], dict[str, Array]]]:
    """Inputs like `base` on the boundaries, under and over them in turn, and which of their elements were set."""
    import numpy as np

    waiting = compared
    for _ in range(MOST_SETS):
        targets = {n: np.full(v.size, np.nan) for n, v in base.items()}
        left = []
        for one in waiting:
            target = targets[one.name]
            free = np.isnan(target[one.elements]) & np.isfinite(one.numbers)
            target[one.elements[free]] = one.numbers[free]
            if not free.all():
                left.append(Compared(one.name, one.elements[~free], one.numbers[~free]))
        if all(np.isnan(t).all() for t in targets.values()):
            return
        for shift in range(len(SIDES)):
            feed, pinned = {}, {}
            for name, value in base.items():
                feed[name], pinned[name] = _at(value, targets[name], shift, bounds.get(name, (-np.inf, np.inf)))
            yield feed, {n: p for n, p in pinned.items() if p.any()}
        waiting = left


def _at(value: Array, target: Array, shift: int, bounds: tuple[float, float]) -> tuple[Array, Array]:
    """The input with elements at their targets or beside them, and which those are."""
    import numpy as np

    side = np.asarray(SIDES)[(np.arange(target.size) + shift) % len(SIDES)]
    with np.errstate(all="ignore"):
        if value.dtype.kind in "iu":
            under, over = np.ceil(target) - 1, np.floor(target) + 1
            chosen = np.choose(side + 1, (under, np.round(target), over))
            low, high = float(np.iinfo(value.dtype).min), float(np.iinfo(value.dtype).max)
        else:
            # A number that the type has not is rounded, in the file perhaps once more: only its sides are certain. So
            # it is of FP64, in which a file does not compute its numbers; a note tells those.
            kind = np.float32 if value.dtype == np.float64 else value.dtype
            exact = target.astype(kind).astype(np.float64) == target
            step = AWAY * float(np.finfo(kind).eps) * np.maximum(np.abs(target), 1e-3)
            chosen = target + np.where(exact, side, np.where(side == 0, 1, side)) * step
            low, high = float(np.finfo(value.dtype).min), float(np.finfo(value.dtype).max)
        good = np.isfinite(target) & (chosen >= max(low, bounds[0])) & (chosen <= min(high, bounds[1]))
        flat = value.reshape(-1).copy()
        flat[good] = chosen[good].astype(value.dtype)
    return flat.reshape(value.shape), good.reshape(value.shape)
