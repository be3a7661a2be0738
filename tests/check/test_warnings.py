"""What an engine gives to warn of reaches everybody who opens or runs it."""

import json
import warnings

import numpy as np
import pytest

import trtconv
from tests.backends import fake_tensorrt
from tests.backends.fake_engine import BUILT_ON, pretend_gpu, write_fake_engine
from trtconv.check import check_model
from trtconv.check.gate.bench import bench_model
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import CheckRequest

TUNED = "the engine was tuned on NVIDIA H200, this is NVIDIA H100: it may be slower"
SLOW = "Some tactics do not have sufficient workspace memory to run."


@pytest.fixture
def engine(tmp_path, monkeypatch):
    pretend_gpu(monkeypatch, "NVIDIA H100")
    return write_fake_engine(tmp_path)


@pytest.fixture
def same_gpu(tmp_path, monkeypatch):
    pretend_gpu(monkeypatch, BUILT_ON)
    return write_fake_engine(tmp_path)


@pytest.fixture
def talkative(monkeypatch):
    """TensorRT warns at every run."""
    plain = fake_tensorrt.Context.execute_async_v3

    def execute(self, stream):
        fake_tensorrt.logger().log(2, SLOW)
        return plain(self, stream)

    monkeypatch.setattr(fake_tensorrt.Context, "execute_async_v3", execute)


def engine_warnings(report):
    """What the engine gave to warn of, as the report shows it."""
    return [(f.level, f.message) for f in report.findings if f.kind == "environment"]


def test_check_reports_them_and_passes(engine, talkative):
    report = check_model(CheckRequest(engine))
    assert report.passed
    assert engine_warnings(report) == [("warning", TUNED), ("warning", SLOW)]


def test_no_warning_where_there_is_nothing_to_warn_of(same_gpu):
    report = check_model(CheckRequest(same_gpu))
    assert report.passed
    assert engine_warnings(report) == []


@pytest.mark.parametrize("command", [["check"], ["bench", "--seconds", "0.05", "--point", "opt"]])
def test_the_command_line_shows_them(engine, capsys, command):
    from trtconv.cli.main import run

    with pytest.raises(SystemExit) as ended:
        run([*command, str(engine)])
    text = capsys.readouterr()
    assert ended.value.code in (0, None), text.err
    assert TUNED in " ".join((text.out + text.err).split())


def test_bench_tells_and_records_them(engine, talkative):
    class Listening(SilentProgress):
        heard = ()

        def warn(self, text):
            self.heard = (*self.heard, text)

    progress = Listening()
    report = bench_model(engine, points=("opt",), seconds=0.05, progress=progress)
    assert report.warnings == (TUNED, SLOW)
    assert json.loads(json.dumps(report.as_dict()))["warnings"] == [TUNED, SLOW]
    assert set(report.warnings) <= set(progress.heard)


def test_load_warns_once_for_each(engine, talkative):
    with pytest.warns(RuntimeWarning) as caught:
        session = trtconv.load(engine)
    assert [str(w.message) for w in caught] == [TUNED]
    assert caught[0].filename == __file__
    inputs = {"x": np.ones((2, 2), np.float32), "ids": np.zeros(2, np.int32)}
    with pytest.warns(RuntimeWarning) as caught:
        session(**inputs)
    assert [str(w.message) for w in caught] == [SLOW]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session(**inputs)
    session.close()


def test_load_of_an_onnx_file_warns_of_nothing(tmp_path):
    from tests.backends.onnx_models import conv_net

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        session = trtconv.load(conv_net(tmp_path / "m.onnx"))
    session.close()
    with pytest.raises(trtconv.core.errors.InvalidRequestError, match="is closed"):
        session(x=np.zeros((1, 3, 16, 16), np.float32))
