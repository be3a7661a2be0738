"""Whether a command came to its own end, or something in it ended the process with a code that says nothing."""

from __future__ import annotations

import mmap

# Shared with the child, which is forked later.
_ENDED = mmap.mmap(-1, 1)


def note_end() -> None:
    """The command has its exit code, and what it had to say was said."""
    _ENDED[0] = 1


def has_ended() -> bool:
    """True after `note_end` here or in a child."""
    return _ENDED[0] == 1
