"""Verdicts, `assert_equal` and `load`."""

import json

import numpy as np
import pytest

import trtconv
from trtconv.backends.cuda.driver import probe_cuda

without_gpu = pytest.mark.skipif(bool(probe_cuda().gpus), reason="says what is missing without a GPU")


def test_a_verdict_tells_itself(here):
    verdict = trtconv.check(here.result.rewritten)
    assert verdict
    assert str(verdict).startswith("PASSED")
    assert repr(verdict).startswith("<trtconv.Verdict PASSED")
    page = verdict._repr_html_()
    assert page.startswith("<iframe")
    assert "&lt;html" in page
    assert verdict.as_dict()["kind"] == "check"
    assert (here.folder / "report.html").read_text().count("<html") == 1
    assert "<testsuite" in (here.folder / "junit.xml").read_text()
    with pytest.raises(trtconv.InvalidRequestError, match="no report format is called 'pdf'"):
        verdict.save(pdf="report.pdf")
    with pytest.raises(trtconv.InvalidRequestError, match="are one file"):
        verdict.save(json=here.folder / "same", html=here.folder / "same")


def test_a_red_verdict_names_the_submodule(page):
    assert (page.red.passed, bool(page.red), page.red.exit_code) == (False, False, 3)
    assert str(page.red).startswith("FAILED")
    assert "submodule 'linear'" in str(page.red)
    with pytest.raises(AssertionError, match="FAILED") as caught:
        page.red.raise_if_failed()
    assert isinstance(caught.value, trtconv.AccuracyError)


@without_gpu
def test_an_engine_without_a_gpu_is_never_equal(here):
    verdict = trtconv.check(here.result)
    assert (verdict.passed, verdict.exit_code) == (False, 5)
    with pytest.raises(trtconv.MissingDependencyError, match="the engine was not run here"):
        trtconv.assert_equal(here.net, here.result)
    with pytest.raises(trtconv.MissingDependencyError, match="needs an NVIDIA GPU"):
        trtconv.load(here.result)


def test_a_module_in_a_file_is_compared_as_well(here):
    with pytest.raises(trtconv.DifferenceError):  # other weights: another seed
        trtconv.assert_equal("net.py:Net", "out/model.trt.onnx", seed=5)


def test_limits_and_the_baseline_are_those_of_the_command_line(here, tmp_path, monkeypatch):
    monkeypatch.setattr("trtconv.check.gate.judge.PAUSES", ())
    (tmp_path / "t.toml").write_text("[check.budgets]\nlatency_ms = 1e-9\n")
    verdict = trtconv.check("out/model.trt.onnx", config=tmp_path / "t.toml")
    assert verdict.exit_code == 6
    with pytest.raises(trtconv.OverBudgetError):
        verdict.raise_if_failed()
    with pytest.raises(trtconv.InvalidRequestError, match='update_baseline=True needs baseline="FILE"'):
        trtconv.check("out/model.trt.onnx", update_baseline=True)


def test_a_session_takes_arrays_and_tensors(here):
    import torch

    values = np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)
    with trtconv.load(str(here.result.rewritten)) as session:
        assert [str(s) for s in session.inputs] == ["x:float32[N,8]"]
        (array,) = session(x=values).values()
        (same,) = session(x=torch.from_numpy(values).requires_grad_()).values()
        for wrong, message in (
            ({"y": values}, "the input 'y' does not exist"),
            ({}, "the input 'x' has no value"),
            ({"x": [1.0]}, "must be an array or a tensor, got list"),
            ({"x": values.astype(np.float64)}, r"x:float32\[N,8\] cannot be float64\[2,8\]"),
            ({"x": values[:, :7]}, r"x:float32\[N,8\] cannot be float32\[2,7\]"),
        ):
            with pytest.raises(trtconv.InvalidRequestError, match=message):
                session(**wrong)
        with pytest.raises(trtconv.InvalidRequestError, match="inputs are given by name"):
            session(values)
        with pytest.warns(UserWarning, match="N=999 is outside N="):
            session(x=np.zeros((999, 8), np.float32))
    np.testing.assert_array_equal(array, same)
    np.testing.assert_allclose(array, here.net(torch.from_numpy(values)).detach().numpy(), atol=1e-5)


def test_bfloat16_tensors_become_arrays():
    import torch

    from trtconv.check.session import _array

    array = _array("x", torch.tensor([1.5, -2.0], dtype=torch.bfloat16))
    assert array.dtype.name == "bfloat16"
    assert array.astype(np.float32).tolist() == [1.5, -2.0]


def test_the_documents_are_json(page):
    assert json.loads(json.dumps(page.result.as_dict(), allow_nan=False))["kind"] == "convert"
