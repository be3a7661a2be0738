"""Which paths may be written: regular files that are not inputs of the same command, each named once."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from trtconv.core.errors import InvalidRequestError

_DESCRIPTOR = re.compile(r"/dev/fd/\d+|/proc/(self|thread-self|\d+)(/task/\d+)?/fd/\d+")
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
)
# What a report may be written into without replacing it.
_STREAMS = ("a character device", "a FIFO")
_LINKS = 40
_LOOKED_AT = 4096
ENGINE_SUFFIXES = (".engine", ".plan", ".trt")
MODEL, ENGINE = "an ONNX model", "an engine"
_MODELS = {
    ".onnx": MODEL,
    **dict.fromkeys(ENGINE_SUFFIXES, ENGINE),
    **dict.fromkeys((".safetensors", ".pt", ".pth", ".ckpt"), "a file of weights"),
    ".pt2": "a program of torch.export",
    # By these names onnx reads and writes its forms in text.
    **dict.fromkeys(
        (".json", ".onnxjson", ".txtpb", ".pbtxt", ".textproto", ".prototxt", ".onnxtext", ".onnxtxt"), "a text file"
    ),
}
# What holds the place of a file in a checkout: https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md.
_POINTER = b"version https://git-lfs.github.com/spec/"
_PRINTABLE = bytes([9, 10, 12, 13, *range(32, 127), *range(128, 256)])


def output_target(path: Path) -> Path:
    """The regular file that an output at `path` makes or replaces: what a symbolic link points at, never the link.

    Raises InvalidRequestError for a directory, device, FIFO, socket or open descriptor, OSError for a circle of links.
    """
    kind = _kind(path)
    if kind is not None:
        hint = "name a file inside it" if kind == "a directory" else "name a file; only reports can be written there"
        raise InvalidRequestError(f"the output '{path}' is {kind}", hint=hint)
    return Path(os.path.realpath(path))


def is_stream(path: Path) -> bool:
    """True for what a report is written into as it is: /dev/stdout, /dev/null, a FIFO, an open descriptor."""
    return _kind(path) in (*_STREAMS, _OPEN)


def write_stream(path: Path, data: bytes) -> None:
    """Append to a stream. Raises OSError; ENXIO for a FIFO that nobody reads."""
    # A FIFO without a reader would block for ever. O_APPEND keeps what a redirected stdout holds already.
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        os.set_blocking(handle, True)
        view = memoryview(data)
        while view:
            view = view[os.write(handle, view) :]
    finally:
        os.close(handle)


def require_distinct(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raise InvalidRequestError when an output is a file that is also read, or two outputs are one file.

    Files are compared by device and inode, so symbolic and hard links count, and by their resolved path where they do
    not exist yet. Streams such as /dev/null may be named twice.
    """
    read = {key: p for p in inputs for key in _identity(p)}
    written: dict[tuple[object, ...], Path] = {}
    for path in outputs:
        if is_stream(path):
            continue
        keys = _identity(path)
        for key in keys:
            if key in read:
                raise InvalidRequestError(
                    f"the output '{path}' is the input '{read[key]}'", hint="name another file with the output option"
                )
            if key in written:
                raise InvalidRequestError(
                    f"the outputs '{written[key]}' and '{path}' are one file", hint="name a file for each"
                )
        written.update(dict.fromkeys(keys, path))


def require_replaceable(path: Path, kind: str) -> None:
    """Raise InvalidRequestError where a model of this kind would replace a file of another one, or have its name.

    That is text (a module, a configuration, a report), or a model, an engine or tensors by its name; of a symbolic
    link what counts is the file that it points at. A pointer of Git LFS holds the place of a model.
    """
    if _kind(path) is not None:
        return
    named = _MODELS.get(path.suffix, kind)
    target = Path(os.path.realpath(path))
    if not path.is_file():
        if named != kind:
            raise InvalidRequestError(
                f"the output '{path}' has the name of {named}, and would hold {kind}", hint="name another file"
            )
        return
    other = _MODELS.get(target.suffix)
    if other in (None, kind):
        with open(target, "rb") as stream:
            beginning = stream.read(_LOOKED_AT)
        # Models, engines and tensors hold zeros or control characters in their first bytes.
        if not beginning or beginning.translate(None, _PRINTABLE) or beginning.startswith(_POINTER):
            return
        other = None
    raise InvalidRequestError(
        f"the output '{path}' exists and is {other or 'a text file'}, which {kind} would replace",
        hint="name another file, or remove that one",
    )


_OPEN = "an open descriptor"


def _kind(path: Path) -> str | None:
    """None for a regular file and for what does not exist."""
    if _is_descriptor(path):
        return _OPEN
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return None
        raise
    except ValueError as error:
        raise InvalidRequestError(f"no file can be called {str(path)!r}: {error}", hint="name another file") from error
    return next((name for test, name in _KINDS if test(mode)), None)


def _is_descriptor(path: Path) -> bool:
    # A redirected stdout is a regular file behind /proc/self/fd/1; a rename would part it from the open descriptor.
    target = os.path.abspath(path)
    for _ in range(_LINKS):
        if _DESCRIPTOR.fullmatch(target):
            return True
        if not os.path.islink(target):
            return False
        target = os.path.normpath(os.path.join(os.path.dirname(target), os.readlink(target)))
    return False


def _identity(path: Path) -> list[tuple[object, ...]]:
    names: list[tuple[object, ...]] = [("path", os.path.realpath(path))]
    try:
        status = os.stat(path)
    except OSError:
        return names
    return [*names, ("inode", status.st_dev, status.st_ino)]
