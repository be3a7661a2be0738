import dataclasses

import pytest
from onnx import TensorProto, helper

from trtconv.backends.tensorrt.manifest import read_engine_manifest
from trtconv.build.cache.lookup import build_cached
from trtconv.build.cache.store import EngineCache
from trtconv.build.engine import build_resolved
from trtconv.build.resolve import resolve_build
from trtconv.core.artifacts import manifest_path
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.artifact_set import sealed
from trtconv.core.files.digest import sha256_file
from trtconv.core.model.file import save_model, set_metadata
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import BuildRequest
from trtconv.core.shape_space.space import ShapeSpace, parse_space

pytest.importorskip("tensorrt_rtx")


def model(factor=2.0):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "f"], ["y"])],
        "g",
        [value("x", TensorProto.FLOAT, ["N", 8])],
        [value("y", TensorProto.FLOAT, ["N", 8])],
        [helper.make_tensor("f", TensorProto.FLOAT, [], [factor])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    set_metadata(model, SPACE_KEY, "N=1:2:4")
    return model


class Warnings(SilentProgress):
    def __init__(self):
        self.texts = []

    def warn(self, text):
        self.texts.append(text)


@pytest.fixture
def request_(tmp_path):
    save_model(model(), tmp_path / "m.onnx")
    return BuildRequest(tmp_path / "m.onnx", tmp_path / "m.engine", ShapeSpace(), backend="tensorrt-rtx")


@pytest.fixture
def cache(tmp_path):
    return EngineCache(tmp_path / "cache")


def test_the_second_build_comes_from_the_cache(request_, cache):
    first = build_cached(request_, cache=cache)
    assert (first.hit, first.reason) == (False, "the cache is empty")
    before = sha256_file(request_.output), manifest_path(request_.output).read_bytes()
    request_.output.unlink()
    manifest_path(request_.output).unlink()
    second = build_cached(request_, cache=cache)
    assert second.hit
    assert "from the engine cache" in second.reason
    assert (sha256_file(request_.output), manifest_path(request_.output).read_bytes()) == before
    assert second.result.seconds < first.result.seconds
    assert second.result.profiles == first.result.profiles
    assert second.result.layers == first.result.layers


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"opt_level": 1}, "opt_level"),
        ({"workspace": 1 << 30}, "workspace"),
        ({"dynamic": parse_space(["N=1:2:3"])}, "profiles"),
        ({"dynamic": None}, "profiles"),
        ({"options": (("tf32", "true"),)}, "options.tf32"),
        ({"compute_capabilities": ("8.9",)}, "compute_capabilities"),
    ],
)
def test_whatever_decides_the_engine_is_part_of_the_key(request_, cache, change, word):
    build_cached(request_, cache=cache)
    answer = cache.lookup(resolve_build(dataclasses.replace(request_, **change)).key_parts())
    assert answer.entry is None
    assert any(word in c for c in answer.changed), answer.changed


def test_other_weights_are_another_engine(request_, cache):
    build_cached(request_, cache=cache)
    save_model(model(3.0), request_.model)
    again = build_cached(request_, cache=cache)
    assert not again.hit
    assert "model.m.onnx" in again.reason


def test_a_damaged_engine_is_built_again(request_, cache):
    build_cached(request_, cache=cache)
    (entry,) = cache.entries()
    data = bytearray(entry.engine.read_bytes())
    data[len(data) // 2] ^= 0xFF
    entry.engine.write_bytes(data)
    again = build_cached(request_, cache=cache)
    assert not again.hit
    assert "damaged" in again.reason
    assert cache.lookup(resolve_build(request_).key_parts()).entry is not None, "and kept anew"
    assert request_.output.stat().st_size > 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"engine_sha256": "0" * 64}, "contradicts it in: engine"),
        ({"engine_bytes": 5}, "contradicts it in: size"),
        ({"model_files": {"m.onnx": "0" * 64}}, "contradicts it in: model"),
        ({"precision": "fp16"}, "contradicts it in: precision"),
        ({"version": "9.9"}, "contradicts it in: backend"),
        ({"profiles": []}, "contradicts it in: profiles"),
        ({"space": 5}, "is damaged"),
        ({"schema": 1}, "not an engine manifest of schema"),
    ],
)
def test_an_entry_whose_manifest_contradicts_it_is_built_again(request_, cache, change, words):
    """All hashes of the entry are right: only what the manifest says is wrong."""
    build_cached(request_, cache=cache)
    parts = resolve_build(request_).key_parts()
    manifest = cache.lookup(parts).entry.payload["manifest"]
    cache.store(parts, request_.output, {"manifest": sealed({**manifest, **change})})
    warned = Warnings()
    again = build_cached(request_, warned, cache=cache)
    assert not again.hit
    (text,) = warned.texts
    assert words in text
    assert read_engine_manifest(request_.output).engine_sha256 == sha256_file(request_.output)
    assert build_cached(request_, cache=cache).hit, "and kept anew"


def test_an_engine_that_another_command_replaced_is_not_kept(request_, cache, monkeypatch):
    """Two commands that write to one output: the cache must not bind one's engine to the other's request."""
    from trtconv.build.cache import lookup as module

    def replaced(resolved, progress):
        build_result = build_resolved(resolved, progress)
        build_result.engine.write_bytes(b"of another model")
        return build_result

    monkeypatch.setattr(module, "build_resolved", replaced)
    warned = Warnings()
    build_cached(request_, warned, cache=cache)
    assert "changed after it was built" in warned.texts[0]
    assert cache.entries() == ()


def test_external_weights_of_one_name_in_two_folders_are_both_in_the_key(tmp_path):
    graph = model().graph
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "w.bin").write_bytes(b"\0" * 32)
        tensor = helper.make_tensor(folder, TensorProto.FLOAT, [8], [0.0] * 8)
        tensor.ClearField("float_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=f"{folder}/w.bin")
        graph.initializer.append(tensor)
    whole = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (tmp_path / "m.onnx").write_bytes(whole.SerializeToString())
    request = BuildRequest(tmp_path / "m.onnx", tmp_path / "m.engine", parse_space(["N=1:2:4"]), backend="tensorrt-rtx")
    before = resolve_build(request).key_parts()
    (tmp_path / "a" / "w.bin").write_bytes(b"\1" * 32)
    assert resolve_build(request).key_parts() != before


def test_without_a_cache_it_is_built(request_, tmp_path):
    assert not build_cached(request_, cache=None).hit
    assert request_.output.exists()


def test_a_cache_that_cannot_be_written_costs_a_warning(request_, tmp_path):
    (tmp_path / "file").write_text("no folder")
    warned = Warnings()
    result = build_cached(request_, warned, cache=EngineCache(tmp_path / "file"))
    assert not result.hit
    assert request_.output.exists()
    assert "was not kept" in warned.texts[0]


def test_a_bad_request_is_refused_as_ever(request_, cache):
    with pytest.raises(InvalidRequestError, match="no input"):
        build_cached(dataclasses.replace(request_, inputs=(_spec(),)), cache=cache)


def _spec():
    from trtconv.core.tensors import parse_tensor

    return parse_tensor("z:float32[N,8]")
