"""What lies in the folder of a cache, sorted into entries and what is left alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trtconv.build.cache.store.entry import KEY_FORM, CacheEntry, MalformedEntryError, open_entry
from trtconv.build.cache.store.removal import temporary_kind
from trtconv.build.cache.store.root import OWN_FILES

_REASONS = {
    "new": "an unfinished write; `trtconv cache prune` removes it an hour after its last change",
    "trash": "being removed; `trtconv cache prune` finishes it",
    "aside": "a damaged entry that was set aside; `trtconv cache prune` removes it after seven days",
}


@dataclass(frozen=True)
class RejectedEntry:
    """A name in the root that is not a good entry, and why. `malformed`: it has the name of an entry."""

    name: str
    reason: str
    malformed: bool = False


@dataclass(frozen=True)
class Survey:
    """The entries by form (their bytes were not read), last used first, and everything else."""

    entries: tuple[CacheEntry, ...] = ()
    skipped: tuple[RejectedEntry, ...] = ()


@dataclass(frozen=True)
class VerifyReport:
    """The entries that are whole, those that were damaged and removed with the reason, and what was left alone."""

    whole: tuple[CacheEntry, ...] = ()
    damaged: tuple[tuple[CacheEntry, str], ...] = ()
    skipped: tuple[RejectedEntry, ...] = ()

    @property
    def passed(self) -> bool:
        """True when no entry is damaged or malformed."""
        return not self.damaged and not any(n.malformed for n in self.skipped)


@dataclass(frozen=True)
class PruneReport:
    """The names that were removed (keys and temporary names) and what was left alone."""

    removed: tuple[str, ...] = ()
    skipped: tuple[RejectedEntry, ...] = ()


def survey_root(root: Path) -> Survey:
    """Sort everything in a marked root. One bad entry never hides another one."""
    items = tuple(_items(root))
    entries = [i for i in items if isinstance(i, CacheEntry)]
    others = [i for i in items if isinstance(i, RejectedEntry)]
    return Survey(
        tuple(sorted(entries, key=lambda e: (-e.used, e.key))), tuple(sorted(others, key=lambda other: other.name))
    )


def _items(root: Path) -> Iterator[CacheEntry | RejectedEntry]:
    for name in os.listdir(root):
        kind = temporary_kind(name)
        if name in OWN_FILES:
            continue
        if kind is not None:
            yield RejectedEntry(name, _REASONS[kind])
        elif not KEY_FORM.fullmatch(name):
            yield RejectedEntry(name, "not an entry of this cache")
        else:
            try:
                with open_entry(root, name) as opened:
                    yield opened.entry()
            except FileNotFoundError:
                # Another process removed it a moment ago.
                continue
            except MalformedEntryError as error:
                yield RejectedEntry(name, f"malformed: {error}", malformed=True)
            except OSError as error:
                yield RejectedEntry(name, f"cannot be read: {error.strerror}", malformed=True)
