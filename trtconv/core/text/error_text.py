"""What an exception says: a user's own may have a `__str__` that raises."""

from __future__ import annotations


def error_text(error: BaseException) -> str:
    """`str(error)`, without the white space around it; empty where that raises."""
    try:
        return str(error).strip()
    except Exception:  # noqa: BLE001 - whatever the user's __str__ raises
        return ""


def first_line(error: BaseException | None) -> str:
    """The first line of what an exception says; empty where it says nothing, and for None."""
    return next(iter(error_text(error).splitlines()), "").rstrip() if error is not None else ""
