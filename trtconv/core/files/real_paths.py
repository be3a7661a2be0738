"""Paths without links in them, for many files of few folders: each folder is followed once."""

from __future__ import annotations

import os
from dataclasses import dataclass, field


@dataclass
class RealPaths:
    """`os.path.realpath` for one look at a set of files: folders are not expected to move meanwhile."""

    _folders: dict[str, str] = field(default_factory=dict)

    def of(self, path: str) -> str:
        """The absolute path without links."""
        if os.path.islink(path):
            return os.path.realpath(path)
        folder, name = os.path.split(path)
        if name in ("", ".", ".."):
            return os.path.realpath(path)
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        return os.path.join(self._folders[folder], name)
