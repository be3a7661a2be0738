"""The pages for people, their code blocks, and the commands that these show."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(p for folder in ("docs", "examples", "networks") for p in (ROOT / folder).rglob("*.md")),
]
_BLOCK = re.compile(r"^( *)```([^\n`]*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
# What stands before a command: a prompt, an item of YAML, `sh '` of Jenkins, an arrow of our own hints.
_COMMAND = re.compile(r"^(?:[-$>\s]*(?:run: |entrypoint: |sh ['\"])?)(?:\w+=\S+ )?(?:\S*/)?trtconv (?P<rest>.*)$")
_ENDS = {"&", "|", ">", ";", "&&", "||", "2>", "2>&1"}


@dataclass(frozen=True)
class Shown:
    """A command that a page shows: its words after `trtconv`."""

    page: str
    text: str
    words: tuple[str, ...]


def blocks(page: Path, *languages: str) -> list[str]:
    """The code blocks of a page, in these languages or all."""
    return [m[3] for m in _BLOCK.finditer(page.read_text()) if not languages or m[2].strip() in languages]


def prose(page: Path) -> str:
    """A page without its code blocks."""
    return _BLOCK.sub("", page.read_text())


def block_commands() -> list[Shown]:
    """Every command in a code block, line continuations joined."""
    return [shown for page in PAGES for block in blocks(page) for shown in _commands_of(page, block)]


def inline_commands() -> list[Shown]:
    """Every `trtconv ...` in running text; words in capitals and dots stand for something there."""
    return [
        Shown(page.relative_to(ROOT).as_posix(), text, tuple(text.split()[1:]))
        for page in PAGES
        for text in re.findall(r"`(trtconv [^`]+)`", prose(page))
    ]


def _commands_of(page: Path, block: str) -> Iterator[Shown]:
    for line in re.sub(r"\\\n\s*", " ", block).splitlines():
        match = _COMMAND.match(line)
        if match is not None:
            yield Shown(page.relative_to(ROOT).as_posix(), line.strip(), words_of(match["rest"]))


def words_of(text: str) -> tuple[str, ...]:
    """What the shell would pass: without a comment, a redirection, or what follows a pipe."""
    words = shlex.split(text.removesuffix("'") if text.count("'") % 2 else text, comments=True)
    end = next((i for i, word in enumerate(words) if word in _ENDS), len(words))
    return tuple(words[:end])
