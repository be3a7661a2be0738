"""One conversion as the command line and a Python call run it: assemble, convert, leave the stamp for the next one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.files.conversion_stamp import FilesRead, write_stamp
from trtconv.core.files.set_lock import locked_set
from trtconv.core.progress import Progress
from trtconv.core.requests import LiveModule
from trtconv.frontend.command_line import CommandLine
from trtconv.frontend.options import ConfigOption, ConversionOptions

if TYPE_CHECKING:
    from trtconv.frontend.summary import Summary
    from trtconv.pipeline import ConvertResult

# Options that decide how much is said and where it goes, not what the files hold.
_NOT_IN_FILES = ("verbose", "quiet", "json", "force", "output")


@dataclass(frozen=True)
class ConversionOrder:
    """What is to be converted, and with which options."""

    module: str | LiveModule | None
    line: CommandLine

    @property
    def options(self) -> ConversionOptions:
        """Where to, static or not, from the cache or not."""
        return self.line.of(ConversionOptions)

    @property
    def key(self) -> Mapping[str, Any]:
        """Everything that decides the files, but for what the files themselves hold."""
        silent = dict.fromkeys(_NOT_IN_FILES, 0)
        return {**self.line.values, "module": self.module, "folder": Path.cwd(), **silent}


def run_conversion(order: ConversionOrder, progress: Progress) -> tuple[ConvertResult, Summary]:
    """Convert, and leave a stamp when all is good. Raises as `trtconv.pipeline.convert` does.

    A live module leaves a stamp too, for the sources that it names, but no key: its weights are in no file.
    """
    from trtconv.build.cache.store import user_cache
    from trtconv.frontend.assemble import convert_request, load_config
    from trtconv.frontend.documents import plain
    from trtconv.frontend.summary import convert_summary
    from trtconv.originals import original_files
    from trtconv.pipeline import convert

    options = order.options
    with FilesRead() as files_read:
        config = load_config(order.line.of(ConfigOption).config)
        request = convert_request(config, order.module, options.output, options.static, order.line)
        # Until the stamp is written: it says which files belong together.
        with locked_set(request.build.output):
            result = convert(request, progress, cache=None if options.force else user_cache())
            summary = convert_summary(result)
            if result.passed:
                key = {} if isinstance(order.module, LiveModule) else order.key
                files = [str(f) for f in (*original_files(request.export), *request.build.plugins)]
                read = {*files_read.paths, *files}
                write_stamp(options.output, key, read, summary.lines, plain(summary.data), config=config.path)
    return result, summary
