"""One run of a module's forward at candidate inputs: whether it ran, how far it came, what stopped it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import TrtconvError
from trtconv.core.tensors import TensorSpec
from trtconv.core.text.error_text import error_text, first_line
from trtconv.export.module.binding import bind_inputs
from trtconv.export.module.runner import forward_of, to_tensor
from trtconv.export.module.user_code import blame
from trtconv.export.signature.asked_parts import AskedParts
from trtconv.proof.points import SamplePoint, sample_inputs

if TYPE_CHECKING:
    import torch
    from torch import nn

# What reads no values: it is no step forward, and what fails after it is not its fault.
_LOOKS = {"__get__", "size", "dim", "numel", "__len__", "is_floating_point"}
# The same values under another shape: what reads the result reads the input, and it is no step forward either.
_VIEWS = {"transpose", "permute", "unsqueeze", "squeeze", "view", "reshape", "contiguous", "__getitem__", "flatten",
          "swapaxes", "movedim", "expand", "to", "float", "cpu", "clone", "detach"}  # fmt: skip
# With a number beside the input: lengths are shortened as the frames that they count.
_SHORTENINGS = {"floor_divide", "__floordiv__", "div", "__truediv__", "add", "__add__", "sub", "__sub__", "mul",
                "__mul__", "ceil", "floor"}  # fmt: skip
_COMPARISONS = {"lt", "le", "gt", "ge", "eq", "ne", "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"}
_ARITHMETIC = {"add", "__add__", "__radd__", "sub", "__sub__", "__rsub__", "mul", "__mul__", "__rmul__", "div",
               "__truediv__", "__rtruediv__", "maximum", "minimum"}  # fmt: skip
_TO_INTEGERS = {"long", "int", "__int__", "__index__"}
_SHAPE = re.compile(r"[(\[]\s*(\d+(?:\s*,\s*\d+)+)\s*[)\]]")
_MOST_SIZES = 8


@dataclass(frozen=True)
class ForwardRun:
    """What a run showed. `operations` counts those that ended well; the rest is of the one that did not.

    `sizes` and `shapes` are those that its operands and its message speak of, `inputs` those that it read. `counts` are
    inputs that forward takes for whole numbers, `rows` those that are looked up in a table of so many rows. `used` are
    all that some operation read, `iterated` those whose rows forward goes through, `asked_paths` are parts that forward
    wants of an input (`batch.images`). `flat`: the failed operation multiplies rows by a matrix.
    """

    passed: bool
    operations: int
    sizes: tuple[int, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()
    inputs: frozenset[str] = frozenset()
    counts: frozenset[str] = frozenset()
    rows: Mapping[str, int] = field(default_factory=dict)
    error: str = ""
    where: str = ""
    used: frozenset[str] = frozenset()
    asked_paths: tuple[str, ...] = ()
    iterated: frozenset[str] = frozenset()
    flat: bool = False


def attempt_run(
    module: nn.Module,
    specs: Sequence[TensorSpec],
    sizes: Mapping[str, int],
    base: Path,
    *,
    watched: bool = True,
    empty: Collection[str] = (),
) -> ForwardRun:
    """Run forward once in the mode that the module is in, with values drawn at these sizes.

    Without `watched` it runs as it does for a user: some layers of torch have a fast path, with conditions of its own,
    that they leave while somebody watches; nothing but `passed` is told then. In place of the inputs in `empty` forward
    gets a dict without keys.
    """
    import torch

    names = [s.name for s in specs]
    binding = bind_inputs(forward_of(module), names)
    try:
        arrays = sample_inputs(specs, SamplePoint("guess", tuple(sizes.items())))
    except TrtconvError as error:
        return ForwardRun(False, 0, error=error.message)
    tensors = {name: to_tensor(arrays[name]) for name in names}
    watch = _watching(tensors)
    parts = AskedParts(empty)
    positional, keywords = parts.arguments(binding, list(tensors.values()))
    try:
        with torch.no_grad(), watch if watched else nullcontext():
            module(*positional, **keywords)
    except Exception as error:  # noqa: BLE001 - whatever the user's code raises says that these inputs do not fit
        text = error_text(error)
        message = f"{type(error).__name__}: {first_line(error)[:200]}"
        numbers = [int(n) for n in re.findall(r"\d+", text) if len(n) < 7]
        message_shapes = (tuple(int(n) for n in s.split(",")) for s in _SHAPE.findall(text))
        weights = watch.weight_shapes()
        shapes = tuple(
            dict.fromkeys([*(s for s in message_shapes if s not in weights), *watch.other_shapes(sizes.get("N"))])
        )
        ordered = tuple(dict.fromkeys([*numbers, *watch.operand_sizes()]))[:_MOST_SIZES]
        where = blame(error, base, packages=True) or ""
        asked_paths = (*watch.asked_paths, *parts.asked_by(error, forward_of(module), names, watch.iterated))
        return ForwardRun(
            False, watch.operations, ordered, shapes, watch.read, watch.counts(), watch.rows, message, where,
            frozenset(watch.used), tuple(dict.fromkeys(asked_paths)), flat=watch.last == "linear",
        )  # fmt: skip
    used, iterated = frozenset(watch.used), frozenset(watch.iterated)
    return ForwardRun(True, watch.operations, counts=watch.counts(), rows=watch.rows, used=used, iterated=iterated)


def _watching(tensors: Mapping[str, torch.Tensor]) -> Any:
    """A mode of torch that follows the inputs through views, and sees each operation before it runs."""
    from torch import Tensor
    from torch.overrides import TorchFunctionMode

    class Watch(TorchFunctionMode):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.operations = 0
            self.read: frozenset[str] = frozenset()
            self.rows: dict[str, int] = {}
            self.used: set[str] = set()
            self.asked_paths: list[str] = []
            self.iterated: set[str] = set()
            self.last = ""
            self._counts: set[str] = set()
            self._operands: list[Tensor] = []
            self._numbers: list[int] = []
            # The tensors are held, so that no other one gets the identity of one that is gone.
            self._origins = {id(t): (name, t) for name, t in tensors.items()}

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name, keywords = getattr(func, "__name__", ""), kwargs or {}
            if name in _LOOKS:
                return func(*args, **keywords)
            operands = list(_flat([*args, *keywords.values()]))
            origins = [self._origins[id(o)][0] for o in operands if id(o) in self._origins]
            self.read, self.last = frozenset(origins), name
            # What iterates over a tensor takes it apart so; with an axis of its own it is the user's call.
            self.iterated |= self.read if name == "unbind" and not keywords and tuple(args[1:]) in ((), (0,)) else set()
            if name == "__getitem__" and origins and isinstance(args[1], str):  # it is no tensor, but a dict
                self.asked_paths.append(f"{origins[0]}.{args[1]}")
            self.used |= self.read if name not in _VIEWS else set()
            self._operands = [o for o in operands if isinstance(o, Tensor) and id(o) not in self._origins]
            self._numbers = [o for o in operands if isinstance(o, int) and not isinstance(o, bool)]
            for origin in origins:
                self._learn(origin, name, args)
            result = func(*args, **keywords)
            self.operations += name not in _VIEWS
            follows = name in _VIEWS or (name in _SHORTENINGS and not self._operands)
            if follows and origins and isinstance(result, Tensor):
                self._origins[id(result)] = (origins[0], result)
            return result

        def _learn(self, origin: str, name: str, args: Sequence[Any]) -> None:
            others = [o for o in self._operands if isinstance(o, Tensor)]
            if name == "embedding" and others:
                self.rows.setdefault(origin, others[0].shape[0])
            whole = any(not o.is_floating_point() and str(o.dtype) != "torch.bool" and o.dim() for o in others)
            converted = name == "to" and any(str(a) in ("torch.int64", "torch.int32") for a in args[1:])
            # Floats need no conversion to floats; of larger inputs it may be one from half precision.
            widened = name == "float" and tensors[origin].dim() <= 1
            if (name in _COMPARISONS and whole) or name in _TO_INTEGERS or converted or widened:
                self._counts.add(origin)

        def counts(self) -> frozenset[str]:
            return frozenset(self._counts)

        def other_shapes(self, batch: int | None) -> list[tuple[int, ...]]:
            """Shapes of batches beside the input in arithmetic, element by element: it has one of these, likely."""
            if self.last not in _ARITHMETIC:
                return []
            return [tuple(t.shape) for t in self._operands if t.dim() > 1 and t.shape[0] == batch]

        def weight_shapes(self) -> set[tuple[int, ...]]:
            """Shapes of the operation's weights: a message speaks of them, and no input has them."""
            from torch import nn

            return {tuple(t.shape) for t in self._operands if isinstance(t, nn.Parameter)}

        def operand_sizes(self) -> list[int]:
            """Channels as the operation expects them: sizes of its weights, and of the groups of a convolution."""
            weights = [n for t in self._operands for n in (*t.shape[1:2], *t.shape)]
            grouped = [t.shape[1] * n for t in self._operands if t.dim() > 2 for n in self._numbers if n > 1]
            return [*weights, *grouped]

    return Watch()


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value
