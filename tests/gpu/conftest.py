"""These tests need a GPU and the `tensorrt` package; elsewhere they are skipped with the reason."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from trtconv.backends.cuda.driver import probe_cuda

HERE = Path(__file__).parent


def _reason() -> str:
    if find_spec("tensorrt") is None:
        return "tensorrt is not installed"
    state = probe_cuda()
    return "" if state.gpus else state.reason


def pytest_collection_modifyitems(items):
    reason = _reason()
    for item in items:
        if HERE in Path(str(item.fspath)).parents:
            item.add_marker(pytest.mark.gpu)
            if reason:
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def backend():
    from trtconv.backends.select import choose_backend

    return choose_backend("tensorrt")


@pytest.fixture
def engine_file(tmp_path):
    """Build a model and give the engine's path."""
    from trtconv.build import build_engine
    from trtconv.core.requests import BuildRequest
    from trtconv.core.shape_space.space import ShapeSpace

    def build(model: Path, **values) -> Path:
        output = tmp_path / (model.stem + values.pop("suffix", "") + ".engine")
        values.setdefault("dynamic", ShapeSpace())
        build_engine(BuildRequest(model=model, output=output, backend="tensorrt", **values))
        return output

    return build


@pytest.fixture(params=["pycuda", "driver"])
def cuda_library(request, monkeypatch) -> str:
    """What carries memory, streams, events and the context: a test that uses this runs over both."""
    if request.param == "pycuda" and find_spec("pycuda") is None:
        pytest.skip("pycuda is not installed")
    monkeypatch.setenv("TRTCONV_CUDA", request.param)
    return request.param


@pytest.fixture
def run(cuda_library):
    """Open an engine for the length of a test, by each CUDA library."""
    from trtconv.backends.select import backend_of

    opened = []

    def load(engine: Path, **values):
        opened.append(backend_of(engine).load(engine, **values))
        return opened[-1]

    yield load
    for session in opened:
        session.close()
