"""The build room with embed_plugins: what the backend gets and what the manifest says; no library is asked for."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.plugins.cases import pad
from tests.plugins.test_onnx_form import model_of
from trtconv.backends.protocol import BuiltEngine, Capabilities, EngineSettings
from trtconv.backends.tensorrt.builder.configuration import check_settings
from trtconv.backends.tensorrt.builder.embedded_plugins import kernels_in_engine
from trtconv.backends.tensorrt.engine_fit import require_plugins
from trtconv.backends.tensorrt.manifest import read_engine_manifest
from trtconv.build import engine as room
from trtconv.build.inspection import engine_facts
from trtconv.build.resolve import resolve_build
from trtconv.core.errors import InvalidRequestError, UnsupportedError
from trtconv.core.requests import BuildRequest
from trtconv.core.shape_space.space import parse_space

KERNELS = {"trtconv_reflection_pad_0123456789ab": {"ptx_sha256": "ab" * 32, "architecture": "compute_90",
                                                   "nvrtc": "13.0", "compiled_for": "9.0"}}  # fmt: skip
ELEVEN = Capabilities(
    "tensorrt", "11.4.0.106", 11, False, False, False, timing_cache=True, plugins=True, embedded_plugins=True
)
TEN_EIGHT = dataclasses.replace(ELEVEN, version="10.8.0.43", generation=10, embedded_plugins=False)


class Backend:
    """Answers as TensorRT would, and keeps the settings that it was given."""

    def __init__(self, capabilities: Capabilities) -> None:
        self.known, self.settings = capabilities, EngineSettings(Path(), ())

    def capabilities(self) -> Capabilities:
        return self.known

    def build(self, settings: EngineSettings, progress: Any) -> BuiltEngine:
        check_settings(self.known, settings)
        self.settings = settings
        kernels = KERNELS if settings.embedded else {}
        return BuiltEngine(b"plan", 1, (), {"float32": 1}, {}, plugin_kernels=kernels)


@pytest.fixture
def request_(tmp_path: Path) -> BuildRequest:
    model = model_of(pad((1, 3, 16, 16), (1, 1, 1, 1)), "float32")
    for value, names in ((model.graph.input[0], "NCHW"), (model.graph.output[0], "abcd")):
        for dim, name in zip(value.type.tensor_type.shape.dim, names, strict=True):
            dim.dim_param = name
    onnx.save(model, tmp_path / "m.onnx")
    space = parse_space(["N=1:1:4", "C=3:3:3", "H=8:16:32", "W=8:16:32"])
    return BuildRequest(
        tmp_path / "m.onnx", tmp_path / "m.engine", space, backend="tensorrt", options=(("embed_plugins", "true"),)
    )


def use(monkeypatch: pytest.MonkeyPatch, capabilities: Capabilities) -> Backend:
    backend = Backend(capabilities)
    monkeypatch.setattr(room, "choose_backend", lambda name: backend)
    monkeypatch.setattr("trtconv.build.resolve.choose_backend", lambda name: backend)
    # A machine on which no library was built.
    monkeypatch.setattr("trtconv.plugins.libraries.finding.find_library", lambda major: None)
    return backend


def test_the_engine_carries_the_kernels_and_needs_no_library(
    request_: BuildRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = use(monkeypatch, ELEVEN)
    room.build_engine(request_)
    assert [p.op_type for p in backend.settings.embedded] == ["TrtconvReflectionPad"]
    manifest = read_engine_manifest(request_.output)
    assert manifest.plugin_kernels == KERNELS
    assert manifest.plugins == {}
    assert manifest.options["embed_plugins"] == "true"
    require_plugins(request_.output, manifest, ())


def test_inspect_names_the_kernels(request_: BuildRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, ELEVEN)
    room.build_engine(request_)
    monkeypatch.setattr("trtconv.build.inspection.read_plan_header", lambda path: "tensorrt 11.4")
    assert "trtconv_reflection_pad_0123456789ab (compute_90" in json.dumps(engine_facts(request_.output), default=str)


def test_without_the_option_the_library_is_asked_for(request_: BuildRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, ELEVEN)
    with pytest.raises(UnsupportedError, match="no library for TensorRT 11 was built here"):
        room.build_engine(dataclasses.replace(request_, options=()))


def test_a_version_that_cannot_says_so(request_: BuildRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, TEN_EIGHT)
    with pytest.raises(UnsupportedError, match=r"tensorrt 10\.8\.0\.43 has no use for embed_plugins"):
        room.build_engine(request_)
    assert not request_.output.exists()


def test_the_value_is_true_or_false(request_: BuildRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, dataclasses.replace(ELEVEN, plugins=False))
    with pytest.raises(InvalidRequestError, match="embed_plugins is true or false"):
        room.build_engine(dataclasses.replace(request_, options=(("embed_plugins", "perhaps"),)))


def test_the_cache_tells_both_ways_apart(request_: BuildRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, ELEVEN)
    with_kernels = resolve_build(request_).key_parts()
    assert with_kernels["plugin_kernels"]
    library = request_.model.with_name("libtrtconv_plugins.so")
    library.write_bytes(b"\0TrtconvReflectionPad\0")
    plain = resolve_build(dataclasses.replace(request_, options=(), plugins=(library,))).key_parts()
    assert plain["plugin_kernels"] == ""
    assert plain["plugins"]


def test_a_build_without_embedded_plugins_touches_nothing() -> None:
    with kernels_in_engine(None, EngineSettings(Path(), ()), None) as facts:
        assert facts() == {}
