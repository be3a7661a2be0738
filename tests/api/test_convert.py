"""`trtconv.convert` with a live module: what it makes, what it records, what it leaves as it was."""

import json
from contextlib import suppress
from threading import Event, Thread

import pytest

import trtconv
from trtconv.api.calls import requested_module


def test_the_page_ran(page):
    result = page.result
    assert isinstance(result, trtconv.Conversion)
    assert {p.name for p in (page.folder / "out").iterdir()} >= {
        "model.onnx",
        "model.trt.onnx",
        "model.engine",
        "model.reference.safetensors",
        "model.report.html",
        "model.convert.json",
    }
    assert result.directory.name == "out"
    assert result.graph.passed
    assert result.verdict.passed
    assert str(result.space) == "N=1:2:4"
    assert "verdict" in str(result)
    assert "<iframe" in result._repr_html_()
    assert result.as_dict()["export"]["space"] == {"N": {"min": 1, "opt": 2, "max": 4, "multiple": 1}}


def test_the_manifest_says_where_a_live_module_came_from(page):
    manifest = json.loads((page.folder / "out" / "model.onnx.json").read_text())
    assert manifest["source"]["live"]["class"] == "net.Net"
    assert manifest["source"]["live"]["file"] == str((page.folder / "net.py").resolve())
    assert len(manifest["source"]["live"]["state_sha256"]) == 64
    assert list(manifest["sources"]["files"]) == ["../net.py"]


def test_the_source_of_a_live_module_is_compared(here):
    file = here.folder / "net.py"
    text = file.read_text()
    green = trtconv.check("out/model.trt.onnx")
    assert green.passed
    assert any("no file holds its weights" in f.message for f in green.findings)
    file.write_text(text.replace("torch.tanh", "torch.sin"))
    try:
        red = trtconv.check("out/model.trt.onnx")
    finally:
        file.write_text(text)
    assert (red.passed, red.exit_code) == (False, 2)
    assert "net.py changed" in str(red)
    with pytest.raises(trtconv.InvalidRequestError, match=r"net\.py changed"):
        red.raise_if_failed()


def test_the_module_is_put_back(page):
    import torch
    from torch import nn

    from trtconv.api.calls import requested_module

    net = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2).eval()).train()
    net[1].eval()
    parameter, buffer = net[0].weight, net[1].running_mean
    state = torch.random.get_rng_state()
    with suppress(RuntimeError), requested_module(net):
        net.eval()
        torch.manual_seed(3)
        raise RuntimeError
    assert (net.training, net[0].training, net[1].training) == (True, True, False)
    assert net[0].weight is parameter
    assert net[1].running_mean is buffer
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("module", ["net.py:Absent", None])
def test_the_random_state_is_put_back_where_no_module_was_given(here, tmp_path, module):
    import torch

    state = torch.random.get_rng_state()
    with pytest.raises(trtconv.InvalidRequestError):
        trtconv.convert(module or type(here.net), inputs={"x": "float32[8]"}, output=tmp_path / "new")
    assert torch.equal(torch.random.get_rng_state(), state)


def test_the_module_inside_of_a_compiled_one_is_taken(page):
    import torch

    from trtconv.export.live import live_module

    live = live_module(torch.compile(page.net))
    assert live.module is page.net
    assert live.name == "net.Net"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (3, {}, "a module must be an nn.Module or a text, got int"),
        ("live", {"weights": "w.pt"}, "'weights' is for a module that a file makes"),
        ("live", {"inputs": {"x": "float32[M,8]"}}, "has a dim 'M' without a range"),
        ("live", {"inputs": {"y": "float32[8]", "z": "float32[8]"}}, "the module takes no input 'y'"),
        ("net.py:Absent", {"inputs": {"x": "float32[8]"}}, "has no factory 'Absent'"),
        ("net.py:Net", {"inputs": [object()]}, "the inputs have no names"),
    ],
)
def test_what_does_not_fit_is_one_error(here, tmp_path, model, options, message):
    chosen = here.net if model == "live" else model
    with pytest.raises(trtconv.InvalidRequestError) as caught:
        trtconv.convert(chosen, output=tmp_path / "new", **{"inputs": {"x": "float32[8]"}, **options})
    assert message in str(caught.value)
    assert not (tmp_path / "new").exists()


def test_a_module_that_raises_is_told_with_its_line(here, tmp_path):
    with pytest.raises(trtconv.TrtconvError) as caught:
        trtconv.convert(here.net, inputs={"x": "float32[2,9]"}, output=tmp_path / "new")
    assert "net.py:" in caught.value.where


@pytest.mark.parametrize("model", ["net.py:Net", "live", None])
def test_calls_from_several_threads_wait_for_their_turn(here, model):
    """Two at once leave `sys.stdout` redirected, and torch's exporters mix up what they trace."""
    entered = Event()

    def enter():
        with requested_module(here.net if model == "live" else model):
            entered.set()

    thread = Thread(target=enter)
    with requested_module("other.py:Net"):
        thread.start()
        assert not entered.wait(0.2)
    thread.join(10)
    assert entered.is_set()
