"""What decides an engine is in the digest of its build: a field that nobody decided about fails here."""

import dataclasses
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from trtconv.backends.protocol import Capabilities, EngineSettings
from trtconv.build import engine as engine_module
from trtconv.build import resolve
from trtconv.build.engine import build_engine
from trtconv.build.resolve import HASHED_BY_CONTENT, NOT_IN_ENGINE, Machine, ResolvedBuild, SourceFile, resolve_build
from trtconv.core.errors import InvalidRequestError, UnsupportedError
from trtconv.core.model.file import set_metadata
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import BuildRequest, RewriteRequest
from trtconv.core.shape_space.space import ShapeSpace, parse_space
from trtconv.core.targets import parse_target
from trtconv.core.tensors import parse_tensor
from trtconv.rewrite import rewrite_model

BACKENDS = {
    name: Capabilities(
        name, "10.9.0", 10, False, False, True, plugins=True, timing_cache=True, compute_capabilities=("8.9",)
    )
    for name in ("tensorrt", "tensorrt-rtx")
}


class Backend:
    def __init__(self, name):
        self.name = "tensorrt" if name == "auto" else name

    def capabilities(self):
        return BACKENDS[self.name]


@pytest.fixture(autouse=True)
def backends(monkeypatch):
    monkeypatch.setattr(resolve, "choose_backend", Backend)
    monkeypatch.setattr(engine_module, "choose_backend", Backend)


def write_model(path, factor=2.0, dtype=TensorProto.FLOAT):
    value = helper.make_tensor_value_info
    scale = helper.make_tensor("f", dtype, [8], [factor] * 8)
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "f"], ["y"]), helper.make_node("Shape", ["k"], ["s"])],
        "g",
        [value("x", dtype, ["N", 8]), value("k", TensorProto.INT64, ["N"])],
        [value("y", dtype, ["N", 8]), value("s", TensorProto.INT64, [1])],
        [scale],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    set_metadata(model, SPACE_KEY, "N=1:2:4")
    onnx.save(model, path)
    return path


@pytest.fixture
def base(tmp_path):
    return BuildRequest(write_model(tmp_path / "m.onnx"), tmp_path / "m.engine", ShapeSpace(), backend="tensorrt")


@pytest.fixture
def other_values(tmp_path):
    """For each field of BuildRequest another value that asks for another engine."""
    library = tmp_path / "libown.so"
    library.write_bytes(b"code")
    return {
        "model": write_model(tmp_path / "other.onnx", 3.0),
        "dynamic": parse_space(["N=1:3:3"]),
        "profiles": (parse_space(["N=1:1:1"]), parse_space(["N=2:2:4"])),
        "inputs": (parse_tensor("k:int64[N]=0:9"),),
        "backend": "tensorrt-rtx",
        "precision": "fp16",
        "workspace": 1 << 30,
        "opt_level": 1,
        "compute_capabilities": ("8.9",),
        "plugins": (library,),
        "options": (("tactic_sources", "CUBLAS"),),
        "multiples": (("N", 2),),
    }


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(BuildRequest)])
def test_every_field_of_a_request_changes_the_digest_or_has_a_reason_not_to(name, base, other_values):
    if name in NOT_IN_ENGINE:
        assert NOT_IN_ENGINE[name]
        return
    assert name in other_values, f"does BuildRequest.{name} decide the engine? Test it here, or list it with a reason"
    other = dataclasses.replace(base, **{name: other_values[name]})
    if name == "precision":  # only a graph of that type can be built with it
        other = dataclasses.replace(
            other, model=write_model(base.model.with_name("half.onnx"), dtype=TensorProto.FLOAT16)
        )
    assert resolve_build(other).digest != resolve_build(base).digest


def test_auto_precision_is_resolved_before_it_is_hashed(base):
    assert resolve_build(dataclasses.replace(base, precision="fp32")).digest == resolve_build(base).digest


def another(value):
    """A value of the same kind that is not equal."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if value is None:
        return 7
    if isinstance(value, Path):
        return value / "other"
    if isinstance(value, ShapeSpace):
        return parse_space(["Q=1"])
    if isinstance(value, Machine):
        return Machine("another system")
    if isinstance(value, Capabilities):
        return dataclasses.replace(value, generation=8)
    if isinstance(value, dict):
        return {**value, "another": (1, 2, 3)}
    if isinstance(value, tuple):
        return (*value, "another")
    raise AssertionError(f"how does {type(value).__name__} change?")


@pytest.mark.parametrize("field", dataclasses.fields(ResolvedBuild), ids=lambda f: f.name)
def test_every_field_of_a_resolved_build_is_hashed_or_has_a_reason_not_to_be(field, base):
    if field.name == "settings":
        return
    resolved = resolve_build(base)
    changed = dataclasses.replace(resolved, **{field.name: another(getattr(resolved, field.name))})
    reason = field.metadata.get("outside_digest")
    assert (changed.digest == resolved.digest) == bool(reason)


@pytest.mark.parametrize("field", dataclasses.fields(EngineSettings), ids=lambda f: f.name)
def test_every_setting_is_hashed_or_stands_for_hashed_content(field, base):
    resolved = resolve_build(base)
    settings = dataclasses.replace(resolved.settings, **{field.name: another(getattr(resolved.settings, field.name))})
    changed = dataclasses.replace(resolved, settings=settings)
    assert (changed.digest == resolved.digest) == (field.name in HASHED_BY_CONTENT)


@pytest.mark.parametrize("field", dataclasses.fields(Machine), ids=lambda f: f.name)
def test_every_fact_of_the_machine_is_hashed(field, base):
    resolved = resolve_build(base)
    machine = dataclasses.replace(resolved.machine, **{field.name: another(getattr(resolved.machine, field.name))})
    assert dataclasses.replace(resolved, machine=machine).digest != resolved.digest


def test_the_lists_of_exceptions_name_real_fields():
    assert set(NOT_IN_ENGINE) <= {f.name for f in dataclasses.fields(BuildRequest)}
    assert set(HASHED_BY_CONTENT) <= {f.name for f in dataclasses.fields(EngineSettings)}


def test_a_setting_without_a_plain_form_is_an_error_and_not_forgotten(base):
    resolved = resolve_build(base)
    settings = dataclasses.replace(resolved.settings, workspace={1, 2})
    with pytest.raises(TypeError, match="workspace of set"):
        dataclasses.replace(resolved, settings=settings).key_parts()


def test_the_backend_gets_the_settings_that_were_hashed(base, monkeypatch):
    engines = []

    def build(self, settings, progress):
        engines.append(settings)
        raise InvalidRequestError("enough")

    monkeypatch.setattr(Backend, "build", build, raising=False)
    with pytest.raises(InvalidRequestError, match="enough"):
        build_engine(base)
    assert engines == [resolve_build(base).settings]


def test_a_model_that_changes_during_the_build_is_not_bound_to_the_engine(base, monkeypatch):
    monkeypatch.setattr(Backend, "build", lambda *_: write_model(base.model, 3.0), raising=False)
    with pytest.raises(InvalidRequestError, match="changed while the engine was being built"):
        build_engine(base)
    assert not base.output.exists()


def test_a_file_that_is_only_touched_has_not_changed(tmp_path):
    path = tmp_path / "w.bin"
    path.write_bytes(b"weights")
    source = SourceFile.read(path)
    path.write_bytes(b"weights")
    source.require_unchanged()


def test_two_libraries_of_one_name_are_refused(base, tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "libown.so").write_bytes(folder.encode())
    libraries = (tmp_path / "a" / "libown.so", tmp_path / "b" / "libown.so")
    with pytest.raises(InvalidRequestError, match=r"two plugin libraries are called 'libown\.so'"):
        resolve_build(dataclasses.replace(base, plugins=libraries))


def test_a_rewritten_model_that_was_edited_is_refused(base, tmp_path):
    rewritten = tmp_path / "m.trt.onnx"
    rewrite_model(RewriteRequest(base.model, rewritten, parse_target("tensorrt==10")), SilentProgress())
    request = dataclasses.replace(base, model=rewritten)
    assert resolve_build(request).ledger_sha256
    model = onnx.load(rewritten)
    model.graph.doc_string = "edited"
    onnx.save(model, rewritten)
    with pytest.raises(InvalidRequestError, match=r"is not the one that 'm\.rewrites\.json' describes"):
        resolve_build(request)
    under_another_name = tmp_path / "edited.onnx"
    rewritten.rename(under_another_name)
    assert not resolve_build(dataclasses.replace(base, model=under_another_name)).ledger_sha256


def test_an_input_that_is_an_output_as_well_is_refused(tmp_path):
    value = helper.make_tensor_value_info
    x = value("x", TensorProto.FLOAT, ["N"])
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [value("y", TensorProto.FLOAT, ["N"]), x])
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    with pytest.raises(InvalidRequestError, match="is its input of that name"):
        resolve_build(BuildRequest(tmp_path / "m.onnx", tmp_path / "m.engine", parse_space(["N=1:2:4"])))


def test_a_type_that_no_tensorrt_has_is_named(tmp_path):
    value = helper.make_tensor_value_info
    nodes = [helper.make_node("Cast", ["sound"], ["y"], to=TensorProto.FLOAT)]
    ends = [value("sound", TensorProto.INT16, ["N"])], [value("y", TensorProto.FLOAT, ["N"])]
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", *ends)), tmp_path / "m.onnx")
    with pytest.raises(UnsupportedError, match=r"the input .sound. of .* is int16, which no TensorRT has"):
        resolve_build(BuildRequest(tmp_path / "m.onnx", tmp_path / "m.engine", parse_space(["N=1:2:4"])))
