"""What a module keeps between calls because it was computed for one shape of its inputs.

A detector's head keeps its anchors until an image of another size comes: `if self.shape != shape: self.anchors = ...`.
Traced with what an earlier run left there, the file holds the anchors of one size, or the comparison of shapes is taken
for a decision by size. So a trace begins with such a cache as it was before the first run, and leaves no trace in it.

A cache shows in three runs, at one size and twice at another: it changes with the size, and not when a size comes
again. What only grows to the largest size, or is made once, stays as it is.

A module that was run before it got here (a constructor that tries it out, a pickled one) has its caches full from the
start. These are emptied: sizes in them become -1, tensors have no elements, which fits no input.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import TrtconvError
from trtconv.export.sizes.shared_caches import SharedCaches
from trtconv.export.sizes.symbolic_keys import SymbolicKeys
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    from torch import nn

    from trtconv.export.module.runner import ModuleRunner

MISSING = object()
# Where a module of torch holds its parts.
PARTS = "_modules"
# Where it holds what it is made of. A first call that folds a norm into a layer, or removes a hook, changes these.
STRUCTURE = (PARTS, "_parameters", "_forward_pre_hooks", "_forward_hooks")
# The class of a part, which a part that builds itself at its first call changes; `content` is the part.
CLASS = "__class__"
Slot = tuple[int, str]


@dataclass(frozen=True)
class CachedAttribute:
    """An entry of a `__dict__` or of a module's buffers, with its value and what a container had in it.

    `plain` is the `__dict__` of a buffer's module.
    """

    space: dict[str, Any]
    name: str
    value: Any
    content: Any = None
    plain: dict[str, Any] | None = None

    @property
    def slot(self) -> Slot:
        """What tells it from every other attribute."""
        return id(self.space), self.name

    def same(self, other: CachedAttribute | None) -> bool:
        """True when the other has the same object, with the same things in it."""
        return other is not None and self.value is other.value and _same_content(self.content, other.content)


@dataclass(frozen=True)
class ShapeCaches:
    """`initial`: the caches as they were before the first run; `rewritten`: attributes that every run sets anew.

    `shared` are those outside of the module.
    """

    initial: tuple[CachedAttribute, ...] = ()
    rewritten: tuple[CachedAttribute, ...] = ()
    shared: SharedCaches = field(default_factory=SharedCaches)

    def __contains__(self, slot: object) -> bool:
        return any(a.slot == slot for a in self.initial)

    @contextmanager
    def emptied(self) -> Iterator[None]:
        """For the time of the block the caches are as before the first run; then again what they were."""
        changing = (*self.initial, *self.rewritten)
        before = [replace(a, value=a.space.get(a.name, MISSING)) for a in changing]
        try:
            for attribute in changing:
                if attribute.plain is not None:
                    # torch.export takes an assignment to a buffer for a change of state.
                    attribute.plain[attribute.name] = attribute.space.pop(attribute.name, MISSING)
            for attribute in self.initial:
                _put(attribute.plain or attribute.space, attribute.name, _fresh(attribute))
            with self.shared.emptied():
                yield
        finally:
            for attribute in before:
                if attribute.plain is not None:
                    attribute.plain.pop(attribute.name, None)
                _put(attribute.space, attribute.name, attribute.value)


def _values(module: nn.Module) -> dict[Slot, CachedAttribute]:
    """The attributes but for what a part is made of: a layer that is made anew is no cache."""
    return {slot: a for slot, a in attributes(module).items() if a.name not in (*STRUCTURE, CLASS)}


def attributes(module: nn.Module) -> dict[Slot, CachedAttribute]:
    """The attributes of a module and its parts, their buffers and structure included, and those of plain objects that
    they hold.
    """
    import torch
    from torch.utils.hooks import RemovableHandle

    own = set(vars(torch.nn.Module()))
    listed: dict[Slot, CachedAttribute] = {}
    for part in module.modules():
        if isinstance(part, torch.jit.ScriptModule):
            continue
        plain = vars(part)
        values = {n: v for n, v in plain.items() if n not in own}
        entries = [(part._buffers, n, v, plain) for n, v in part._buffers.items()]
        entries += [(plain, n, plain[n], None) for n in STRUCTURE] + [(plain, CLASS, type(part), None)]
        entries += [(plain, n, v, None) for n, v in values.items()]
        for value in values.values():
            # Not Python's own things, such as functions and imported modules.
            plain_object = hasattr(value, "__dict__") and type(value).__module__ != "builtins"
            if plain_object and not isinstance(value, (type, torch.Tensor, torch.nn.Module, RemovableHandle)):
                entries += [(vars(value), n, v, None) for n, v in vars(value).items()]
        for space, name, value, holder in entries:
            content: Any = dict(value) if isinstance(value, dict) else list(value) if isinstance(value, list) else None
            content = value.copy() if type(value) is deque else part if name == CLASS else content
            attribute = CachedAttribute(space, name, value, content, holder)
            listed[attribute.slot] = attribute
    return listed


@contextmanager
def same_containers(module: nn.Module) -> Iterator[None]:
    """After the block dictionaries and lists in attributes are the objects that they were, with what was in them.

    torch.export puts copies back in their place; a closure, or another part, that has the object lost sight of them.
    """
    before = [a for a in attributes(module).values() if type(a.value) in (dict, list, deque)]
    before = [a for a in before if a.name not in STRUCTURE]
    try:
        yield
    finally:
        for attribute in before:
            now = attribute.space.get(attribute.name, MISSING)
            if now is not attribute.value and type(now) is type(attribute.value):
                _refill(attribute)
                attribute.space[attribute.name] = attribute.value


@contextmanager
def same_attributes(module: nn.Module) -> Iterator[None]:
    """After the block attributes hold what they held, and containers what was in them: a trace leaves its symbols."""
    before = attributes(module)
    try:
        yield
    finally:
        now = attributes(module)
        for slot, attribute in before.items():
            if slot not in now or attribute.same(now[slot]):
                continue
            if attribute.content is not None and attribute.name not in (*STRUCTURE, CLASS):
                _refill(attribute)
            _restore(attribute, attribute.value)


def find_shape_caches(
    runner: ModuleRunner, before: Mapping[Slot, CachedAttribute], samples: Sequence[ReferenceSample]
) -> ShapeCaches:
    """The caches of a module that ran at the samples. `before` are its attributes from before the first run.

    Runs the module three times more, if runs changed any attribute at all, and once more if a cache was full.
    """
    after, nothing = _values(runner.module), ShapeCaches(shared=runner.caches.shared)
    if all(slot in before and a.same(before[slot]) for slot, a in after.items()):
        return nothing
    here = samples[0]
    shapes = [v.shape for v in here.inputs.values()]
    others = [s for s in samples if s.point.values == "random" and [v.shape for v in s.inputs.values()] != shapes]
    if not others:
        return nothing
    states = []
    for sample in (max(others, key=lambda s: sum(v.size for v in s.inputs.values())), here, here):
        runner(sample.inputs)
        states.append(_values(runner.module))
    there, first, second = states
    rewritten = [slot for slot, a in second.items() if not a.same(first.get(slot))]
    keyed = [slot for slot, a in first.items() if not a.same(there.get(slot)) and slot not in rewritten]
    # A dictionary has an entry for each shape by now.
    keyed += [s for s, a in first.items() if s not in keyed and s not in rewritten and _grew(before.get(s), a)]
    return _emptied_at_first(
        runner,
        ShapeCaches(
            tuple(before.get(s) or replace(first[s], value=MISSING, content=None) for s in keyed),
            tuple(second[s] for s in rewritten),
            runner.caches.shared,
        ),
        second,
        here,
    )


def _emptied_at_first(
    runner: ModuleRunner, caches: ShapeCaches, full: Mapping[Slot, CachedAttribute], sample: ReferenceSample
) -> ShapeCaches:
    """The caches with those emptied that were full before the first run, where the module fills them again.

    `full` are the attributes after a run, which tell a full one from an empty one.
    """
    initial = tuple(_emptied(a, full[a.slot].value) for a in caches.initial)
    if all(a is b for a, b in zip(initial, caches.initial, strict=True)):
        return caches
    emptied = replace(caches, initial=initial)
    with emptied.emptied():
        holders = [a.plain or a.space for a in initial]
        values = [space.get(a.name, MISSING) for space, a in zip(holders, initial, strict=True)]
        try:
            outputs = runner(sample.inputs)
        except TrtconvError:
            return caches
        filled = all(space.get(a.name) is not v for space, a, v in zip(holders, initial, values, strict=True))
    return emptied if filled and _close(outputs, sample.outputs) else caches


def _close(outputs: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    """True for outputs of a sound run: whether a file equals the module is shown elsewhere."""
    import numpy as np

    return outputs.keys() == expected.keys() and all(
        v.shape == expected[n].shape and np.allclose(v, expected[n], rtol=1e-3, equal_nan=True)
        for n, v in outputs.items()
    )


def _emptied(attribute: CachedAttribute, full: Any) -> CachedAttribute:
    """The attribute as it is where it is empty, and otherwise with a value that fits no input."""
    blank = _blank(attribute.value, full)
    if blank is attribute.value:
        return attribute
    return replace(attribute, value=blank, content=list(blank) if isinstance(blank, list) else None)


def _blank(value: Any, full: Any) -> Any:
    """A full value without what makes it fit an input; the value itself where it is none of the kind of `full`."""
    import torch

    if type(value) is not type(full):
        return value
    if isinstance(value, torch.Tensor):
        return value.new_empty([0] * value.dim()) if value.numel() and value.dim() == full.dim() else value
    if isinstance(value, (list, tuple)) and value and len(value) == len(full):
        parts = [_blank(v, f) for v, f in zip(value, full, strict=True)]
        same = all(p is v for p, v in zip(parts, value, strict=True))
        return value if same or hasattr(value, "_fields") else type(value)(parts)
    return -1 if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else value


@contextmanager
def as_before_first_call(
    module: nn.Module, before: Mapping[Slot, CachedAttribute], caches: ShapeCaches
) -> Iterator[tuple[str, ...]]:
    """For the time of the block what runs made or changed, and is not a cache by shape, is as before the first run.

    Gives the names of those attributes.
    """
    after = attributes(module)
    new = _spaces_of_new_parts(before, after)
    changed = [
        a for slot, a in after.items() if not a.same(before.get(slot)) and slot not in caches and id(a.space) not in new
    ]
    # `self.conv = None` leaves the `__dict__` of a part when a layer takes the name.
    gone = [a for slot, a in before.items() if slot not in after and slot not in caches and a.name not in STRUCTURE]
    try:
        for attribute in changed:
            first = before.get(attribute.slot) or replace(attribute, value=MISSING, content=None)
            own_content = type(first.value) in (dict, list, deque) and first.name not in STRUCTURE
            _restore(first, first.content.copy() if own_content else first.value)
        for attribute in gone:
            _restore(attribute, attribute.value)
        yield tuple(_named(a, before) for a in changed)
    finally:
        for attribute in gone:
            _restore(attribute, MISSING)
        for attribute in changed:
            _restore(attribute, attribute.value)


def _restore(attribute: CachedAttribute, value: Any) -> None:
    if attribute.name in STRUCTURE and value is not MISSING:
        # The same dictionary: the handle of a hook removes it from there.
        _refill(attribute)
    elif attribute.name != CLASS:
        _put(attribute.space, attribute.name, value)
    elif value is not MISSING:
        attribute.content.__class__ = value


def _refill(attribute: CachedAttribute) -> None:
    """Put into the container what was in it, whoever else holds it."""
    container, content = attribute.value, attribute.content
    container.clear()
    put_in = container.update if isinstance(container, dict) else container.extend
    put_in(content)


def _named(changed: CachedAttribute, before: Mapping[Slot, CachedAttribute]) -> str:
    """The name of an attribute; of the parts and parameters of a module that of the first that came or went."""
    first = before.get(changed.slot)
    if changed.name not in (PARTS, "_parameters") or first is None:
        return changed.name.lstrip("_") if changed.name in STRUCTURE else changed.name
    names = [*changed.content, *first.content]
    return str(next(n for n in names if changed.content.get(n) is not first.content.get(n)))


def _spaces_of_new_parts(before: Mapping[Slot, CachedAttribute], after: Mapping[Slot, CachedAttribute]) -> set[int]:
    """What holds the attributes of parts that runs made, which go and come as a whole; not what others had before."""
    spaces = [a.space for slot, a in after.items() if a.name == PARTS and slot not in before]
    inner = [vars(v) for space in spaces for v in space.values() if hasattr(v, "__dict__")]
    earlier = {id(a.space) for a in before.values()}
    return {id(s) for s in (*spaces, *(space["_buffers"] for space in spaces), *inner)} - earlier


def _grew(before: CachedAttribute | None, after: CachedAttribute) -> bool:
    return before is not None and isinstance(after.content, dict) and len(after.content) > len(before.content or ())


def _same_content(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(v is other[k] for k, v in one.items())
    if isinstance(one, (list, deque)) and isinstance(other, (list, deque)):
        return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
    return one is other


def _fresh(attribute: CachedAttribute) -> Any:
    """The initial value; of a container a copy, for what a trace puts into it is of that trace."""
    if type(attribute.value) is dict:
        return SymbolicKeys(attribute.content)
    return attribute.content.copy() if type(attribute.value) in (list, deque) else attribute.value


def _put(space: dict[str, Any], name: str, value: Any) -> None:
    if value is MISSING:
        space.pop(name, None)
    else:
        space[name] = value
