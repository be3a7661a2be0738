"""The pages of docs/, which are installed with trtconv: what `trtconv help TOPIC` prints without a network."""

from __future__ import annotations

import site
import sys
from dataclasses import dataclass
from pathlib import Path

from trtconv.core.errors import InvalidRequestError, MissingDependencyError, did_you_mean

_SHARED = Path("share") / "trtconv"
# In which order the kinds of pages are listed; those at the top come last.
_FOLDERS = ("tutorial", "how-to", "reference", "explanation", "")


@dataclass(frozen=True)
class Page:
    """A page by its topic, which is the name of its file."""

    topic: str
    title: str
    file: Path

    @property
    def text(self) -> str:
        """All of it, as Markdown."""
        return self.file.read_text(encoding="utf-8")


def pages_root() -> Path:
    """The folder `docs` of a checkout, or that of the wheel. Raises MissingDependencyError where there is neither."""
    checkout = Path(__file__).resolve().parents[2]
    for root in (checkout, Path(sys.prefix) / _SHARED, Path(site.getuserbase()) / _SHARED):
        if (root / "docs" / "reference" / "config.md").is_file():
            return root / "docs"
    raise MissingDependencyError(
        "the pages of the documentation are not installed", hint="install trtconv from its wheel or from a checkout"
    )


def list_pages() -> tuple[Page, ...]:
    """All pages: tutorial, how-to, reference, explanation."""
    root = pages_root()
    files = [file for folder in _FOLDERS for file in sorted((root / folder).glob("*.md"))]
    return tuple(Page(file.stem, _title(file), file) for file in files)


def find_page(topic: str) -> Page:
    """The page of a topic. Raises InvalidRequestError for one that there is not."""
    pages = {page.topic: page for page in list_pages()}
    if topic not in pages:
        raise InvalidRequestError(
            f"there is no page on '{topic}'{did_you_mean(topic, pages)}", hint="`trtconv help` lists all topics"
        )
    return pages[topic]


def _title(file: Path) -> str:
    with file.open(encoding="utf-8") as stream:
        return stream.readline().strip("# \n")
