"""Modules that lie in a package, or need a folder to import from."""

import json
import sys
from pathlib import Path

import pytest

FLAT = ["--input", "x:float32[2,4]"]
NET = """
from torch import nn

{imports}


def make_net():
    return nn.Linear(4, SIZE)
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch):
    """`pkg/net.py` imports its neighbour relatively, `app.py` a module of `src`, `lost.py` one that is nowhere."""
    for name in [n for n in sys.modules if n.split(".")[0] in ("tcpkg", "tcsizes")]:
        monkeypatch.delitem(sys.modules, name)
    files = {
        "tcpkg/__init__.py": "",
        "tcpkg/sizes.py": "SIZE = 2\n",
        "tcpkg/net.py": NET.format(imports="from .sizes import SIZE"),
        "src/tcsizes.py": "SIZE = 3\n",
        "app.py": NET.format(imports="from tcsizes import SIZE"),
        "lost.py": NET.format(imports="from tc_private_module import SIZE"),
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    yield
    for name in [n for n in sys.modules if n.split(".")[0] in ("tcpkg", "tcsizes")]:
        del sys.modules[name]


def test_a_file_of_a_package_imports_its_neighbours(trtconv, tmp_path):
    code, out, err = trtconv("export", "tcpkg/net.py:make_net", "-o", "net.onnx", *FLAT, "--json")
    assert (code, json.loads(out)["kind"]) == (0, "export"), err
    assert str(tmp_path) not in sys.path


def test_path_is_searched_and_recorded(trtconv, tmp_path):
    code, _, err = trtconv("export", "app.py:make_net", "-o", "net.onnx", *FLAT)
    assert code == 5
    assert "needs the Python module 'tcsizes'" in err
    assert "-> add --path src ('tcsizes' is there)" in err
    code, _, err = trtconv("export", "app.py:make_net", "-o", "net.onnx", *FLAT, "--path", "src")
    assert code == 0, err
    manifest = json.loads(Path("net.onnx.json").read_text())
    assert manifest["source"]["path"] == [str(tmp_path / "src")]
    assert "src/tcsizes.py" in manifest["sources"]["files"]


def test_the_config_has_it_too(trtconv):
    folder = Path("conf")
    folder.mkdir()
    (folder / "t.toml").write_text(
        '[model]\nmodule = "../app.py:make_net"\npath = ["../src"]\n[[input]]\nname = "x"\ndims = [2, 4]\n'
    )
    code, _, err = trtconv("export", "--config", folder / "t.toml", "-o", "net.onnx")
    assert code == 0, err


@pytest.mark.parametrize("spec", ["lost.py:make_net", "tc_private_module:make_net"])
def test_nobody_is_told_to_install_a_name_that_nobody_vouches_for(trtconv, spec):
    code, _, err = trtconv("export", spec, "-o", "net.onnx", *FLAT)
    assert code in (2, 5)
    assert "tc_private_module" in err
    assert "install" not in err
    assert "--path FOLDER" in err


def test_no_such_folder(trtconv):
    code, _, err = trtconv("export", "app.py:make_net", "-o", "net.onnx", *FLAT, "--path", "nowhere")
    assert code == 2
    assert "there is no folder" in err


def test_a_file_of_a_package_below_another_folder(trtconv, tmp_path):
    """What a project with a `src` folder meets: the path is that of the import, the file is not."""
    (tmp_path / "src" / "tcdeep").mkdir()
    for name, text in (("__init__", ""), ("mod", NET.format(imports="from tcsizes import SIZE"))):
        (tmp_path / "src" / "tcdeep" / f"{name}.py").write_text(text)
    code, _, err = trtconv("export", "tcdeep/mod.py:make_net", "-o", "net.onnx", *FLAT)
    assert code == 2
    assert "-> write src/tcdeep/mod.py:make_net" in err
    code, _, err = trtconv("export", "tcdeep.mod:make_net", "-o", "net.onnx", *FLAT)
    assert code == 2
    assert "-> add --path src ('tcdeep' is there)" in err
    code, _, err = trtconv("export", "src/tcdeep/mod.py:make_net", "-o", "net.onnx", *FLAT, "--path", "src")
    assert code == 0, err
    for name in [n for n in sys.modules if n.split(".")[0] == "tcdeep"]:
        del sys.modules[name]


def test_what_is_installed_or_hidden_is_not_proposed(trtconv, tmp_path):
    for folder in ("env/lib/site-packages", ".hidden", "node_modules"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "tc_private_module.py").write_text("")
    (tmp_path / "env" / "pyvenv.cfg").write_text("")
    code, _, err = trtconv("export", "lost.py:make_net", "-o", "net.onnx", *FLAT)
    assert code == 5
    assert "--path FOLDER" in err
