"""What a report format says of itself. A format is one module of this folder with a `REPORTER`; see `registry`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trtconv.core.option import Option
from trtconv.core.report import CheckReport

STDOUT = Path("-")


@dataclass(frozen=True)
class Reporter:
    """A report format: `--name` asks for it, and `write` puts a report into a file, or on stdout for `-`.

    `suffix` is what the file beside a model is called after the model's own name; empty for a format that has no file,
    whose option is then a flag. `shown` reports are looked at by people: control characters are escaped before.
    `metavar` and `example` are for the help of the option.
    """

    name: str
    help: str
    suffix: str
    write: Callable[[CheckReport, Path], None]
    shown: bool = True
    metavar: str = ""
    example: str = ""

    @property
    def option(self) -> Option:
        """The option of the command line."""
        if not self.suffix:
            return Option((f"--{self.name}",), self.help, "Output", form="flag", parse=lambda flag: STDOUT)
        return Option(
            (f"--{self.name}",),
            self.help,
            "Output",
            form="path",
            role="report",
            metavar=self.metavar,
            example=self.example,
        )
