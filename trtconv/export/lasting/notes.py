"""What calls leave for later ones, told by its name: that some order of calls matters, no sample shows.

`b, self.last = self.last, x.shape[1]` and then `if b == 37 > x.shape[1]` has state of sizes, a table that keeps the
first value of each size has state of values. Tables that are made once, or for each size, are neither.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import TrtconvError
from trtconv.core.text.listing import list_first
from trtconv.export.lasting.content import content_of
from trtconv.export.lasting.outside import NamesOutside, Slot, outside_slots
from trtconv.export.lasting.rare_writes import rarely_written, versions_of, written_since
from trtconv.export.lasting.reads import WatchedNumber, reads_of_number, reads_of_tensors
from trtconv.export.module.noise.first_call import UntouchedState, as_untouched
from trtconv.export.sizes.shape_caches import STRUCTURE, ShapeCaches, attributes

if TYPE_CHECKING:
    from torch import nn

    from trtconv.export.module.runner import ModuleRunner
    from trtconv.proof.original import MakeInputs
    from trtconv.proof.sampling import Samples

    Feed = Mapping[str, Any]
    Contents = Mapping[Slot, Any]

# Names that a note has, and slots of which it is looked whether a call reads them.
MOST_NAMED, MOST_WATCHED = 3, 8
NOTHING_LASTS = (
    "an engine keeps nothing from call to call: the file equals the module at the points compared, in their order alone"
)


@dataclass(frozen=True)
class FirstState:
    """What there was before the first run, in the module and outside, and what everything had in it."""

    inside: UntouchedState
    names: NamesOutside
    contents: Contents

    @classmethod
    def of(cls, module: nn.Module, inside: UntouchedState) -> FirstState:
        """The state of a module that was not run."""
        return cls(inside, NamesOutside.of(module), _contents(_slots(module)))


def notes_on_lasting_state(
    runner: ModuleRunner, before: FirstState, samples: Samples, make: MakeInputs
) -> tuple[str, ...]:
    """A note on what depends on the sizes of earlier calls, and one on what depends on their values."""
    return tuple(f"{state}; {NOTHING_LASTS}" for state in lasting_state(runner, before, samples, make))


def lasting_state(
    runner: ModuleRunner, before: FirstState, samples: Samples, make: MakeInputs
) -> tuple[str, ...]:
    """What forward leaves by the sizes of a call, and what by its values, in words.

    Where nothing is otherwise than before the first run, the module is run once.
    """
    module, first, here = runner.module, samples.items[0], samples.cheapest
    shapes = [v.shape for v in here.inputs.values()]
    others = [s.inputs for s in samples.items if [v.shape for v in s.inputs.values()] != shapes]
    other = max(others, key=lambda feed: sum(v.size for v in feed.values()), default=None)
    now = _contents(_slots(module))
    if now == before.contents:
        versions = versions_of(_tensor_slots(module))
        # What grows for a large input may be as at first after a small one.
        try:
            runner(other or here.inputs)
            if _contents(_slots(module)) == before.contents:
                is_written = written_since(versions, _tensor_slots(module))
                return _kept(_rarely_written(runner, here.inputs)) if is_written else ()
        except TrtconvError:
            return ()
    orders = [[here.inputs], *([[other, here.inputs], [other]] if other is not None else [])]
    redrawn = make(replace(first.point, seed=first.point.seed + 1))
    try:
        by_size = [now, *(_contents_after(runner, before, feeds) for feeds in orders)]
        once, again, otherwise = (_contents_after(runner, before, [f]) for f in (first.inputs, first.inputs, redrawn))
        # What nobody could put back is otherwise after the same values, too.
        moving = _differing([once, again])
        of_values = [slot for slot in _differing([again, otherwise]) if slot not in moving]
        of_sizes = [slot for slot in _differing(by_size) if slot not in of_values]
        feeds = [here.inputs, *([other] if other is not None else [])]
        # What moves with each call is no table.
        of_sizes = [*_beside_tables(module, [s for s in of_sizes if s not in moving]), *moving]
        of_sizes = _read(runner, of_sizes, feeds)
        of_values = _read(runner, of_values, feeds)
        if not of_values:
            of_values = [slot for slot in _rarely_written(runner, here.inputs) if slot not in of_sizes]
    except TrtconvError:
        return ()
    states = [f"forward leaves {_named(of_sizes)} for the next call"] if of_sizes else []
    return (*states, *_kept(of_values))


def _kept(slots: Sequence[Slot]) -> tuple[str, ...]:
    return (f"forward keeps {_named(slots)} from the values of a call",) if slots else ()


def _rarely_written(runner: ModuleRunner, feed: Feed) -> list[Slot]:
    return rarely_written(runner, feed, lambda: _tensor_slots(runner.module))


def _tensor_slots(module: nn.Module) -> dict[Slot, list[Any]]:
    """The slots that hold tensors, parameters among them, with those."""
    slots = {slot: tensors for slot, value in _slots(module) if (tensors := _tensors_in(value))}
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                slots[Slot.of(part._parameters, name, name, inside=True)] = [parameter]
    return slots


def changed_outside(module: nn.Module, before: FirstState) -> str:
    """What has something else in it than before the first run and is not in the module, in words; empty for nothing."""
    now = _contents(_slots(module))
    return _named([slot for slot in now if not slot.inside and now[slot] != before.contents.get(slot)])


def _slots(module: nn.Module) -> Iterator[tuple[Slot, Any]]:
    for attribute in attributes(module).values():
        if attribute.name not in STRUCTURE and not attribute.name.startswith("__"):
            yield Slot.of(attribute.space, attribute.name, attribute.name, inside=True), attribute.value
    yield from outside_slots(module)


def _contents(slots: Iterable[tuple[Slot, Any]]) -> Contents:
    return {slot: content_of(value) for slot, value in slots}


def _contents_after(runner: ModuleRunner, before: FirstState, feeds: Sequence[Feed]) -> Contents:
    """What there is after calls that found everything as it was before the first run. Raises what the module raises."""
    with as_at_first(runner, before):
        for feed in feeds:
            runner(feed)
        return _contents(_slots(runner.module))


@contextmanager
def as_at_first(runner: ModuleRunner, before: FirstState) -> Iterator[None]:
    """For the time of the block the module and what is outside of it are as before the first run."""
    with (
        as_untouched(runner.module, before.inside, ShapeCaches()),
        before.names.put_back(runner.module),
        runner.caches.shared.emptied(),
    ):
        yield


def _differing(contents: Sequence[Contents]) -> list[Slot]:
    """The slots that have not the same in them; dictionaries are compared by the keys that they have in common."""
    # A function that remembers its results stands outside as itself while these are put away.
    everywhere = [slot for each in contents for slot in each if slot.inside or all(slot in c for c in contents)]
    slots = dict.fromkeys(everywhere)
    return [slot for slot in slots if any(not _agree(a.get(slot), contents[0].get(slot)) for a in contents[1:])]


def _agree(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple) and one[:1] == other[:1] == ("dict",) and one != other:
        entries = dict(one[1])
        return all(entries.get(key, value) == value for key, value in other[1])
    return bool(one == other)


def _beside_tables(module: nn.Module, slots: Sequence[Slot]) -> list[Slot]:
    """The slots but those of a table that is kept for one size: of its tensors, and of the size that goes with them."""
    values = dict(_slots(module))
    tables = {slot.inside for slot in slots if _tensors_in(values.get(slot))}
    return [slot for slot in slots if slot.inside not in tables]


def _tensors_in(value: Any) -> list[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        return [value]
    entries = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple, deque)) else ()
    return [tensor for entry in entries for tensor in _tensors_in(entry)]


def _read(runner: ModuleRunner, slots: Sequence[Slot], feeds: Sequence[Feed]) -> list[Slot]:
    """Those of the slots that a call reads; forward keeps much that is there to be looked at from outside."""
    read = [slot for slot in slots[:MOST_WATCHED] if any(_is_read(runner, slot, feed) for feed in feeds)]
    for slot, value in _slots(runner.module):
        if isinstance(value, WatchedNumber) and slot.settable:
            # One that was handed on.
            slot.put(int(value) if isinstance(value, int) else float(value))  # type: ignore[arg-type]
    return read


def _is_read(runner: ModuleRunner, slot: Slot, feed: Feed) -> bool:
    value = dict(_slots(runner.module)).get(slot)
    if slot.settable and type(value) in (int, float):
        with reads_of_number(slot, value) as operations:  # type: ignore[arg-type]
            runner(feed)
        return bool(operations)
    tensors = _tensors_in(value)
    if not tensors:
        # Nobody can look on.
        return True
    with reads_of_tensors(tensors) as operations:
        runner(feed)
    return bool(operations)


def _named(slots: Sequence[Slot]) -> str:
    return list_first([f"`{slot.label}`" for slot in slots], MOST_NAMED)
