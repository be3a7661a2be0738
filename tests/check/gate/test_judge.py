"""What turns the gate red, and where the message points; and that nothing else does."""

import numpy as np
import pytest

from tests.check.models import half_net, small_net, write_engine, write_pair
from trtconv.check import check_model
from trtconv.check.reporters.github import annotation_lines
from trtconv.check.reporters.problems import problems
from trtconv.core.model.file import save_model
from trtconv.core.requests import CheckRequest
from trtconv.core.tensors import parse_tensor
from trtconv.pipeline import exit_code


def test_a_broken_rewrite_is_red_at_the_line_of_the_node_that_it_made(tmp_path):
    path = write_pair(tmp_path, rewritten=small_net(eps=1e-1, norm_rule="l2norm"))
    report = check_model(CheckRequest(path))
    assert exit_code(report) == 3
    (finding,) = report.errors
    assert (finding.node, finding.module, finding.source) == ("/norm/Add", "norm", "net.py:13")
    assert "rule l2norm made" in finding.message
    assert "--skip l2norm" in finding.hint
    assert any(line.startswith("::error file=net.py,line=13,") for line in annotation_lines(report))


def test_a_wrong_epsilon_shows_at_the_zero_point_only(tmp_path):
    path = write_pair(tmp_path, rewritten=small_net(eps=0.0))
    report = check_model(CheckRequest(path))
    assert exit_code(report) == 3
    bad = {c.point.split(" ")[0] for c in report.comparisons if not c.passed}
    assert bad <= {"zeros", "denormal"}
    assert "zeros" in bad
    # 1e-10 beside 0 is the whole magnitude of that tensor, so the sum itself is named and not what it does to 0 / 0.
    assert report.errors[0].source == "net.py:13"
    assert "zeros" in report.errors[0].message


def test_a_baked_size_is_red_at_the_reshape(tmp_path):
    path = write_pair(tmp_path, small_net(baked=32))
    report = check_model(CheckRequest(path))
    assert exit_code(report) == 3
    problem = problems(report)[0]
    assert (problem.file, problem.line, problem.node) == ("net.py", 21, "/head/Reshape")
    assert "Reshape" in problem.message


def test_half_precision_outside_the_tolerance_is_red_and_names_modules(tmp_path):
    path = write_pair(tmp_path, rewritten=half_net())
    report = check_model(CheckRequest(path))
    assert exit_code(report) == 3
    worst = max(c.max_scaled for c in report.comparisons if c.max_scaled is not None)
    assert worst > 1e-4


def test_the_line_of_a_node_without_one_is_that_of_the_node_before(tmp_path):
    path = write_pair(tmp_path, rewritten=small_net(scale=2.5))
    report = check_model(CheckRequest(path))
    assert report.errors[0].node == "/head/Mul"
    assert report.errors[0].source == "net.py:14"


@pytest.fixture
def engine(tmp_path):
    """An engine file with the manifest of a build from `model.trt.onnx`."""
    write_pair(tmp_path)
    return write_engine(tmp_path)


def test_an_engine_that_belongs_here_gets_as_far_as_the_gpu(engine):
    report = check_model(CheckRequest(engine))
    assert [f.kind for f in report.errors] == ["environment"]
    assert exit_code(report) == 5


def test_a_stale_engine_is_red(engine):
    save_model(small_net(scale=2.5), engine.with_name("model.trt.onnx"))
    report = check_model(CheckRequest(engine))
    assert exit_code(report) == 2
    assert "is stale" in report.errors[0].message
    assert "trtconv build" in report.errors[0].hint


def test_an_engine_of_another_model_is_red(engine):
    path = write_engine(engine.parent, outputs=(parse_tensor("logits:float32[N,F]"),))
    report = check_model(CheckRequest(path))
    assert exit_code(report) == 2
    assert "of another model" in report.errors[0].message
    assert "no output 'y'" in report.errors[0].message


def test_a_damaged_engine_is_red(engine):
    from trtconv.core.errors import InvalidRequestError

    engine.write_bytes(engine.read_bytes()[:-10])
    with pytest.raises(InvalidRequestError, match="is not the engine that"):
        check_model(CheckRequest(engine))


def test_an_unchanged_model_stays_green_over_twenty_runs(tmp_path):
    path = write_pair(tmp_path, rewritten=small_net(scale=np.float32(2.0) * (1 + 3e-7)))
    verdicts = [exit_code(check_model(CheckRequest(path))) for _ in range(20)]
    assert verdicts == [0] * 20


def test_heat_is_given_when_asked_for_and_names_each_module(tmp_path):
    path = write_pair(tmp_path)
    assert "heat" not in check_model(CheckRequest(path)).extras
    heat = check_model(CheckRequest(path), heat=True).extras["heat"]
    assert [(h["module"], h["tensors"], h["error"]) for h in heat] == [("norm", 6, 0.0), ("head", 1, 0.0)]
