"""Lines on the terminal: everything that a command prints goes through here, so that no name can steer it."""

from __future__ import annotations

from collections.abc import Callable

import click

from trtconv.core.text.display import display_styled


def echo(text: str, *, err: bool = False, color: bool | None = None) -> None:
    """Print a line; control characters of foreign text are shown as escapes, our own colours stay."""
    click.echo(display_styled(text), err=err, color=color)


def note_teller(*, quiet: bool) -> Callable[[str], None]:
    """What prints notes on stderr, or keeps silent."""

    def tell(text: str) -> None:
        if not quiet:
            echo(f"note: {text}", err=True)

    return tell
