"""Every error that a user can cause, with its exit code. The CLI prints them; nothing else does."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator


class TrtconvError(Exception):
    """A failure that the user can act on.

    `message` names the thing that is wrong, `hint` says what to do next, `details` are extra lines (a list of
    keys, the builder's own words), and `where` is a `file:line` of the user's code when one is known.
    """

    exit_code = 1
    kind = "failed"

    def __init__(
        self, message: str, *, hint: str | None = None, details: Iterable[str] = (), where: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = tuple(details)
        self.where = where


class InvalidRequestError(TrtconvError):
    """The command line, the config or a file that it names is not usable (exit code 2)."""

    exit_code = 2
    kind = "usage"


class AccuracyError(TrtconvError):
    """Two things that should compute the same do not, within the tolerance (exit code 3)."""

    exit_code = 3
    kind = "accuracy"


class DifferenceError(AccuracyError, AssertionError):
    """An artifact does not compute what the module computes, told by `assert_equal` (exit code 3)."""


class EndlessError(TrtconvError):
    """A run of the module takes so much longer than the others that it will not end."""


class UnsupportedError(TrtconvError):
    """The target does not support a node or a setting (exit code 4)."""

    exit_code = 4
    kind = "unsupported"


class MissingDependencyError(TrtconvError):
    """The environment lacks a package, a driver or a device; `hint` says what installs it (exit code 5)."""

    exit_code = 5
    kind = "environment"


class UnsafeFolderError(TrtconvError):
    """A folder of trtconv's own that other users own or can write to (exit code 5); `hint` has the command to run."""

    exit_code = 5
    kind = "environment"


class UntrustedError(TrtconvError):
    """A file is not signed by whom it should be, or not the file that was signed (exit code 1); it was not used."""

    kind = "untrusted"


class OutputBusyError(TrtconvError):
    """Another process writes the same files at this moment (exit code 1); nothing was changed."""

    kind = "busy"


class LimitError(TrtconvError):
    """The process would go beyond its limit of memory or time (exit code 1)."""

    kind = "limit"


class CrashError(TrtconvError):
    """A child that did the work was ended by a signal (exit code 1): a library crashed, or the system killed it."""

    kind = "crash"


class OverBudgetError(TrtconvError):
    """A latency, size or time budget is exceeded (exit code 6)."""

    exit_code = 6
    kind = "budget"


def did_you_mean(word: str, candidates: Iterable[str]) -> str:
    """Return `. Did you mean 'x'?` for the nearest known word, else an empty string."""
    near = difflib.get_close_matches(word, list(candidates), n=1, cutoff=0.6)
    return f". Did you mean '{near[0]}'?" if near else ""


def causes(error: BaseException | None, *, explicit: bool = False) -> Iterator[BaseException]:
    """An error and what it was raised from or behind, the last first; each once, as such a chain may be a ring.

    With `explicit` what it was raised from alone (`raise ... from ...`).
    """
    passed: set[int] = set()
    while error is not None and id(error) not in passed:
        passed.add(id(error))
        yield error
        error = error.__cause__ if explicit else error.__cause__ or error.__context__
