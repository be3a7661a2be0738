"""What is written in place while a run is recorded, told to every other tensor of the same memory.

torch's tracer gives the tensor that is written a new value in the graph, and no other: behind `y.mT.relu_()` the
recorded `y` is as before, and the exporter follows slices alone. Here each view is known by its parent and the call
that made it. What is written into a view is put back into its parents, and the other views are taken from them anew.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from trtconv.core.errors import UnsupportedError
from trtconv.export.symbolic.recording.tracer import unrecorded

Call = Callable[[], Any]
# Calls whose result has the parent's elements in the parent's order.
SAME_ORDER = frozenset(
    ("view", "reshape", "flatten", "ravel", "unflatten", "unsqueeze", "squeeze", "view_as", "reshape_as", "detach",
     "alias", "contiguous", "Tensor.data")
)  # fmt: skip
# Calls that undo themselves.
SELF_INVERSE = frozenset(("transpose", "swapaxes", "swapdims", "t", "adjoint"))


@dataclass(frozen=True, eq=False)
class RecordedView:
    """A tensor that shares its memory with `parent`: result number `index` of `call`."""

    tensor: weakref.ref[Any] | None
    parent: Any
    function: Callable[..., Any]
    name: str
    arguments: tuple[Any, ...]
    named: Mapping[str, Any]
    call: Call
    index: int


@dataclass(frozen=True, eq=False)
class StandIn:
    """A tensor with memory of its own in place of a view of `parent`, which `take` takes of a tensor of its shape."""

    tensor: weakref.ref[Any]
    parent: Any
    name: str
    take: Callable[[Any], Any]
    index: int


@dataclass
class RecordedAliases:
    """The views of one recorded run, by the identity of their tensors and in the order in which they were made."""

    views: dict[int, RecordedView] = field(default_factory=dict)
    stand_ins: dict[int, StandIn] = field(default_factory=dict)
    # The first tensor of each memory, which lives as long as the run does once it was written.
    owners: dict[int, Callable[[], Any]] = field(default_factory=dict)
    written: dict[int, Any] = field(default_factory=dict)
    # What is put into a stand-in then comes from its parent, and is not written back.
    taking_anew: bool = False

    def note_copies(self, name: str, args: Sequence[Any], result: Any, take: Callable[[Any], Any]) -> None:
        """Watch what a handler gave in place of a view of the first argument.

        `take` is what the handler gives for another tensor of the argument's shape.
        """
        if not gives_views(name):
            return
        memory, parent = {memory_of(t) for t in tensors_in(args)}, args[0] if args else None
        for index, tensor in enumerate(result if isinstance(result, (tuple, list)) else (result,)):
            if _is_tensor(tensor) and memory_of(tensor) not in memory:
                key = id(tensor)
                self.stand_ins[key] = StandIn(weakref.ref(tensor, self._forget(key)), parent, name, take, index)

    def follow(
        self, function: Callable[..., Any], name: str, args: Sequence[Any], named: Mapping[str, Any], call: Call
    ) -> Any:
        """The result of a call; afterwards each tensor of memory that it wrote has its new value in the graph.

        Raises UnsupportedError where the call writes into a tensor that stands for a view of none of its tensors.
        """
        import torch

        if torch.compiler.is_dynamo_compiling():
            # The branches of a torch.cond, which have to be functions: torch refuses writes in them.
            return call()
        operands = list(tensors_in((*args, *named.values())))
        versions = [_version(t) for t in operands]
        recorded = torch.jit.is_tracing()
        self.recognise(operands)
        result = call()
        written = [t for t, version in zip(operands, versions, strict=True) if _version(t) != version]
        # A list of tensors may hold several views of one, each of which has its own new value.
        values = [torch._C._get_value_trace(t) for t in written] if recorded and len(written) > 1 else []
        for index, tensor in enumerate(written):
            if values:
                torch._C._set_value_trace(tensor, values[index])
            if recorded:
                self.written.setdefault(memory_of(tensor), self._owner(memory_of(tensor)))
                # One of another shape that was a stranger before the call is refused now that its memory is written.
                self.recognise((tensor,))
                self._tell_others(tensor)
            self._write_back(tensor)
            self._take_anew(memory_of(tensor))
        if not recorded:
            return result
        self._note_views(RecordedView(None, None, function, name, tuple(args[1:]), named, call, 0), operands, result)
        return result

    def recognise(self, tensors: Sequence[Any]) -> None:
        """Take tensors of a recorded run that share the memory of others, and come from no call, for views of those.

        `nn.Parameter(y)`, `torch.Tensor(y)` and `y.as_subclass(T)` are seen by no mode for functions. Raises
        UnsupportedError for one of another shape, of memory that was written.
        """
        import torch

        for tensor in tensors if torch.jit.is_tracing() else ():
            key, memory = id(tensor), memory_of(tensor)
            if not memory or key in self.views or key in self.stand_ins:
                continue
            owner = self._owner(memory)
            if owner is None or owner is tensor:
                self.owners[memory] = weakref.ref(tensor)
            elif _lies_as(tensor, owner):
                reference = weakref.ref(tensor, self._forget(key))
                self.views[key] = RecordedView(
                    reference, owner, _itself, "alias", (), {}, partial(_itself, owner), 0
                )
                if memory in self.written:
                    _set_value(tensor, owner)
            elif memory in self.written:
                raise UnsupportedError(
                    "a tensor that no function of torch gave shares memory that forward writes into",
                    hint="write into the tensor itself, or copy it first (x.clone())",
                )

    def _owner(self, memory: int) -> Any:
        return self.owners[memory]() if memory in self.owners else None

    def _note_views(self, origin: RecordedView, operands: Sequence[Any], result: Any) -> None:
        memory = {memory_of(t): t for t in reversed(operands)}
        for index, tensor in enumerate(result if isinstance(result, (tuple, list)) else (result,)):
            if not _is_tensor(tensor) or any(tensor is t for t in operands):
                continue
            parent = memory.get(memory_of(tensor))
            if parent is None:
                self.recognise((tensor,))
            else:
                key = id(tensor)
                reference = weakref.ref(tensor, self._forget(key))
                self.views[key] = replace(origin, tensor=reference, parent=parent, index=index)

    def _forget(self, key: int) -> Callable[[Any], None]:
        def forget(_: Any) -> None:
            self.views.pop(key, None)
            self.stand_ins.pop(key, None)

        return forget

    def _write_back(self, tensor: Any) -> None:
        """Where a stand-in was written, or a view of one, write its elements into the tensor that it shows."""
        import torch

        memory = 0 if self.taking_anew else memory_of(tensor)
        for stand_in in list(self.stand_ins.values()):
            elements, parent = stand_in.tensor(), stand_in.parent
            if elements is None or not memory or memory_of(elements) != memory:
                continue
            if not _is_tensor(parent):
                raise UnsupportedError(
                    f"what is written into {stand_in.name}(...) never reaches its tensor in a file",
                    hint="write into the tensor itself, as by an index, torch.where or index_put",
                )
            written = _with_elements(parent, elements, stand_in.take, stand_in.index)
            copy = torch.Tensor.copy_
            self.follow(copy, "copy_", (parent, written), {}, partial(copy, parent, written))

    def _take_anew(self, memory: int) -> None:
        """Give the stand-ins for views of that memory, in which something was written, its elements."""
        import torch

        copy = torch.Tensor.copy_
        for stand_in in list(self.stand_ins.values()):
            elements, parent = stand_in.tensor(), stand_in.parent
            if elements is None or not _is_tensor(parent) or not memory or memory_of(parent) != memory:
                continue
            view = _result_at(stand_in.take(parent), stand_in.index)
            before, self.taking_anew = self.taking_anew, True
            try:
                self.follow(copy, "copy_", (elements, view), {}, partial(copy, elements, view))
            finally:
                self.taking_anew = before

    def _tell_others(self, written: Any) -> None:
        """Put what was written into the parents, and take every other view of that memory anew."""
        current, root = {id(written)}, written
        while (view := self.views.get(id(root))) is not None:
            _set_value(view.parent, _put_back(view, root))
            root = view.parent
            current.add(id(root))
        for key, view in list(self.views.items()):
            # In the order in which they were made: a parent before its views.
            tensor = view.tensor() if view.tensor is not None else None
            if key in current or tensor is None or not self._descends(view, root):
                continue
            _set_value(tensor, _result_at(view.call(), view.index))

    def _descends(self, view: RecordedView, root: Any) -> bool:
        parent = view.parent
        while parent is not root and id(parent) in self.views:
            parent = self.views[id(parent)].parent
        return parent is root


@cache
def gives_views(name: str) -> bool:
    """True for an operator of aten whose result is a view of its first argument, by torch's own schemas."""
    import torch

    packet = getattr(torch.ops.aten, name.rpartition(".")[2], None)
    if packet is None or name.startswith("_"):
        return False
    schemas = [getattr(packet, overload)._schema for overload in packet.overloads()]
    infos = [value.alias_info for schema in schemas for value in schema.returns]
    return any(info is not None and not info.is_write for info in infos)


def _put_back(view: RecordedView, tensor: Any) -> Any:
    """The parent with the elements of a view of it replaced, as a tensor of its own."""
    parent, index = view.parent, view.arguments[0] if view.arguments else None
    if view.name in SAME_ORDER:
        return tensor.reshape(parent.shape)
    if view.name in SELF_INVERSE:
        return view.function(tensor, *view.arguments, **view.named)
    if view.name == "__getitem__" and _is_basic(index):
        written = parent.clone()
        written[index] = tensor
        return written
    return _with_elements(parent, tensor, lambda x: view.function(x, *view.arguments, **view.named), view.index)


def _with_elements(parent: Any, elements: Any, take: Callable[[Any], Any], index: int) -> Any:
    """The parent with the elements of a view of it replaced.

    Where each lies is told by the same view of the numbers of the parent's elements.
    """
    import torch

    flat = torch.ones_like(parent, dtype=torch.int64).reshape(-1)
    positions = _result_at(take((flat.cumsum(0) - 1).reshape(parent.shape)), index)
    return parent.reshape(-1).scatter(0, positions.reshape(-1), elements.reshape(-1)).reshape(parent.shape)


def _result_at(result: Any, index: int) -> Any:
    """One of several results of a call, or the only one."""
    return result[index] if isinstance(result, (tuple, list)) else result


def _itself(tensor: Any) -> Any:
    return tensor


def _lies_as(tensor: Any, other: Any) -> bool:
    """True for two tensors with the same elements of one memory in the same order."""
    with unrecorded():
        layouts = [(t.dtype, t.shape, t.stride(), t.storage_offset()) for t in (tensor, other)]
    return layouts[0] == layouts[1]


def _is_basic(index: Any) -> bool:
    """True for slices and numbers; the tracer loses what is written through an index with a new axis."""
    parts = index if isinstance(index, tuple) else (index,)
    return not any(part is None or _is_tensor(part) or isinstance(part, (list, bool)) for part in parts)


def _set_value(tensor: Any, other: Any) -> None:
    """Let the graph's value of one tensor be that of another."""
    import torch

    torch._C._set_value_trace(tensor, torch._C._get_value_trace(other))


def tensors_in(values: Sequence[Any]) -> Iterator[Any]:
    """The tensors among values, and in lists of them."""
    for value in values:
        if _is_tensor(value):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from (part for part in value if _is_tensor(part))


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _version(tensor: Any) -> int:
    return 0 if tensor.is_inference() else int(tensor._version)


def memory_of(tensor: Any) -> int:
    """What tells the memory of a strided tensor from that of others while it lives; 0 of any other, and of none."""
    import torch

    if tensor.layout is not torch.strided:
        return 0
    try:
        return int(tensor.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):
        return 0
