"""Files that were made in a private folder, put where the user wants them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from trtconv.core.artifacts import replacing


def publish(folder: Path, output: Path, without: Sequence[str] = ()) -> tuple[Path, ...]:
    """Copy the files of a folder, each as a whole; `without` are stems, hidden files stay. Returns the new paths."""
    files = []
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.name.startswith(".") and path.name.split(".")[0] not in without:
            with replacing(output / path.name) as temporary:
                shutil.copyfile(path, temporary)
            files.append(output / path.name)
    return tuple(files)
