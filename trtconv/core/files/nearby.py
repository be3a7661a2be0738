"""Where a module that could not be imported, or a file that is not there, lies close by: what to type instead."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

# Never `pip install NAME`: a stranger may own the name that a private module has.
SEARCH = "name the folder that holds it with --path FOLDER, or run in the environment that has it"
DEPTH = 3
MOST_FOLDERS = 2000
# Folders of installed or built things, which nobody means.
SKIPPED = ("node_modules", "site-packages", "__pycache__", "build", "dist")


def import_hint(name: str, base: Path) -> str:
    """What to type where `import name` fails: the `--path` of the folder close by that has it, else how to name one."""
    top = name.partition(".")[0]
    for folder in _folders(base):
        if (folder / f"{top}.py").is_file() or (folder / top / "__init__.py").is_file():
            return f"add --path {_shown(folder, base)} ('{top}' is there)"
    return SEARCH


def file_hint(spec: str, base: Path) -> str:
    """What to type where the file of `path/to/file.py:factory` is not there; empty where none close by ends alike."""
    path, _, factory = spec.rpartition(":")
    for folder in _folders(base):
        if (folder / path).is_file():
            return f"write {_shown(folder / path, base)}:{factory}"
    return ""


def _folders(base: Path) -> Iterator[Path]:
    """The folders below `base` and those above it that belong to the same project, the closest first."""
    level, count = [base.resolve()], 0
    for _ in range(DEPTH):
        below: list[Path] = []
        for folder in level:
            yield folder
            count += 1
            if count >= MOST_FOLDERS:
                return
            below += _inside(folder)
        level = below
    folder = base.resolve()
    while folder != folder.parent and not (folder / ".git").exists():
        folder = folder.parent
        if not any((folder / name).exists() for name in (".git", "pyproject.toml", "setup.py", "setup.cfg")):
            continue
        yield folder
        yield from _inside(folder)


def _inside(folder: Path) -> list[Path]:
    try:
        entries = sorted(e.name for e in os.scandir(folder) if e.is_dir(follow_symlinks=False))
    except OSError:
        return []
    names = [n for n in entries if not n.startswith(".") and n not in SKIPPED]
    return [folder / n for n in names if not (folder / n / "pyvenv.cfg").exists()]


def _shown(path: Path, base: Path) -> str:
    """As a user would type it: from the folder that names are seen from."""
    return os.path.relpath(path, base.resolve())
