"""An engine file that the fake TensorRT runs, with manifest and reference, on a machine that seems to have a GPU."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.backends import fake_tensorrt
from trtconv.backends.cuda.driver import Gpu
from trtconv.backends.protocol import Capabilities
from trtconv.backends.runtime import session
from trtconv.backends.tensorrt import admission, backend
from trtconv.backends.tensorrt.manifest import EngineManifest, write_manifest
from trtconv.core.files.digest import sha256_file
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.proof.points import sample_inputs, sample_points
from trtconv.proof.reference import ReferenceInfo, ReferenceSample, write_reference

SPACE = parse_space(["N=1:2:4"])
INPUTS = (parse_tensor("x:float32[N,2]"), parse_tensor("ids:int32[N]"))
OUTPUTS = (parse_tensor("y:float32[N,2]"), parse_tensor("same:int32[N]"))
BUILT_ON = "NVIDIA H200"


def write_fake_engine(folder: Path) -> Path:
    """`model.engine` of TensorRT 8.6.0, built on an H200, with its manifest and reference."""
    engine = folder / "model.engine"
    # The header's tag is a 32-bit number, little endian.
    engine.write_bytes(b"trtf" + bytes(20) + bytes([8, 6, 0, 0]) + bytes(200))
    write_manifest(engine, EngineManifest(
        engine_sha256=sha256_file(engine), engine_bytes=engine.stat().st_size, model_files={}, backend="tensorrt",
        version="8.6.0", trtconv="0", inputs=INPUTS, outputs=OUTPUTS, space=SPACE,
        profiles=({"x": ((1, 2), (2, 2), (4, 2)), "ids": ((1,), (2,), (4,))},), precision="fp32",
        environment={"gpu": BUILT_ON, "compute_capability": "9.0"},
    ))  # fmt: skip
    points = tuple(sample_points(SPACE, INPUTS))
    samples = []
    for point in points:
        inputs = sample_inputs(INPUTS, point)
        outputs = {"y": (2 * inputs["x"]).astype(np.float32), "same": inputs["ids"]}
        samples.append(ReferenceSample(point, inputs, outputs))
    write_reference(
        folder / "model.reference.safetensors", ReferenceInfo(points, INPUTS, ("y", "same"), SPACE), samples
    )
    return engine


def pretend_gpu(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Engines are run by the fake TensorRT, on a GPU of this name and compute capability 9.0."""
    capabilities = Capabilities("tensorrt", "8.6.0", 8, True, True, False)
    monkeypatch.setattr(backend.TensorRTBackend, "_trt", fake_tensorrt)
    monkeypatch.setattr(backend.TensorRTBackend, "capabilities", lambda self: capabilities)
    monkeypatch.setattr(backend, "require_cuda", lambda what: Gpu(0, name, "9.0", 1 << 37, 132, "00"))
    monkeypatch.setattr(session, "open_cuda_memory", lambda device: fake_tensorrt.HostMemory())
    monkeypatch.setattr(admission, "load_plugins", lambda *_: None)
