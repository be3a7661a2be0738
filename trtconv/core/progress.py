"""What a room reports while it works. The CLI draws it on stderr; a library caller gets silence."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives a room's progress. All methods return at once; they raise nothing but KeyboardInterrupt."""

    def stage(self, name: str) -> None:
        """A room or a large step of it begins: `export`, `rewrite`, `build`, `check`."""

    def phase(self, name: str, completed: int = 0, total: int = 0) -> None:
        """What the stage is doing now, `completed` of `total` steps (0 of 0 when unknown)."""

    def note(self, text: str) -> None:
        """Something the user should know that is not an error."""

    def warn(self, text: str) -> None:
        """Something that will probably hurt the user later."""


class SilentProgress:
    """Drops everything."""

    def stage(self, name: str) -> None:
        """Drop it."""

    def phase(self, name: str, completed: int = 0, total: int = 0) -> None:
        """Drop it."""

    def note(self, text: str) -> None:
        """Drop it."""

    def warn(self, text: str) -> None:
        """Drop it."""
