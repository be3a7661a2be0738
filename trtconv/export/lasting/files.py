"""Files that a module opens while it runs: what one call leaves in a file, the next one reads.

A process that begins anew finds the file of the one before, so that first calls in a fork tell nothing of it.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from trtconv.core.errors import AccuracyError, TrtconvError
from trtconv.core.files.conversion_stamp import FilesRead
from trtconv.core.files.earlier import written_ns
from trtconv.core.text.listing import list_first
from trtconv.export.module.runner import shapes_of_run
from trtconv.export.module.user_code import Frame, calling_user_frame, format_frame, is_library

MOST_NAMED = 3
# Code is imported while a module runs, and devices are no files.
_CODE = (".py", ".pyc", ".so", ".pyd")
_SYSTEM = ("/proc/", "/sys/", "/dev/")
Shapes = tuple[tuple[int, ...], ...]


class FilesUsed(FilesRead):
    """The files that a module's forward opens or asks for while the block runs, each with the user's line that did so
    first.
    """

    def __init__(self) -> None:
        super().__init__()
        self._stat = os.stat
        self.asked: dict[str, Frame | None] = {}
        self.began_ns = time.time_ns()
        self.read_at: dict[str, set[Shapes]] = {}
        self.read: dict[str, Frame | None] = {}
        self.written: dict[str, Frame | None] = {}

    def __enter__(self) -> FilesUsed:
        super().__enter__()
        self._stat = os.stat

        # Whether a file exists is asked by os.stat, of which no audit hook hears.
        @functools.wraps(os.stat)
        def stat(path: Any, *arguments: Any, **keywords: Any) -> os.stat_result:
            status = None
            try:
                status = self._stat(path, *arguments, **keywords)
                return status
            finally:
                if isinstance(path, (str, os.PathLike)) and (status is None or status.st_mtime_ns >= self.began_ns):
                    self._note(str(path), self.asked)

        os.stat = stat
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.stat = self._stat
        super().__exit__(kind, error, trace)

    def opened(self, path: str, *, writes: bool) -> None:
        """Keep the line of a file that is not an installed package's."""
        self._note(path, self.written if writes else self.read)

    def _note(self, path: str, uses: dict[str, Frame | None]) -> None:
        path = os.path.abspath(path)
        if path.endswith(_CODE) or path.startswith(_SYSTEM) or is_library(path):
            return
        shapes = shapes_of_run()
        if shapes is None:
            return
        uses.setdefault(path, calling_user_frame())
        if uses is not self.written:
            self.read_at.setdefault(path, set()).add(shapes)

    def changed(self) -> list[str]:
        """Files that were read or asked for and that the runs changed, those that were read first.

        torch.save writes without Python, but leaves its time.
        """
        since = {p for p in (*self.read, *self.asked) if Path(p).is_file() and written_ns(Path(p)) >= self.began_ns}
        changed = [p for p in self.read if p in self.written or p in since]
        return changed + [p for p in self.asked if p not in self.read and p in since]

    def line_of(self, path: str) -> Frame | None:
        """The user's line that read a file first, or asked for it, or wrote it."""
        return next((uses[path] for uses in (self.read, self.asked, self.written) if uses.get(path)), None)

    def is_of_one_size(self, path: str, samples: Sequence[Shapes]) -> bool:
        """True for a table on disk: whenever it was read, an axis had one size that it does not have in all samples."""
        sizes, all_sizes = ([sum(s, ()) for s in shapes] for shapes in (self.read_at[path], samples))
        if not all_sizes or len({len(s) for s in (*sizes, *all_sizes)}) > 1:
            return False
        axes = zip(zip(*sizes, strict=True), zip(*all_sizes, strict=True), strict=True)
        return any(len(set(here)) == 1 and len(set(everywhere)) > 1 for here, everywhere in axes)


def require_nothing_kept_in_files(used: FilesUsed, samples: Sequence[Shapes], base: Path) -> None:
    """Raise AccuracyError where forward reads a file that it has written itself, unless it has one for each size.

    `samples` are the shapes of the inputs at all samples.
    """
    for path in used.changed():
        if used.is_of_one_size(path, samples):
            continue
        uses = "reads" if path in used.read else "looks for"
        raise AccuracyError(
            f"forward {uses} '{Path(path).name}', which it has written in a call before: what lies in a file decides "
            "what the module gives",
            hint="an engine reads no files: make what the file holds in __init__, or compute it in each call",
            where=format_frame(used.line_of(path), base) or None,
        )


@contextmanager
def blaming_tables_in_files(used: FilesUsed, base: Path) -> Iterator[None]:
    """A TrtconvError within has its cause in the tables that forward has written, where it reads any."""
    try:
        yield
    except TrtconvError as error:
        path = next(iter(used.changed()), None)
        if path is not None:
            # In place: it keeps its class and its exit code, however it was made.
            error.details = (error.message, *error.details)
            error.message = (
                f"forward reads '{Path(path).name}', which it has written, and no exporter follows what goes through "
                "a file"
            )
            error.args = (error.message,)
            error.hint = "make the table in __init__, or compute it in each call"
            error.where = format_frame(used.line_of(path), base) or None
        raise


def notes_on_files(used: FilesUsed, base: Path) -> list[str]:
    """What the exported file does not do: read a file again, or write one."""
    notes = []
    for paths, text in (
        (used.read, "forward reads {}: the exported file has what was there at its export"),
        (used.written, "forward writes {}: the exported file does not"),
    ):
        if paths:
            named = [f"'{Path(p).name}'" + (f" ({format_frame(f, base)})" if f else "") for p, f in paths.items()]
            notes.append(text.format(list_first(named, MOST_NAMED)))
    return notes
