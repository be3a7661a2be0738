"""The pytest plugin, in pytest runs of its own within this process."""

import json
from importlib.metadata import entry_points

import pytest

from tests.api.page import ROOT, write_examples
from trtconv.core.config import toml_reader

pytest_plugins = "pytester"
INSTALLED = [e for e in entry_points(group="pytest11") if e.name == "trtconv"]
RED = """
import torch
from net import Net

def test_red(trtconv_gate):
    net = Net()
    with torch.no_grad():
        net.linear.bias += 5
    trtconv_gate({path!r}, against=net)
"""


@pytest.fixture
def call(here, pytester):
    """Run pytest on test files in the page's folder, in which the conversion lies."""

    def run(source: str, *options: object) -> pytest.RunResult:
        file = pytester.makepyfile(source)
        words = [] if INSTALLED else ["-p", "trtconv.pytest_plugin"]
        return pytester.runpytest_inprocess(
            *words, "-p", "no:cacheprovider", "--rootdir", str(pytester.path), file, *map(str, options)
        )

    return run


def test_the_entry_point_is_declared():
    project = toml_reader().loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"trtconv": "trtconv.pytest_plugin"}


def test_the_pages_tests_pass(call, here, pytester, tmp_path):
    write_examples("how-to/test-in-pytest.md", tmp_path)
    sources = [(tmp_path / f"test_{n}.py").read_text() for n in ("engine", "gate")]
    weights = here.folder / "weights.pt"
    import torch

    torch.save(here.net.state_dict(), weights)
    text = "\n".join(sources).replace("from net import make_net", "")
    text = text.replace("out/model", f"{here.folder}/out/model")
    source = "import torch\nfrom net import Net\ndef make_net():\n    net = Net()\n"
    source += f"    net.load_state_dict(torch.load({str(weights)!r}))\n    return net\n"
    call(source + text, "--trtconv-reports", tmp_path / "reports").assert_outcomes(passed=3)
    names = sorted(p.name.rpartition("py_")[2] for p in (tmp_path / "reports").iterdir())
    assert names == [
        "test_gate.report.html",
        "test_gate.report.json",
        "test_gate_without_torch.report.html",
        "test_gate_without_torch.report.json",
    ]


def test_a_red_gate_fails_and_leaves_its_reports(call, here, tmp_path):
    path = str(here.folder / "out" / "model.trt.onnx")
    result = call(RED.format(path=path), "--trtconv-reports", tmp_path / "r", "--trtconv-formats", "json,junit")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*DifferenceError: FAILED*", "*submodule 'linear'*"])
    (report,) = (tmp_path / "r").glob("*.report.json")
    assert json.loads(report.read_text())["passed"] is False
    assert list((tmp_path / "r").glob("*.xml"))


def test_options_of_the_run_are_limits_of_every_check(call, here, tmp_path):
    path = str(here.folder / "out" / "model.trt.onnx")
    plain = f"def test_it(trtconv_gate):\n    trtconv_gate({path!r})\n"
    (tmp_path / "t.toml").write_text("[check.budgets]\nplugin_nodes = 0\n")
    call(plain, "--trtconv-config", tmp_path / "t.toml", "--trtconv-rtol", "1e-4").assert_outcomes(passed=1)
    call(plain, "--trtconv-reference", tmp_path / "none").assert_outcomes(failed=1)
    call(plain, "--trtconv-rtol", "nan").assert_outcomes(failed=1)
    call(plain, "--trtconv-against", f"{here.folder}/net.py:Net").assert_outcomes(failed=1)  # other weights
    call(plain, "--trtconv-reports", tmp_path, "--trtconv-formats", "pdf").assert_outcomes(failed=1)
    loose = plain.replace(")\n", ", rtol=100.0, atol=100.0)\n").replace("_gate, rtol=100.0, atol=100.0):", "_gate):")
    call(loose, "--trtconv-against", f"{here.folder}/net.py:Net").assert_outcomes(passed=1)


def test_an_engine_without_a_gpu_fails_unless_told_to_skip(call, here):
    from trtconv.backends.cuda.driver import probe_cuda

    # With a GPU the engine runs, and there is nothing that could not be run.
    if probe_cuda().gpus:
        pytest.skip("says what is missing without a GPU")
    path = str(here.folder / "out" / "model.engine")
    source = f"def test_it(trtconv_gate):\n    trtconv_gate({path!r})\n"
    call(source).assert_outcomes(failed=1)
    call(source, "--trtconv-unrunnable", "skip").assert_outcomes(skipped=1)
