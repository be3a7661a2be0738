"""The backend under the real Python bindings of TensorRT 10.16 and 11.4, with stand-ins for the libraries."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends.stub_libraries import compiler, make_stub_libraries
from tests.wheels import wheel_folder

ROOT = Path(__file__).parents[2]
VERSIONS = {"10.16.1.11": 10, "11.4.0.106": 11}

CHILD = """
import sys
from trtconv.backends.select import choose_backend
from trtconv.backends.tensorrt.backend import TensorRTBackend
from trtconv.backends.tensorrt.messages import logger_of
from trtconv.backends.tensorrt.builder.interruptible import Cancellation, make_monitor
from trtconv.backends.tensorrt.layers import make_profiler
from trtconv.backends.runtime.output_allocator import make_output_allocator
from trtconv.backends.tensorrt.engine_io import NUMPY_NAMES
from trtconv.backends.tensorrt.library import import_tensorrt
from trtconv.core.errors import TrtconvError
from trtconv.core.progress import SilentProgress

major = int(sys.argv[1])
trt = import_tensorrt("tensorrt")
found = choose_backend("tensorrt").capabilities()
assert found.name == "tensorrt" and found.generation == major, found
assert found.progress and found.int64 and found.plugins and found.timing_cache and found.debug_tensors
assert found.strip_plan and found.version_compatible and not found.compute_capabilities
assert {"AMPERE_PLUS", "SAME_COMPUTE_CAPABILITY"} <= set(found.hardware_compatibility), found
assert found.strongly_typed_flag == (major == 10), found
assert found.explicit_batch == (major == 10), found
assert bool(found.precision_flags) == (major == 10), found
logger = logger_of(trt)
with logger.collect() as messages:
    logger.log(trt.ILogger.Severity.WARNING, "something")
assert messages.warnings == ("something",)
cancellation = Cancellation()
monitor = make_monitor(trt, SilentProgress(), cancellation)
monitor.phase_start("building", None, 3)
assert monitor.step_complete("building", 0)
cancellation.cancel()
assert not monitor.step_complete("building", 1)
monitor.phase_finish("building")
make_profiler(trt).report_layer_time("layer", 1.0)
allocator = make_output_allocator(trt, None)
allocator.notify_shape("y", (2, 3))
assert allocator.shapes == {"y": (2, 3)}
import ctypes
import numpy as np
from tests.backends.fake_tensorrt import HostMemory
from trtconv.backends.tensorrt.debug_tensors import make_debug_listener
listener = make_debug_listener(trt, HostMemory())
values = np.arange(6, dtype=np.float32).reshape(2, 3)
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
for place in (trt.TensorLocation.DEVICE, trt.TensorLocation.HOST):
    capsule = new(values.ctypes.data, None, None)
    assert listener.process_debug_tensor(capsule, place, trt.float32, trt.Dims((2, 3)), "inner", 0), listener.error
    assert (listener.arrays.pop("inner") == values).all()
names = set(trt.DataType.__members__)
assert set(NUMPY_NAMES) <= names, set(NUMPY_NAMES) - names
from trtconv.backends.tensorrt.builder.network import create_network
try:
    create_network(trt, found, logger)
except TrtconvError as error:
    assert "gives no builder" in error.message, error
else:
    raise AssertionError("the stand-in gave a builder")
print("good", trt.__version__)
"""


def bindings(version: str) -> Path:
    """The wheels of one version in a folder of their own, downloaded once."""
    name = f"tensorrt-{version}-py{sys.version_info.major}.{sys.version_info.minor}"
    return wheel_folder(name, f"tensorrt-cu13=={version}", f"tensorrt-cu13-bindings=={version}")


@pytest.mark.slow
@pytest.mark.parametrize(("version", "major"), VERSIONS.items())
def test_the_backend_fits_the_bindings(version, major, tmp_path):
    if compiler() is None:
        pytest.skip("no C compiler for the stand-ins")
    site = bindings(version)
    stubs = make_stub_libraries(tmp_path / "lib", major)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(stubs), "PYTHONPATH": f"{site}:{ROOT}"}
    process = subprocess.run(
        [sys.executable, "-c", CHILD, str(major)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert process.returncode == 0, process.stderr
    assert f"good {version}" in process.stdout
