"""`trtconv help`: the pages without a network, and hints that lead to pages that there are."""

import ast
import re
from pathlib import Path

from trtconv.cli.main import COMMANDS
from trtconv.cli.pages import list_pages, pages_root
from trtconv.core.config import toml_reader

ROOT = Path(__file__).parents[4]
TOPICS = {page.topic for page in list_pages()}
# Makers of pages name them by their file.
MAKERS = {"core/trust/attestation.py", "rewrite/engine/page.py", "plugins/docs_page.py"}


def test_every_page_has_a_title_and_a_topic_of_its_own():
    pages = list_pages()
    assert len({p.topic for p in pages}) == len(pages) == len(list((ROOT / "docs").rglob("*.md")))
    assert all(p.title and "\n" not in p.title for p in pages)


def test_the_wheel_carries_every_page():
    files = toml_reader().loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["data-files"]
    carried = {p for target, globs in files.items() if target.startswith("share/trtconv/docs") for g in globs
               for p in ROOT.glob(g) if target == f"share/trtconv/{p.parent.relative_to(ROOT)}"}  # fmt: skip
    assert carried == set((ROOT / "docs").rglob("*.md"))


def test_an_installed_trtconv_reads_those_of_its_wheel(tmp_path, monkeypatch):
    pages = tmp_path / "share" / "trtconv" / "docs" / "reference"
    pages.mkdir(parents=True)
    (pages / "config.md").write_text("# Config\n")
    monkeypatch.setattr("trtconv.cli.pages.__file__", str(tmp_path / "lib" / "trtconv" / "cli" / "pages.py"))
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert pages_root() == tmp_path / "share" / "trtconv" / "docs"
    assert [(p.topic, p.title) for p in list_pages()] == [("config", "Config")]


def test_topics_pages_and_commands(trtconv):
    code, out, _ = trtconv("help")
    assert code == 0
    assert all(re.search(rf"^{re.escape(topic)}\s", out, re.MULTILINE) for topic in TOPICS)
    code, out, _ = trtconv("help", "odd-sizes")
    assert out.rstrip() == (ROOT / "docs" / "how-to" / "odd-sizes.md").read_text().rstrip()
    code, out, _ = trtconv("help", "convert")
    assert (code, out.startswith("Usage: trtconv convert")) == (0, True)
    code, _, err = trtconv("help", "odd-size")
    assert (code, "Did you mean 'odd-sizes'?" in err) == (2, True)


def test_completion_of_topics():
    import click

    from trtconv.cli.main import cli

    command = cli.get_command(click.Context(cli), "help")
    (argument,) = (p for p in command.params if isinstance(p, click.Argument))
    values = [i.value for i in argument.shell_complete(click.Context(command), "odd")]
    assert values == ["odd-sizes"]


def test_hints_lead_to_pages():
    for path in (ROOT / "trtconv").rglob("*.py"):
        tree = ast.parse(path.read_text())
        texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        docstrings = {
            ast.get_docstring(n, clean=False)
            for n in ast.walk(tree)
            if isinstance(n, (ast.Module, ast.ClassDef, ast.FunctionDef))
        }
        for text in texts:
            topics = re.findall(r"trtconv help ([a-z][\w-]+)", text)
            assert set(topics) <= TOPICS | set(COMMANDS), f"{path}: {text}"
            if text not in docstrings and str(path.relative_to(ROOT / "trtconv")) not in MAKERS:
                assert not re.search(r"docs/[\w-]+/[\w.-]+\.md", text), f"{path}: name the page with `trtconv help`"
