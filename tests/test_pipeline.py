import dataclasses

import numpy as np
import pytest

from tests.check.test_room import double, folder  # noqa: F401 - a fixture
from trtconv.check import check_model
from trtconv.core.errors import AccuracyError, MissingDependencyError, UnsupportedError
from trtconv.core.model.file import save_model
from trtconv.core.report import Finding
from trtconv.core.requests import CheckRequest
from trtconv.pipeline import exit_code
from trtconv.pipeline.report_files import write_report
from trtconv.pipeline.stages import naming_what_was_left
from trtconv.pipeline.verdict import keep_if_equal, require_equal
from trtconv.rewrite.engine.result import RewriteResult


def test_a_wrong_file_is_moved_away_from_its_name(folder):  # noqa: F811
    wrong = folder / "model.trt.onnx"
    save_model(double(2.5), wrong)
    report = check_model(CheckRequest(wrong))
    assert exit_code(report) == 3
    page = folder / "model.report.html"
    with pytest.raises(AccuracyError, match="does not compute what the module computes") as caught:
        keep_if_equal(report, wrong, page)
    assert str(page) in caught.value.hint
    assert "model.trt.onnx.rejected" in caught.value.hint
    assert not wrong.exists()
    assert (folder / "model.trt.onnx.rejected").exists()


def test_an_equal_file_stays(folder):  # noqa: F811
    report = check_model(CheckRequest(folder / "model.onnx"))
    keep_if_equal(report, folder / "model.onnx", folder / "model.report.html")
    assert (folder / "model.onnx").exists()
    assert exit_code(report) == 0
    assert write_report(report, folder / "model.engine").read_text().count("<html") == 1


@pytest.mark.parametrize(
    ("kind", "code"), [("environment", 5), ("unsupported", 4), ("usage", 2), ("accuracy", 3), ("budget", 6)]
)
def test_exit_codes_follow_the_findings(folder, kind, code):  # noqa: F811
    report = check_model(CheckRequest(folder / "model.onnx"))
    result = dataclasses.replace(report, findings=(Finding("error", kind, "a test"),))
    assert exit_code(result) == code
    warned = dataclasses.replace(report, findings=(Finding("warning", kind, "a test"),))
    assert exit_code(warned) == 0


def test_an_environment_error_is_told_as_one(folder):  # noqa: F811
    report = check_model(CheckRequest(folder / "model.onnx"), module_runner=lambda i: {"y": i["x"] * np.float32(2)})
    broken = dataclasses.replace(report, findings=(Finding("error", "environment", "no GPU", "get one"),))
    with pytest.raises(MissingDependencyError, match="no GPU"):
        require_equal(broken)


@pytest.mark.parametrize(
    ("hint", "is_circular"),
    [("try `trtconv rewrite --target tensorrt-rtx`", True), ("give N a smaller range", False)],
)
def test_a_refused_node_says_why_the_rewrite_left_it(tmp_path, hint, is_circular):
    rewritten = RewriteResult(tmp_path, tmp_path, (), (), (), 0.0, notes=("y: it branches by BRANCH_EQ",))
    with pytest.raises(UnsupportedError) as caught, naming_what_was_left(rewritten):
        raise UnsupportedError("a node is not taken", hint=hint, details=["TreeEnsemble #0"])
    reasons = ("the rewrite left it: y: it branches by BRANCH_EQ",) if is_circular else ()
    assert caught.value.details == ("TreeEnsemble #0", *reasons)
    assert (caught.value.hint == hint) != is_circular
