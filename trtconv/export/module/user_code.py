"""Finds the line of the user's code in tracebacks and in the stack texts that the exporters keep."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import linecache
import os
import re
import site
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType

from trtconv.core.errors import TrtconvError, causes
from trtconv.core.text.error_text import error_text

_PYTHON_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_TORCHSCRIPT_FRAME = re.compile(r"^(?P<file>[^\n()]+)\((?P<line>\d+)\): ", re.MULTILINE)
Frame = tuple[str, int]
PARSED_FILES = 64
# The place that torch.export writes for the sizes that it reads itself (torch/export/exported_program.py).
_ROOTS = tuple(str(Path(__file__).resolve().parent / name) for name in ("flat_module.py", "runner.py"))
_WRITTEN_BY_TORCH = "torch/fx/passes/runtime_assert.py"


@cache
def _own_folder() -> str:
    return str(Path(__file__).resolve().parents[2])


@cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    # A site directory lies inside the standard library's, and both may hold what is not the user's.
    return tuple(f"{p}/" for p in {paths["purelib"], paths["platlib"], paths["stdlib"], *site.getsitepackages()})


@cache
def _standard_folder() -> str:
    return f"{sysconfig.get_paths()['stdlib']}/"


@cache
def _machinery_folders() -> tuple[str, ...]:
    specs = [importlib.util.find_spec(name) for name in ("torch", "onnxscript", "onnx_ir", "sympy", "mpmath", "numpy")]
    return (contextlib.__file__, *(f"{Path(s.origin).parent}/" for s in specs if s is not None and s.origin))


def is_tracing_root(file: str) -> bool:
    """True for the frames of trtconv from which the user's forward is called."""
    return file in _ROOTS


def is_own(file: str) -> bool:
    """True for trtconv's code."""
    return file.startswith(f"{_own_folder()}/")


def is_library(file: str) -> bool:
    """True for torch, installed packages, the standard library, trtconv itself and generated code."""
    generated = file.startswith("<") or "/site-packages/" in file or "/dist-packages/" in file
    return generated or file == _WRITTEN_BY_TORCH or file.startswith((f"{_own_folder()}/", *_library_folders()))


def is_standard(file: str) -> bool:
    """True for Python's own library; packages may be installed inside of it."""
    return file.startswith(_standard_folder()) and "/site-packages/" not in file and "/dist-packages/" not in file


def is_machinery(file: str) -> bool:
    """True for frames that can never be the author's: torch, trtconv itself, generated code."""
    return file == _WRITTEN_BY_TORCH or file.startswith(("<", f"{_own_folder()}/", *_machinery_folders()))


def innermost_user_frame(frames: Iterable[Frame]) -> Frame | None:
    """The innermost frame (frames are given outermost first) that is the user's.

    A module that comes from an installed package has no frame outside it; then the innermost one outside torch. What
    called trtconv, such as a test or a notebook, is not the module.
    """
    listed = list(frames)
    roots = [i for i, f in enumerate(listed) if is_tracing_root(f[0])]
    listed = listed[roots[-1] + 1 if roots else 0 :]
    for test in (is_library, is_machinery):
        for file, line in reversed(listed):
            if not test(file):
                return file, line
    return None


def format_path(file: str, base: Path) -> str:
    """`file` relative to the working directory or to `base`; inside a package from the package on; else its name."""
    path = Path(file)
    for root in (Path.cwd(), base.resolve()):
        if path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    for marker in ("/site-packages/", "/dist-packages/"):
        if marker in file:
            return file.rsplit(marker, 1)[1]
    return path.name


def format_frame(frame: Frame | None, base: Path) -> str:
    """`file.py:123`, or an empty text."""
    return f"{format_path(frame[0], base)}:{frame[1]}" if frame else ""


def quote_frame(frame: Frame, base: Path) -> str:
    """The line itself and where it stands: `` `y = x.item()` at net.py:7``."""
    return f"`{linecache.getline(*frame).strip()}` at {format_frame(frame, base)}"


def parse_file(file: str) -> ast.Module | None:
    """The syntax tree of a file of the user's; None for what cannot be read or is no Python."""
    try:
        return _parse(file, os.stat(file).st_mtime_ns)
    except (OSError, SyntaxError, ValueError):
        return None


# By the time of its last change too: a long Python session edits the file and exports again.
@lru_cache(maxsize=PARSED_FILES)
def _parse(file: str, modified_ns: int) -> ast.Module:
    return ast.parse(Path(file).read_text())


def calling_frames() -> Iterator[tuple[CodeType, Frame]]:
    """The frames of the call that asks, innermost first, with their code."""
    frame = sys._getframe(1)
    while frame is not None:
        yield frame.f_code, (frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]


def calling_user_frame() -> Frame | None:
    """The innermost frame of the call that asks that is the user's."""
    return innermost_user_frame([frame for _, frame in calling_frames()][::-1])


def python_frames(text: str) -> list[Frame]:
    """The frames of a Python traceback text, outermost first."""
    return [(m["file"], int(m["line"])) for m in _PYTHON_FRAME.finditer(text)]


def torchscript_frames(text: str) -> list[Frame]:
    """The frames of a TorchScript doc string, outermost first (the text has the innermost first)."""
    return [(m["file"], int(m["line"])) for m in _TORCHSCRIPT_FRAME.finditer(text)][::-1]


def exited(error: SystemExit, base: Path) -> TrtconvError:
    """The error for user code that called sys.exit, such as a script without `if __name__ == "__main__"`."""
    return TrtconvError(
        f"the user's code ended the program with sys.exit({error.code!r})",
        where=blame(error, base),
        hint='name a factory that only makes the module; what a script does stands under if __name__ == "__main__"',
    )


def blame(error: BaseException, base: Path, *, packages: bool = False) -> str | None:
    """The user's `file:line` that an exception points at: in its traceback, its text or its causes'; or None.

    With `packages` the line of an installed package where there is no other, as for a module that comes from one.
    """
    in_package: Frame | None = None
    for cause in causes(error):
        if isinstance(cause, SyntaxError) and cause.filename:
            return format_frame((cause.filename, cause.lineno or 1), base)
        frames = [(f.filename, f.lineno or 0) for f in traceback.extract_tb(cause.__traceback__)]
        named = [f for f in python_frames(error_text(cause)) if not is_library(f[0])]
        frame = innermost_user_frame([f for f in frames if not is_library(f[0])] or named)
        if named:
            frame = named[-1]
        if frame:
            return format_frame(frame, base)
        in_text = [f for f in python_frames(error_text(cause)) if not is_machinery(f[0])]
        in_package = in_package or innermost_user_frame(in_text or [f for f in frames if not is_machinery(f[0])])
    return format_frame(in_package, base) if packages and in_package else None
