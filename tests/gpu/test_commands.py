"""The commands as a shell starts them: a supervised child, confined where it reads strangers' files, on a real GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.backends.onnx_models import conv_net


def trtconv(*words, folder, **variables):
    """Exit code, stdout and stderr of one command in a process of its own."""
    return python("-m", "trtconv", *words, folder=folder, **variables)


def python(*words, folder, **variables):
    """The same of one run of Python that finds what this one does."""
    path = os.pathsep.join(p for p in sys.path if p)
    command = [sys.executable, *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": path, **variables}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, check=False)
    return ended.returncode, ended.stdout, ended.stderr


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """A foreign file, converted to an engine that was checked."""
    folder = tmp_path_factory.mktemp("commands")
    model = conv_net(folder / "net.onnx", depth=2)
    code, _, told = trtconv("convert", model, "-o", "out", "--backend", "tensorrt", folder=folder)
    assert code == 0, told
    return folder / "out" / "model.engine"


def test_a_check_runs_the_engine(engine):
    code, out, told = trtconv("check", engine, "--json", folder=engine.parent)
    assert code == 0, told
    report = json.loads(out)
    assert report["environment"]["gpu"]
    assert len(report["comparisons"]) >= 5


@pytest.mark.parametrize("library", ["pycuda", "driver"])
def test_bench_measures_over_both_libraries(engine, library):
    if library == "pycuda":
        pytest.importorskip("pycuda")
    code, out, told = trtconv("bench", engine, "--json", folder=engine.parent, TRTCONV_CUDA=library)
    assert code == 0, told
    assert '"median"' in out


def test_inspect_times_the_layers(engine):
    code, out, told = trtconv("inspect", engine, "--layers", folder=engine.parent)
    assert code == 0, told
    assert " us" in out


def test_repro_of_a_right_engine_says_that_nothing_fails(engine, tmp_path):
    code, out, told = trtconv("repro", engine, "-o", tmp_path / "repro", "--backend", "tensorrt", folder=engine.parent)
    assert code == 1
    assert "nothing fails" in out + told
    assert not (tmp_path / "repro").exists()


def test_a_driver_that_is_not_there_is_one_error(engine):
    code, _, told = trtconv("check", engine, folder=engine.parent, CUDA_VISIBLE_DEVICES="")
    assert code not in (0, 3)
    assert "Traceback" not in told


def test_an_engine_is_loaded_in_a_script(engine):
    script = (
        "import numpy, sys, trtconv\n"
        "session = trtconv.load(sys.argv[1])\n"
        "print(float(session(x=numpy.ones((2, 3, 32, 32), numpy.float32))['y'].sum()))\n"
    )
    code, out, told = python("-c", script, engine, folder=engine.parent)
    assert code == 0, told
    assert np.isfinite(float(out))
