import pytest

from trtconv.build.cache.store import EngineCache

PARTS = {"model": {"m.onnx": "a" * 64}, "precision": "fp32", "backend": "tensorrt 11.1"}


@pytest.fixture
def cache(tmp_path):
    return EngineCache(tmp_path / "cache")


@pytest.fixture
def engine(tmp_path):
    path = tmp_path / "built.engine"
    path.write_bytes(b"e" * 1000)
    return path
