"""Files on the command line: which options are read and which are written; no output may be an input."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from trtconv.cli.help_groups import GroupedCommand

# Parameters that name Python files, as `file.py:function`.
_SPECS = ("module", "against", "sample")
# With one of these a command runs the user's code, or writes where a config says, which is trusted.
_TRUSTED = (*_SPECS, "rules", "script", "config")


@dataclass(frozen=True)
class Confinement:
    """The context's object in a process that runs one command and nothing else: it may give up rights for good."""

    allowed: bool = False


class FilePath(click.Path):
    """A path of the command line; `role` is read, file, report, folder, `folder or file` or update (read and written).

    A report may go to `-`, a device or a FIFO, other outputs may not.
    """

    def __init__(self, role: str) -> None:
        super().__init__(path_type=Path)
        self.role = role

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path. Fails for an empty one, as a shell makes of a variable that is not set: it would be this folder."""
        if not str(value):
            self.fail("the path is empty; a variable of the shell may not be set", param, ctx)
        if self.role in ("file", "folder", "folder or file") and str(value) == "-":
            self.fail("'-' is no file here; only reports are printed", param, ctx)
        if self.role == "file" and str(value).endswith(("/", os.sep)):
            self.fail(f"'{value}' is a folder; name a file inside it", param, ctx)
        return super().convert(value, param, ctx)

    @property
    def written(self) -> bool:
        """True for an output."""
        return self.role != "read"


FILE = FilePath("read")
OUTPUT_FILE = FilePath("file")
OUTPUT_REPORT = FilePath("report")
OUTPUT_FOLDER = FilePath("folder")


class FileCommand(GroupedCommand):
    """A command that refuses outputs which are its inputs, each other, or no regular files, before it begins.

    With `reads_strangers` it gives up writing elsewhere and the network, where its process is its own.
    """

    reads_strangers = False

    def invoke(self, ctx: click.Context) -> Any:
        """Check the files, then run. Raises InvalidRequestError."""
        confinement = ctx.find_object(Confinement)
        if self.reads_strangers and confinement is not None and confinement.allowed:
            _confine(self, ctx)
        outputs = [(p.type, v) for p, v in _paths(self, ctx) if p.type.written]
        if outputs:
            _require_outputs(outputs, [v for p, v in _paths(self, ctx) if not p.type.written], _spec_files(ctx))
        return super().invoke(ctx)


def _confine(command: click.Command, ctx: click.Context) -> None:
    """Keep writing to the folders of the files that were named, this one, the cache and that for temporary files."""
    import tempfile

    from platformdirs import user_cache_path

    from trtconv.build.cache.store import default_root
    from trtconv.core.files.confinement import confine

    if any(ctx.params.get(name) for name in _TRUSTED):
        return
    # Not `Path.resolve`, which raises RuntimeError for links in a circle; the command says that there is no such file.
    named = [Path(os.path.realpath(p)) for _, p in _paths(command, ctx) if str(p) != "-"]
    cuda = Path(os.environ.get("CUDA_CACHE_PATH", "~/.nv")).expanduser()
    caches = [user_cache_path("trtconv"), cuda, *filter(None, [default_root()])]
    confine([*named, *(p.parent for p in named), *caches, Path.cwd(), Path(tempfile.gettempdir())])


class StrangersFileCommand(FileCommand):
    """A command that reads what a stranger may have written, and runs none of the user's Python."""

    reads_strangers = True


def _paths(command: click.Command, ctx: click.Context) -> Iterable[tuple[Any, Path]]:
    for parameter in command.params:
        value = ctx.params.get(str(parameter.name))
        if not isinstance(parameter.type, FilePath) or value is None:
            continue
        for path in value if isinstance(value, tuple) else (value,):
            yield parameter, path


def _spec_files(ctx: click.Context) -> list[Path]:
    specs = [ctx.params.get(name) for name in _SPECS]
    return [Path(s.rpartition(":")[0] or s) for s in specs if isinstance(s, str)]


def _require_outputs(outputs: list[tuple[FilePath, Path]], inputs: list[Path], specs: list[Path]) -> None:
    from trtconv.core.artifacts import require_report_path, require_writable, require_writable_folder
    from trtconv.core.files.earlier_reports import require_report_or_nothing
    from trtconv.core.files.output_paths import require_distinct

    for kind, path in outputs:
        if kind.role == "report":
            require_report_path(path)
        elif kind.role == "folder":
            require_writable_folder(path)
        elif kind.role == "file" or (kind.role == "folder or file" and not path.is_dir()):
            require_writable(path)
    paths = [path for _, path in outputs if str(path) != "-"]
    # A folder may hold inputs; what is written inside it is compared where its files are known.
    weights = _weights_of(inputs) if any(p.is_file() for p in paths) else []
    require_distinct(paths, [*inputs, *specs, *weights])
    for kind, path in outputs:
        if kind.role == "report":
            require_report_or_nothing(path)


def _weights_of(inputs: list[Path]) -> list[Path]:
    """External data of the ONNX files among the inputs."""
    from trtconv.core.errors import TrtconvError
    from trtconv.core.model.file import external_files, load_model

    files: list[Path] = []
    for path in inputs:
        if path.suffix == ".onnx" and path.is_file():
            try:
                files += [path.parent / name for name in external_files(load_model(path))]
            except TrtconvError:
                continue  # told by the command, in its own words
    return files
