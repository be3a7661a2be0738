"""A check does not pass when what the model was exported from is not what it was: through the command line."""

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.cli.processes import run_trtconv
from trtconv.check.compare.sources import compare_sources
from trtconv.cli.main import run
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.artifact_set import write_sealed
from trtconv.core.files.source_record import SourceChange, changed_sources
from trtconv.core.requests import CheckRequest

pytest.importorskip("torch")
FILES = {
    "net.py": (
        "import torch\nfrom parts import Scaled\n\n\ndef make_net():\n    torch.manual_seed(0)\n    return Scaled(3)\n"
    ),
    "parts/__init__.py": "from parts.scaled import Scaled\n\n__all__ = ['Scaled']\n",
    "parts/scaled.py": (
        "from pathlib import Path\nimport torch\nfrom parts.sizes import EPS\n\n\n"
        "class Scaled(torch.nn.Module):\n    def __init__(self, width):\n        super().__init__()\n"
        "        self.lin = torch.nn.Linear(4, width)\n"
        "        self.k = float(open(Path(__file__).with_name('k.txt')).read())\n\n"
        "    def forward(self, x):\n        y = self.lin(x)\n"
        "        return self.k * y / (y.abs().sum(1, keepdim=True) + EPS)\n"
    ),
    "parts/sizes.py": "EPS = 1e-3\n",
    "parts/k.txt": "2.0",
    "trtconv.toml": (
        '[model]\nmodule = "net.py:make_net"\n\n[[input]]\nname = "x"\ndims = ["N", 4]\n\n[dynamic]\nN = "1:2:3"\n\n'
        "[check.budgets]\nlatency_ms = 1e6\n"
    ),
}


@pytest.fixture
def check(project, capsys, monkeypatch):
    """`trtconv check out/model.onnx ...` in this process: nothing of the project is imported."""

    def call(*words):
        monkeypatch.chdir(project)
        with pytest.raises(SystemExit) as caught:
            run(["check", *map(str, words)])
        return int(caught.value.code or 0), capsys.readouterr().out

    return call


def write_project(folder):
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    weights = (
        "import torch; from net import make_net; m = make_net(); torch.nn.init.normal_(m.lin.weight); "
        "torch.save(m.state_dict(), 'w.pt')"
    )
    subprocess.run([sys.executable, "-c", weights], cwd=folder, check=True, env={"PATH": os.environ["PATH"]})
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    return folder


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A project whose module was exported once; tests change copies of it."""
    folder = write_project(tmp_path_factory.mktemp("project"))
    process = run_trtconv(folder, "export", "--config", "trtconv.toml", "--weights", "w.pt", "-o", "out/model.onnx")
    assert process.returncode == 0, process.stderr
    return folder


@pytest.fixture
def project(exported, tmp_path):
    """The same project in another place, as a checkout is."""
    shutil.copytree(exported, tmp_path / "checkout")
    return tmp_path / "checkout"


def test_an_unchanged_checkout_elsewhere_passes(check):
    code, out = check("out/model.onnx", "--json", "-")
    assert code == 0, out
    report = json.loads(out)
    assert report["extras"]["sources"] == {"status": "unchanged", "files": 6}
    assert not [f for f in report["findings"] if f["kind"] == "usage"]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("net.py", "Scaled(3)", "Scaled(3)  # the same"),
        ("parts/scaled.py", "self.k * y", "self.k * 1.01 * y"),
        ("parts/sizes.py", "1e-3", "1e-2"),
        ("parts/__init__.py", "__all__", "EPS = 2\n__all__"),
        ("parts/k.txt", "2.0", "2.5"),
    ],
)
def test_a_changed_source_is_code_2_and_names_itself(check, project, name, old, new):
    text = (project / name).read_text()
    assert old in text
    (project / name).write_text(text.replace(old, new))
    code, out = check("out/model.onnx")
    assert code == 2
    assert f"{name} changed since out/model.onnx was exported" in out
    assert "-> convert again, or check --against net.py:make_net" in out
    assert "NOT CHECKED" in out


def test_changed_weights_are_code_2(check, project):
    (project / "w.pt").write_bytes((project / "w.pt").read_bytes() + b"\0")
    code, out = check("out/model.onnx")
    assert code == 2
    assert "w.pt changed since out/model.onnx was exported" in out


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [("1:2:3", "1:2:8", 2), ("net.py:make_net", "net.py:make", 2), ("1e6", "2e6", 0)],
    ids=["ranges", "factory", "budget"],
)
def test_only_sections_that_shape_the_model_count(check, project, old, new, expected):
    config = project / "trtconv.toml"
    config.write_text(config.read_text().replace(old, new))
    code, out = check("out/model.onnx")
    assert code == expected, out
    assert ("of trtconv.toml changed since out/model.onnx" in out) == (expected == 2)


def test_a_source_that_is_gone_is_code_2_unless_said(check, project):
    shutil.rmtree(project / "parts")
    code, out = check("out/model.onnx")
    assert code == 2
    assert "parts/__init__.py and 3 more, from which out/model.onnx was exported, are gone" in out
    assert "--no-source-check" in out
    code, out = check(
        "out/model.onnx", "--no-source-check", "--json", "r.json", "--junit", "r.xml",
        "--sarif", "r.sarif", "--markdown", "r.md", "--html", "r.html",
    )  # fmt: skip
    assert code == 0, out
    said = "sources not compared (--no-source-check)"
    assert said in out
    assert said in (project / "r.md").read_text()
    assert said in (project / "r.html").read_text()
    assert json.loads((project / "r.json").read_text())["extras"]["sources"]["status"] == "not compared"
    properties = ET.parse(project / "r.xml").getroot().iter("property")
    assert {"name": "sources", "value": "not compared"} in [p.attrib for p in properties]
    run = json.loads((project / "r.sarif").read_text())["runs"][0]
    assert run["properties"]["sources"]["status"] == "not compared"


def test_a_change_is_an_annotation_at_the_file(check, project):
    (project / "parts/sizes.py").write_text("EPS = 1.0\n")
    code, out = check("out/model.onnx", "--github", "--sarif", "r.sarif")
    assert code == 2
    assert "::error file=parts/sizes.py,line=1,title=trtconv%3A usage::" in out
    (result,) = json.loads((project / "r.sarif").read_text())["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "parts/sizes.py"


def test_against_the_module_compares_what_the_sources_do_now(project):
    (project / "net.py").write_text(FILES["net.py"] + "# a remark\n")
    process = run_trtconv(project, "check", "out/model.onnx", "--against", "net.py:make_net", "--weights", "w.pt")
    assert process.returncode == 0, process.stdout + process.stderr
    (project / "parts/sizes.py").write_text("EPS = 1.0\n")
    process = run_trtconv(project, "check", "out/model.onnx", "--against", "net.py:make_net", "--weights", "w.pt")
    assert process.returncode == 3


def test_an_export_without_a_record_is_a_warning(project):
    manifest = project / "out/model.onnx.json"
    data = json.loads(manifest.read_text())
    del data["sources"]
    manifest.write_text(json.dumps(data))
    with pytest.raises(InvalidRequestError, match="was changed after it was written"):
        compare_sources(CheckRequest(project / "out/model.onnx"))
    write_sealed(manifest, data)
    verdict = compare_sources(CheckRequest(project / "out/model.onnx"))
    assert verdict.status == "not recorded"
    assert verdict.findings[0].level == "warning"
    data["sources"] = {"files": [1]}
    write_sealed(manifest, data)
    assert compare_sources(CheckRequest(project / "out/model.onnx")).status == "not recorded"


def test_a_file_that_was_imported_before_is_a_source_too(tmp_path, monkeypatch):
    """Two exports in one process: the second opens only the file of the factory."""
    from trtconv.core.requests import ModuleSource
    from trtconv.export.module.imported_files import imported_files
    from trtconv.export.module.source import load_module

    write_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    source = ModuleSource("net.py:make_net", base=Path())
    try:
        load_module(source)
        files = imported_files(load_module(source), source)
    finally:
        for name in ("net", "parts", "parts.scaled", "parts.sizes"):
            sys.modules.pop(name, None)
    names = {str(Path(f).relative_to(tmp_path)) for f in files}
    assert names == {"net.py", "parts/__init__.py", "parts/scaled.py", "parts/sizes.py"}


@pytest.mark.slow
def test_a_converted_model_depends_on_the_rules_and_their_section(check, project, monkeypatch):
    pytest.importorskip("tensorrt_rtx")
    shutil.rmtree(project / "out")
    config = project / "trtconv.toml"
    config.write_text(config.read_text() + '\n[rewrite]\nskip = ["l2norm"]\n\n[build]\nbackend = "tensorrt-rtx"\n')
    process = run_trtconv(project, "convert", "--config", "trtconv.toml", "-o", ".")
    assert process.returncode == 0, process.stderr
    again = run_trtconv(project, "convert", "--config", "trtconv.toml", "-o", ".")
    assert "nothing changed since" in again.stdout
    assert check("model.trt.onnx")[0] == 0
    config.write_text(config.read_text().replace('"l2norm"', '"gelu"'))
    assert check("model.onnx")[0] == 0
    code, out = check("model.trt.onnx")
    assert code == 2
    assert "[rewrite] of trtconv.toml changed since" in out
    changed = [SourceChange("net.py", "changed", project / "net.py")]
    (project / "net.py").write_text(FILES["net.py"] + "# a remark\n")
    stamp = json.loads((project / "model.convert.json").read_text())
    assert str(project / "net.py") in stamp["read"], "a source in the output's folder is not taken for an output"
    monkeypatch.chdir(project)
    assert list(changed_sources(stamp["sources"], project / "model.onnx"))[:1] == changed
