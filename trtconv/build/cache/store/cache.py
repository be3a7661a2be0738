"""`EngineCache`: look up, restore, store, verify and prune built engines. Several processes may use one at once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtconv.build.cache.store.entry import (
    ENGINE,
    KEY_FORM,
    CacheEntry,
    DamagedEntryError,
    MalformedEntryError,
    OpenEntry,
    cache_key,
    open_entry,
    write_entry,
)
from trtconv.build.cache.store.removal import discard, new_folder, remove_plain, remove_stale, set_aside
from trtconv.build.cache.store.root import VARIABLE, locked, open_root
from trtconv.build.cache.store.survey import PruneReport, Survey, VerifyReport, survey_root
from trtconv.core.artifacts import replacing
from trtconv.core.errors import InvalidRequestError

DEFAULT_LIMIT = 20 << 30
_OFF = ("off", "0", "no", "false")


@dataclass(frozen=True)
class Lookup:
    """The entry, or None with the reason: which parts differ from the nearest entry, or that there is none.

    `warning` names an entry that should have been the answer and was not what had been stored.
    """

    entry: CacheEntry | None
    reason: str = ""
    changed: tuple[str, ...] = ()
    warning: str = ""


def default_root() -> Path | None:
    """Where engines are kept: `TRTCONV_CACHE` (a folder, or `off`), else the user's cache folder; None when off.

    Raises InvalidRequestError where the variable names a file.
    """
    named = os.environ.get(VARIABLE, "")
    if named.lower() in _OFF and named:
        return None
    if named:
        folder = Path(named).expanduser()
        if folder.exists() and not folder.is_dir():
            raise InvalidRequestError(
                f"{VARIABLE} names '{named}', which is no folder", hint=f"set it to a folder, or to off: {VARIABLE}=off"
            )
        return folder
    from platformdirs import user_cache_path

    # `engines` is the unmarked folder of an earlier form.
    return Path(user_cache_path("trtconv")) / "engines-v2"


def user_cache() -> EngineCache | None:
    """The cache of this user, or None when it is off."""
    root = default_root()
    return EngineCache(root) if root is not None else None


class EngineCache:
    """The cache in one folder. `limit` is in bytes, over all engines.

    Every method raises UnsafeFolderError when other users own the folder or can write to it, and InvalidRequestError
    when it is not a cache; nothing is changed then.
    """

    def __init__(self, root: Path, limit: int = DEFAULT_LIMIT) -> None:
        self.root = root
        self.limit = limit

    def lookup(self, parts: Mapping[str, Any]) -> Lookup:
        """The engine that was built from these parts, its bytes compared with their hash; or why there is none."""
        return self._answer(parts, lambda opened, entry: _compare(opened))

    def restore(
        self, parts: Mapping[str, Any], target: Path, accept: Callable[[CacheEntry], str] | None = None
    ) -> Lookup:
        """Put the engine that was built from these parts at `target`, or say why there is none.

        The bytes written are the bytes hashed. `accept` may refuse the entry with a reason before anything is
        replaced; an entry that is refused or damaged is set aside. Raises InvalidRequestError when `target` cannot be
        written.
        """

        def take(opened: OpenEntry, entry: CacheEntry) -> None:
            refused = accept(entry) if accept is not None else ""
            if refused:
                raise DamagedEntryError(refused)
            with opened.open_part(ENGINE) as stream, replacing(target) as temporary, open(temporary, "wb") as output:
                opened.copy(ENGINE, stream, output)

        return self._answer(parts, take)

    def store(
        self,
        parts: Mapping[str, Any],
        engine: Path,
        payload: Mapping[str, Any] | None = None,
        *,
        sha256: str | None = None,
    ) -> CacheEntry:
        """Keep a built engine and an object of JSON; then evict what was used longest ago until the limit holds.

        With `sha256`, raises InvalidRequestError when the engine is another one by now.
        """
        root, key = self._open(), cache_key(parts)
        folder = new_folder(root)
        try:
            write_entry(folder, engine, parts, payload or {}, sha256)
            with locked(root):
                _clear_way(root, key)
                os.rename(folder, root / key)
                with open_entry(root, key) as opened:
                    entry = opened.entry(payload)
        except DamagedEntryError as error:
            raise InvalidRequestError(str(error), hint="does another command write to the same output?") from error
        finally:
            remove_plain(root, folder.name)
        # What was stored stays stored, whatever happens to the tidying.
        with suppress(OSError, InvalidRequestError):
            self._tidy(root, key)
        return entry

    def entries(self) -> tuple[CacheEntry, ...]:
        """All entries by form, last used first."""
        return self.survey().entries

    def survey(self) -> Survey:
        """The entries, and what is left alone with the reason. No engine is read."""
        root = open_root(self.root, create=False)
        return survey_root(root) if root is not None else Survey()

    def find(self, prefix: str) -> CacheEntry:
        """The entry whose key begins so. Raises InvalidRequestError when none or several do."""
        hits = [e for e in self.entries() if e.key.startswith(prefix)]
        if len(hits) != 1:
            count = "no entry begins" if not hits else f"{len(hits)} entries begin"
            raise InvalidRequestError(f"{count} with '{prefix}'", hint="`trtconv cache ls` lists them")
        return hits[0]

    def remove(self, key: str) -> bool:
        """Remove one entry; False when there is none, or something that has not the form of one."""
        root = open_root(self.root, create=False)
        if root is None or not KEY_FORM.fullmatch(key):
            return False
        with locked(root):
            return _discard_entry(root, key)

    def verify(self) -> VerifyReport:
        """Compare all bytes of every entry with their hashes; those that differ are removed."""
        root = open_root(self.root, create=False)
        if root is None:
            return VerifyReport()
        whole: list[CacheEntry] = []
        damaged: list[tuple[CacheEntry, str]] = []
        for entry in survey_root(root).entries:
            try:
                with open_entry(root, entry.key) as opened:
                    try:
                        opened.read_kept()
                        _compare(opened)
                        whole.append(entry)
                    except DamagedEntryError as error:
                        damaged.append((entry, str(error)))
                        with locked(root):
                            if os.lstat(root / entry.key).st_ino == opened.inode:
                                discard(root, entry.key)
            except (FileNotFoundError, MalformedEntryError):
                continue
        return VerifyReport(tuple(whole), tuple(damaged), survey_root(root).skipped)

    def prune(self) -> PruneReport:
        """Remove what killed writers left, an hour after its last change, and evict down to the limit."""
        root = open_root(self.root, create=False)
        if root is None:
            return PruneReport()
        removed = self._tidy(root, "")
        return PruneReport(removed, survey_root(root).skipped)

    def _open(self) -> Path:
        root = open_root(self.root, create=True)
        assert root is not None
        return root

    def _answer(self, parts: Mapping[str, Any], take: Callable[[OpenEntry, CacheEntry], None]) -> Lookup:
        root = open_root(self.root, create=False)
        if root is None:
            return Lookup(None, "the cache is empty")
        key, inode = cache_key(parts), None
        try:
            with open_entry(root, key) as opened:
                inode = opened.inode
                entry = opened.entry(opened.read_kept())
                take(opened, entry)
                with suppress(OSError):
                    opened.touch()
                return Lookup(entry)
        except FileNotFoundError:
            return _miss(root, parts)
        except (DamagedEntryError, MalformedEntryError) as error:
            with locked(root):
                # What has no form has no inode here; nobody stores a good one in its stead while the lock is held.
                name = "" if inode is None and _has_form(root, key) else set_aside(root, key, inode)
            where = f"it was set aside as '{name}'" if name else "it was left where it is"
            warning = f"the cached engine {key[:12]} is damaged ({error}); {where}"
            return Lookup(None, "the cached engine is damaged", warning=warning)

    def _tidy(self, root: Path, newest: str) -> tuple[str, ...]:
        """Evict over the limit, and remove temporary names whose time is over; returns the names."""
        removed = []
        with locked(root):
            survey = survey_root(root)
            total = 0
            for entry in sorted(survey.entries, key=lambda e: e.key != newest):
                total += entry.engine_bytes
                if total > self.limit and entry.key != newest:
                    total -= entry.engine_bytes
                    if _discard_entry(root, entry.key):
                        removed.append(entry.key)
            removed += [other.name for other in survey.skipped if remove_stale(root, other.name)]
        return tuple(removed)


def _compare(opened: OpenEntry) -> None:
    with opened.open_part(ENGINE) as stream:
        opened.copy(ENGINE, stream, None)


def _clear_way(root: Path, key: str) -> None:
    """Make room under a key: an entry is removed, anything else is set aside and kept."""
    if os.path.lexists(root / key) and not _discard_entry(root, key):
        set_aside(root, key)


def _discard_entry(root: Path, key: str) -> bool:
    return _has_form(root, key) and discard(root, key)


def _has_form(root: Path, key: str) -> bool:
    try:
        with open_entry(root, key):
            return True
    except (OSError, MalformedEntryError):
        return False


def _miss(root: Path, parts: Mapping[str, Any]) -> Lookup:
    nearest: CacheEntry | None = None
    changed: tuple[str, ...] = ()
    for entry in survey_root(root).entries:
        differing = tuple(differences(entry.parts, parts))
        if nearest is None or len(differing) < len(changed):
            nearest, changed = entry, differing
    if nearest is None:
        return Lookup(None, "the cache is empty")
    return Lookup(None, f"not cached; changed since the nearest engine: {'; '.join(changed)}", changed)


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """`options.tf32 False -> True`: what differs, nested mappings by their own names; of lists the name alone."""
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from differences(before, after, f"{prefix}{name}.")
        elif json.dumps(before, default=str, sort_keys=True) != json.dumps(after, default=str, sort_keys=True):
            listed = any(isinstance(v, (list, tuple, Mapping)) for v in (before, after))
            yield f"{prefix}{name}" + ("" if listed else f" {_short(before)} -> {_short(after)}")


def _short(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    if len(text) == 64 and set(text) <= set("0123456789abcdef"):
        return text[:12]
    return text if len(text) <= 60 else text[:57] + "..."
