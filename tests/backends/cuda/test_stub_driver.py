"""The driver path, and the real pycuda where it is installed, over a stand-in for libcuda that needs no GPU."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.backends.stub_libraries import compiler

HERE = Path(__file__).parent
needs_pycuda = pytest.mark.skipif(find_spec("pycuda") is None, reason="pycuda is not installed")
NAMES = {"driver": "CUDA driver", "pycuda": "pycuda"}

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the stand-in is an ELF library"),
    pytest.mark.skipif(compiler() is None, reason="no C compiler"),
]


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stub")
    library = folder / "libcuda.so.1"
    command = [compiler(), "-shared", "-fPIC", "-O1", "-Wl,-soname,libcuda.so.1", "-o", library, HERE / "stub_driver.c"]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@pytest.fixture(params=["driver", pytest.param("pycuda", marks=needs_pycuda)])
def run(request, stub):
    def child(what):
        variables = os.environ | {
            "LD_LIBRARY_PATH": f"{stub}:{os.environ.get('LD_LIBRARY_PATH', '')}",
            "TRTCONV_CUDA": request.param,
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        # What pycuda cannot free it leaks with a warning.
        command = [sys.executable, "-W", "error", "-m", "tests.backends.cuda.stub_process", what]
        ended = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, cwd=HERE.parents[2])
        assert ended.returncode == 0, ended.stderr
        assert ended.stderr == ""
        facts = json.loads(ended.stdout)
        assert facts.pop("name") == NAMES[request.param]
        assert facts.pop("wrong") == 0, "a call without a current context"
        return facts

    return child


def test_any_thread_frees_what_another_made(run):
    assert run("threads") == {"before": 4, "after": 0, "end": 0}


def test_four_threads_and_nothing_is_left(run):
    assert run("calls") == {"live": 0}


def test_nothing_grows_with_the_number_of_calls(run):
    facts = run("growth")
    assert facts["live"] == 0
    assert facts["blocks"] < 100, "1,000 calls more"


def test_the_process_ends_well_with_an_open_session(run):
    assert run("unclosed") == {}


@needs_pycuda
def test_gpuarrays_go_in_and_come_out(run):
    assert run("gpuarrays") == {"equal": True, "live": 0}


@needs_pycuda
def test_a_context_of_the_callers_own(run):
    assert run("own_context") == {"same": True, "owns": False, "depth": 0}
