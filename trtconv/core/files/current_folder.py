"""The current folder, which may have been removed."""

from __future__ import annotations

import os


def current_folder() -> str | None:
    """Its path; None where it was removed."""
    try:
        return os.getcwd()
    except OSError:
        return None
