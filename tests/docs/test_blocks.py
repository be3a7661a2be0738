"""Code blocks of the pages are of the language that they name, and configs have keys that there are."""

import ast
import textwrap

import pytest

from tests.docs.pages import PAGES, ROOT, blocks
from trtconv.core.config import read_config, toml_reader
from trtconv.sweep.plan.file import validate_sweep

NAMES = {page: page.relative_to(ROOT).as_posix() for page in PAGES}


def blocks_of(*languages):
    return [
        pytest.param(text, id=f"{NAMES[page]}-{i}") for page in PAGES for i, text in enumerate(blocks(page, *languages))
    ]


@pytest.mark.parametrize("text", blocks_of("python"))
def test_python(text):
    ast.parse(textwrap.dedent(text))


@pytest.mark.parametrize("text", blocks_of("toml"))
def test_toml(text, tmp_path):
    if "sweep" in toml_reader().loads(text):
        assert validate_sweep(toml_reader().loads(text), "page")
        return
    (tmp_path / "trtconv.toml").write_text(text)
    assert read_config(tmp_path / "trtconv.toml")


@pytest.mark.parametrize("text", blocks_of("yaml"))
def test_yaml(text):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    assert list(yaml.safe_load_all(text))
