"""What `trtconv convert` says of the TensorRT that built the engine."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from trtconv.core.targets import parse_target
from trtconv.frontend.summary import _other_builder


@pytest.mark.parametrize(
    ("target", "backend", "version", "noted"),
    [
        ("tensorrt==8.6", "tensorrt-rtx", "1.7.1.116", True),
        ("tensorrt==10", "tensorrt", "8.6.0", True),
        ("tensorrt-rtx", "tensorrt-rtx", "1.7.1.116", False),
        ("tensorrt==8.6", "tensorrt", "8.6.0", False),
        ("tensorrt==10", "tensorrt", "10.14.1.48", False),
    ],
)
def test_another_builder_than_the_target_is_noted(target, backend, version, noted):
    result = SimpleNamespace(
        target=parse_target(target),
        build=SimpleNamespace(backend=backend, version=version),
        rewrite=SimpleNamespace(model=Path("out/model.trt.onnx")),
    )
    lines = _other_builder(result)
    assert bool(lines) is noted
    assert not noted or f"{backend} {version}, which is installed here, built the engine" in lines[0][1]
