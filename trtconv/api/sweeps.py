"""`trtconv.sweep`: a whole fleet from Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.api.error_notes import with_notes
from trtconv.api.inputs import path_of, progress_or_silence
from trtconv.api.results import framed
from trtconv.core.errors import AccuracyError, TrtconvError
from trtconv.core.progress import Progress

if TYPE_CHECKING:
    from trtconv.sweep import SweepResult
    from trtconv.sweep.engine.verdicts import CellVerdict


@dataclass(frozen=True)
class Fleet:
    """What a sweep came to: a verdict per cell, and the atlas. It is true when no cell is red."""

    result: SweepResult = field(repr=False)

    @property
    def cells(self) -> tuple[CellVerdict, ...]:
        """One per model, shape space, target, precision and GPU kind: `cell.id`, `state`, `reason`, `message`."""
        return self.result.verdicts

    @property
    def red(self) -> tuple[CellVerdict, ...]:
        """The cells that are wrong, refused, over budget or failed."""
        return tuple(v for v in self.cells if v.state == "red")

    @property
    def exit_code(self) -> int:
        """What `trtconv sweep` would end with."""
        from trtconv.sweep.engine.verdicts import exit_code

        return exit_code(self.cells)

    @property
    def index(self) -> Path:
        """The page to open."""
        return self.result.atlas.index

    def __bool__(self) -> bool:
        return not self.red

    def __str__(self) -> str:
        """The counts, and the red cells with their reasons."""
        from trtconv.sweep.atlas.badge import count_states

        counts = ", ".join(f"{n} {state}" for state, n in count_states(self.cells).items() if n)
        return "\n".join([counts, *(f"red  {v.cell.id}  {v.reason}" for v in self.red)])

    def __repr__(self) -> str:
        return f"<trtconv.Fleet {str(self).splitlines()[0]}>"

    def _repr_html_(self) -> str:
        return framed("trtconv sweep", self.index.read_text(encoding="utf-8"))

    def as_dict(self) -> dict[str, Any]:
        """The document that `trtconv sweep --json` writes."""
        from trtconv.core.artifacts import read_json

        return read_json(self.result.atlas.data, "atlas")

    @with_notes(())
    def raise_if_red(self) -> None:
        """Raise AccuracyError where a cell computes something else, TrtconvError for another red one."""
        if self:
            return
        kind = AccuracyError if self.exit_code == AccuracyError.exit_code else TrtconvError
        raise kind(str(self), hint=f"open {self.index}")


@with_notes(())
def sweep(
    file: str | PathLike[str],
    *,
    output: str | PathLike[str] = "atlas",
    only: Sequence[str] = (),
    resume: bool = False,
    retry: str = "",
    address: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Fleet:
    """Build and check what a sweep.toml describes, as `trtconv sweep` does; the atlas is the folder `output`.

    `only` are patterns of cells; `resume` goes on with the last sweep into the atlas, `retry` runs again what "failed"
    in it, or what machines spoilt ("faults"). `address` is a Ray cluster's; without it Ray is started here, with
    `workers` CPUs, and stopped at the end. A cell that is wrong is a red verdict, not an error.

    Raises InvalidRequestError for a sweep file that is wrong, MissingDependencyError without Ray, KeyboardInterrupt
    when it was ended before its time (the atlas is written, and `resume` goes on).
    """
    from trtconv.sweep import SweepRequest, run_sweep
    from trtconv.sweep.engine.driver import SilentView

    paths = path_of(file, "a sweep"), path_of(output, "the atlas")
    request = SweepRequest(*paths, tuple(only), resume, retry, address, workers)
    result = run_sweep(request, SilentView(), progress_or_silence(progress))
    if result.interrupted:
        raise KeyboardInterrupt
    return Fleet(result)
