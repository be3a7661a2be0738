"""Whether anything changed since the last `trtconv convert` into this folder; if not, there is nothing to do.

A conversion leaves a stamp with its command, every file that it read (the module's source, what that imports, weights,
data: seen by an audit hook), what is installed, and size and time of the files that it wrote. The next one compares
them without importing torch, onnx or TensorRT. When in doubt it converts.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar

from trtconv.core.artifacts import write_json
from trtconv.core.files.artifact_set import digest_set
from trtconv.core.files.digest import sha256_file
from trtconv.core.files.source_record import BUILD_SECTIONS, record_sources, user_files
from trtconv.core.text.json_text import parse_json

SCHEMA = 3
NAME = "model.convert.json"


class FilesRead:
    """Records the files that this process opens for reading while the block runs.

    Files that a library opens without Python (memory-mapped weights) are not seen: name them to `write_stamp`.
    """

    _active: ClassVar[list[FilesRead]] = []

    def __init__(self) -> None:
        self.paths: set[str] = set()

    def __enter__(self) -> FilesRead:
        self._listen()
        self._active.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._active.remove(self)

    def opened(self, path: str, *, writes: bool) -> None:
        """Keep the path of a file that is opened for reading alone."""
        if not writes:
            self.paths.add(path)

    def outside(self, folder: Path) -> set[str]:
        """The files that do not lie in a folder."""
        inside = f"{folder.resolve()}/"
        return {p for p in tuple(self.paths) if not str(Path(p).resolve()).startswith(inside)}

    @classmethod
    @functools.cache
    def _listen(cls) -> None:
        """Add the one hook of this process: Python's audit hooks cannot be removed, and each slows `id` and `open`."""
        sys.addaudithook(cls._hook)

    @classmethod
    def _hook(cls, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not cls._active:
            return
        path, mode, flags = arguments
        # os.open has flags and no mode; what is opened for writing (a lock) is not a source of anything.
        writes = flags & (os.O_WRONLY | os.O_RDWR) if mode is None else set(str(mode)) & set("wax+")
        if isinstance(path, str):
            for block in tuple(cls._active):
                block.opened(path, writes=bool(writes))


@dataclass(frozen=True)
class Stamp:
    """What the last conversion printed: the summary's lines and data."""

    lines: tuple[tuple[str, str], ...]
    data: Mapping[str, Any]


def environment_key() -> dict[str, str]:
    """What is installed, as one hash: the names of all distributions, trtconv's own files, Python, the GPU's driver."""
    digest = hashlib.sha256()
    for folder in sorted({p for p in sys.path if p.endswith(("site-packages", "dist-packages"))}):
        names = sorted(n for n in _listed(folder) if n.endswith((".dist-info", ".egg-info", ".pth", ".egg-link")))
        digest.update("\0".join(names).encode())
    root = Path(__file__).resolve().parents[2]
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        for name in sorted(f for f in files if f.endswith((".py", ".json"))):
            status = os.stat(os.path.join(folder, name))
            digest.update(f"{name}:{status.st_size}:{status.st_mtime_ns}".encode())
    driver = Path("/proc/driver/nvidia/version")
    digest.update(driver.read_bytes() if driver.exists() else b"no driver")
    return {"python": sys.version, "installed": digest.hexdigest()}


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def read_stamp(output: Path, command: Mapping[str, Any]) -> tuple[Stamp | None, str]:
    """The last conversion's answer when nothing changed, else None and what did."""
    try:
        data = parse_json((output / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None, "no earlier conversion was found here"
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        return None, "the earlier conversion was made by a different trtconv"
    if data.get("command") != _plain(command):
        return None, "the command is different"
    if data.get("environment") != environment_key():
        return None, "the installed packages changed"
    try:
        return _compared(output, data)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None, "the record of the earlier conversion is damaged"


def _compared(output: Path, data: Mapping[str, Any]) -> tuple[Stamp | None, str]:
    """What `read_stamp` returns once command and environment are the same."""
    for name, facts in data["read"].items():
        if not _same(Path(name), facts):
            return None, f"'{name}' changed"
    for name, facts in data["written"].items():
        if _times(output / name) != facts:
            return None, f"'{output / name}' was changed after it was written"
    # Size and time can be put back; what is said to be unchanged, and proven, is compared by content.
    if data["set"] != _set(output):
        return None, f"the files in '{output}' are not those of one conversion"
    return Stamp(tuple((str(a), str(b)) for a, b in data["lines"]), {**data["data"]}), ""


def write_stamp(
    output: Path,
    command: Mapping[str, Any],
    read: Iterable[str],
    lines: Iterable[tuple[str, str]],
    data: Mapping[str, Any],
    *,
    config: Path | None = None,
) -> None:
    """Leave a stamp for the next conversion; called only when this one is good from end to end."""
    written = {p.name: _times(p) for p in sorted(output.iterdir()) if p.is_file() and not _hidden(p)}
    files = user_files(read, output / "model.onnx")
    facts = {
        "schema": SCHEMA,
        "command": _plain(command),
        "environment": environment_key(),
        "read": {str(p): {**_times(p), "sha256": sha256_file(p)} for p in files},
        "sources": record_sources(files, output / "model.onnx", config=config, sections=BUILD_SECTIONS),
        "written": written,
        "set": _set(output),
        "lines": [list(line) for line in lines],
        "data": json.loads(json.dumps(data, default=str)),
    }
    write_json(output / NAME, facts)


def _set(output: Path) -> dict[str, list[str]]:
    """The conversion's files by role: name and SHA-256."""
    return {role: [d.name, d.sha256] for role, d in digest_set(output / "model.onnx").items()}


def _hidden(path: Path) -> bool:
    return path.name.startswith(".") or path.name == NAME


def _times(path: Path) -> dict[str, int]:
    try:
        status = path.stat()
    except OSError:
        return {}
    if not stat.S_ISREG(status.st_mode):
        return {}  # a device never ends, and a FIFO may never begin
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns}


def _same(path: Path, facts: Mapping[str, Any]) -> bool:
    """Equal by size and time, or by content: a checkout writes new times."""
    now = _times(path)
    if not now or now["size"] != facts.get("size"):
        return False
    return now["mtime_ns"] == facts.get("mtime_ns") or sha256_file(path) == facts.get("sha256")


def _plain(command: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps(command, default=str, sort_keys=True))
