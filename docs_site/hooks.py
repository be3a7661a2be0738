"""Hooks of MkDocs: pages made from the code, the navigation made from the folders, links that leave docs/."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
# MkDocs loads this file by its path.
sys.path.insert(0, str(ROOT))
from docs_site import cli_pages, python_pages  # noqa: E402

ASSETS = Path(__file__).with_name("assets")
TABS = {"Tutorial": "tutorial", "How-to": "how-to", "Reference": "reference", "Explanation": "explanation"}
# Written in prose or measured; the top of docs/ holds no other kind.
MEASURED = "Benchmarks"
# Relative links of Markdown, without an address or an anchor of the same page.
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation: a tab for each folder of docs/, whose pages stand in the order of their names."""
    docs = Path(config.docs_dir)
    nav: list[Any] = [{"Home": "index.md"}]
    for tab, folder in TABS.items():
        pages: list[Any] = [f"{folder}/{path.name}" for path in sorted((docs / folder).glob("*.md"))]
        if folder == "reference":
            commands = [path for path, _ in cli_pages.command_pages()]
            pages = [
                {"Command line": commands},
                {"Python API": [path for path, _ in python_pages.python_pages()]},
                *pages,
            ]
        nav.append({tab: pages})
    nav.append({MEASURED: [path.name for path in sorted(docs.glob("*.md"))]})
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made from the code, and the README as the first page."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = [("index.md", _LINK.sub(_from_the_root, readme))]
    for path, text in [*pages, *cli_pages.command_pages(), *python_pages.python_pages()]:
        files.append(File.generated(config, path, content=text))
    for asset in sorted(ASSETS.iterdir()):
        files.append(File.generated(config, f"assets/{asset.name}", content=asset.read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to files of the repository that are no pages lead to the repository."""
    folder = (Path(config.docs_dir) / page.file.src_uri).parent

    def outside(link: re.Match[str]) -> str:
        target = (folder / link[1]).resolve()
        if target.is_relative_to(config.docs_dir) or not target.is_relative_to(ROOT) or not target.exists():
            return link[0]
        return _in_repository(target, config) + (link[2] or "")

    return _LINK.sub(outside, markdown)


def _from_the_root(link: re.Match[str]) -> str:
    """A link of README.md as seen from docs/."""
    path = link[1].removeprefix("docs/") if link[1].startswith("docs/") else f"../{link[1]}"
    return path + (link[2] or "")


def _in_repository(target: Path, config: MkDocsConfig) -> str:
    kind = "tree" if target.is_dir() else "blob"
    return f"{config.extra['repository']}/{kind}/main/{target.relative_to(ROOT).as_posix()}"
