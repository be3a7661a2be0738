"""One conversion for all tests of the Python door: the page docs/reference/python.md, run from top to bottom."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.api.page import write_examples


@pytest.fixture(scope="session")
def page(tmp_path_factory):
    """The names that the page's examples leave, and the folder in which they ran."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("tensorrt_rtx")
    folder = tmp_path_factory.mktemp("page")
    # Other tests of this process have a net.py too.
    before, other = Path.cwd(), sys.modules.pop("net", None)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    names: dict[str, object] = {"folder": folder}
    # The page's network has the same weights in every run, and others than one of `--against`, which is seeded with 0.
    torch.manual_seed(1)
    try:
        for script in write_examples("reference/python.md", folder):
            exec(compile(script, "python.md", "exec"), names)
        # Later tests of this process see files by relative paths.
        os.chdir(before)
        yield SimpleNamespace(**names)
    finally:
        os.chdir(before)
        sys.path.remove(str(folder))
        sys.modules.pop("net", None)
        if other is not None:
            sys.modules["net"] = other


@pytest.fixture
def here(page, monkeypatch):
    """The page's folder as the working directory."""
    monkeypatch.chdir(page.folder)
    monkeypatch.syspath_prepend(page.folder)
    return page
