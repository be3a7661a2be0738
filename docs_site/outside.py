"""What a built site would load from elsewhere: nothing. `python -m docs_site.outside FOLDER` ends with 1 otherwise."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

# Attributes whose address a browser loads by itself; of <link> only those kinds.
_LOADING = {"script": ("src",), "img": ("src", "srcset"), "iframe": ("src",), "source": ("src", "srcset"),
            "video": ("src", "poster"), "audio": ("src",), "object": ("data",), "embed": ("src",), "input": ("src",),
            "image": ("href", "xlink:href"), "use": ("href", "xlink:href"), "form": ("action",)}  # fmt: skip
_LINKS = {"stylesheet", "icon", "shortcut", "apple-touch-icon", "preload", "prefetch", "preconnect", "dns-prefetch",
          "modulepreload", "manifest"}  # fmt: skip
_ELSEWHERE = re.compile(r"\s*(https?:)?//", re.IGNORECASE)
_STYLE = re.compile(r"""(?:@import\s+|url\()\s*["']?\s*((?:https?:)?//[^"')\s]+)""", re.IGNORECASE)


class _Page(HTMLParser):
    """Collects the addresses that a page loads, and the text of its styles."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element with the addresses that it loads."""
        values = {name: value or "" for name, value in attrs}
        self._style = tag == "style"
        names = _LOADING.get(tag, ())
        if tag == "link" and _LINKS & set(values.get("rel", "").lower().split()):
            names = ("href",)
        self.loaded += [values[name] for name in names if _ELSEWHERE.match(values.get(name, ""))]
        self.loaded += _STYLE.findall(values.get("style", ""))

    def handle_data(self, data: str) -> None:
        """The text of <style>."""
        if self._style:
            self.loaded += _STYLE.findall(data)


def loaded_from_elsewhere(site: Path) -> Iterator[tuple[str, str]]:
    """(file, address) of what the pages and styles of a folder load over the network by themselves."""
    for path in sorted(site.rglob("*")):
        if path.suffix == ".html":
            page = _Page()
            page.feed(path.read_text(encoding="utf-8"))
            yield from ((path.relative_to(site).as_posix(), address) for address in page.loaded)
        elif path.suffix == ".css":
            text = path.read_text(encoding="utf-8")
            yield from ((path.relative_to(site).as_posix(), address) for address in _STYLE.findall(text))


def main(folder: str) -> int:
    """Print every address; 1 where there is one."""
    if not (Path(folder) / "index.html").is_file():
        sys.stderr.write(f"'{folder}' holds no site\n")
        return 2
    addresses = list(loaded_from_elsewhere(Path(folder)))
    for file, address in addresses:
        sys.stderr.write(f"{file} loads {address}\n")
    return 1 if addresses else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
