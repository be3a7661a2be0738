"""The protocols say all that rooms use, and what satisfies them does so by name; mypy (`make lint`) compares types."""

import ast
import inspect
from pathlib import Path

import pytest

from trtconv.backends import protocol
from trtconv.backends.cuda import memory
from trtconv.backends.cuda.driver_memory import DriverMemory
from trtconv.backends.cuda.pycuda_memory import PycudaMemory
from trtconv.backends.cuda.torch_memory import TorchMemory
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.runtime.prepared import Prepared
from trtconv.backends.runtime.session import EngineSession
from trtconv.backends.tensorrt.backend import TensorRTBackend

PACKAGE = Path(protocol.__file__).parents[1]
SATISFIED = [
    (protocol.Backend, TensorRTBackend),
    (protocol.EngineRunner, EngineSession),
    (protocol.ModelRunner, OnnxRuntimeRunner),
    (protocol.PreparedRun, Prepared),
    (memory.CudaMemory, DriverMemory),
    (memory.CudaMemory, PycudaMemory),
    (memory.CudaMemory, TorchMemory),
]


def methods(kind):
    return {
        name: inspect.signature(member)
        for base in kind.__mro__
        for name, member in vars(base).items()
        if inspect.isfunction(member) and (not name.startswith("_") or name == "__call__")
    }


@pytest.mark.parametrize(("protocol_type", "kind"), SATISFIED, ids=lambda k: k.__name__)
def test_every_method_takes_what_the_protocol_says(protocol_type, kind):
    offered = methods(kind)
    for name, signature in methods(protocol_type).items():
        assert name in offered, f"{kind.__name__} lacks {name}"
        # A parameter that is positional only may have any name.
        named = [p.name for p in signature.parameters.values() if p.kind is not p.POSITIONAL_ONLY]
        assert set(named) <= set(offered[name].parameters), f"{kind.__name__}.{name}"


@pytest.mark.parametrize("path", [Path(protocol.__file__), Path(memory.__file__)], ids=lambda p: p.name)
def test_no_protocol_says_any(path):
    """`Array` is NumPy's array of any shape and element type, which NumPy has no other word for."""
    for kind in ast.parse(path.read_text()).body:
        if isinstance(kind, ast.ClassDef):
            assert "Any" not in {n.id for n in ast.walk(kind) if isinstance(n, ast.Name)}, kind.name


def test_rooms_hold_no_session_of_any_type():
    for path in PACKAGE.rglob("*.py"):
        assert "session: Any" not in path.read_text(), path
