"""Header, manifest and fit: what is known of an engine before TensorRT sees it."""

import hashlib
import json

import pytest

from trtconv.backends.cuda.driver import Gpu
from trtconv.backends.protocol import Capabilities
from trtconv.backends.tensorrt.engine_fit import read_engine, require_gpu, require_plugins, require_version
from trtconv.backends.tensorrt.manifest import EngineManifest, read_engine_manifest, write_manifest
from trtconv.backends.tensorrt.plan_header import parse_plan_header, read_plan_header
from trtconv.core.artifacts import manifest_path, read_json, write_json
from trtconv.core.errors import InvalidRequestError, UnsupportedError
from trtconv.core.files.artifact_set import sealed
from trtconv.core.files.digest import sha256_file
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor

H200 = Gpu(0, "NVIDIA H200", "9.0", 1 << 37, 132, "00")
TENSORRT = Capabilities("tensorrt", "8.6.0", 8, True, True, False)
RTX = Capabilities("tensorrt-rtx", "1.7.1.116", 11, False, False, False)


def plan(tag=b"ftrt", version=(8, 6, 0, 0), size=200) -> bytes:
    # The tag is a 32-bit number, little endian.
    return tag[::-1] + bytes(20) + bytes(version) + bytes(size - 28)


def manifest_of(path, **changes) -> EngineManifest:
    values = {
        "engine_sha256": sha256_file(path), "engine_bytes": path.stat().st_size, "model_files": {"m.onnx": "00"},
        "backend": "tensorrt", "version": "8.6.0", "trtconv": "0", "inputs": (parse_tensor("x:float32[N,3]"),),
        "outputs": (parse_tensor("y:float32[N]"),), "space": parse_space(["N=1:2:4"]),
        "profiles": ({"x": ((1, 3), (2, 3), (4, 3))},), "precision": "fp32",
        "environment": {"gpu": "NVIDIA H200", "compute_capability": "9.0"},
    } | changes  # fmt: skip
    return EngineManifest(**values)


@pytest.fixture
def engine(tmp_path):
    path = tmp_path / "m.engine"
    path.write_bytes(plan())
    write_manifest(path, manifest_of(path))
    return path


def test_header_of_both_families():
    assert str(parse_plan_header(plan())) == "tensorrt 8.6.0"
    assert str(parse_plan_header(plan(b"vtrt", (1, 7, 1, 116)))) == "tensorrt-rtx 1.7.1.116"
    assert parse_plan_header(b"PK\x03\x04" + bytes(100)) is None


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"", "is empty"), (plan()[:20], "is cut off"), (bytes(99), "is not a Ten"), (b"hello", "is not a Ten")],
)
def test_files_that_are_no_engines(tmp_path, data, words):
    path = tmp_path / "bad.engine"
    path.write_bytes(data)
    with pytest.raises(InvalidRequestError, match=words):
        read_plan_header(path)


def test_manifest_round_trip(engine):
    assert read_engine_manifest(engine) == manifest_of(engine)


def test_output_dims_can_be_any_expression(engine):
    from trtconv.core.tensors import TensorSpec

    odd = TensorSpec(
        "y", parse_tensor("y:float32[1]").dtype, ("N", "TruncToInt(0.3*ToFloat(H))", "-H - 2*(((-H)//2)) + 1)")
    )
    manifest = manifest_of(engine, outputs=(odd,), inputs=(parse_tensor("x:int64[N]=0:99"),))
    write_manifest(engine, manifest)
    assert read_engine_manifest(engine) == manifest


@pytest.mark.parametrize(
    "key", ["space", "types", "profiles", "inputs", "options", "model_files", "messages", "precision"]
)
@pytest.mark.parametrize("value", [None, 3, "x", [1], {"a": 1}])
def test_a_manifest_that_somebody_edited_is_read_or_refused(engine, key, value):
    path = manifest_path(engine)
    write_json(path, {**read_json(path), key: value})
    with pytest.raises(InvalidRequestError, match="was changed after it was written"):
        read_engine_manifest(engine)
    # Somebody who seals it again gets as far as the types of its fields.
    write_json(path, sealed({**read_json(path), key: value}))
    try:
        manifest = read_engine_manifest(engine)
    except InvalidRequestError:
        return
    assert isinstance(manifest.types, dict)
    assert isinstance(manifest.precision, str)


@pytest.mark.parametrize("verify", [True, False])
def test_one_changed_letter_of_a_manifest_is_refused(engine, verify):
    path = manifest_path(engine)
    path.write_text(path.read_text().replace('"precision": "fp32"', '"precision": "fp16"'))
    with pytest.raises(InvalidRequestError, match="was changed after it was written"):
        read_engine_manifest(engine, verify=verify)
    from trtconv.build.inspection import engine_facts

    with pytest.raises(InvalidRequestError, match="was changed after it was written"):
        engine_facts(engine)


def test_what_was_hashed_is_what_is_deserialised(engine, monkeypatch):
    """The file is opened once; another engine put in its place afterwards is not read."""
    opened = []
    read = type(engine).read_bytes
    monkeypatch.setattr(type(engine), "read_bytes", lambda self: opened.append(self) or read(self))
    file = read_engine(engine)
    engine.write_bytes(b"swapped")
    assert file.plan == plan()
    assert hashlib.sha256(file.plan).hexdigest() == file.manifest.engine_sha256
    assert opened == [engine]


def test_an_engine_that_changed_after_its_manifest_was_written(engine):
    engine.write_bytes(plan(size=100))
    with pytest.raises(InvalidRequestError, match="it has 100 bytes of 200"):
        read_engine_manifest(engine)
    engine.write_bytes(plan(version=(8, 6, 1, 0)))
    with pytest.raises(InvalidRequestError, match="is not the engine"):
        read_engine(engine)
    assert read_engine_manifest(engine, verify=False).version == "8.6.0"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 99}', '{"schema": 1}'])
def test_damaged_manifests(engine, text):
    manifest_path(engine).write_text(text)
    with pytest.raises(InvalidRequestError):
        read_engine_manifest(engine)


def test_without_a_manifest(engine):
    manifest_path(engine).unlink()
    assert read_engine(engine, foreign=True).manifest is None
    with pytest.raises(InvalidRequestError, match="nothing says what it was built from") as caught:
        read_engine(engine)
    assert "--foreign-engine" in (caught.value.hint or "")
    with pytest.raises(InvalidRequestError, match="has no manifest"):
        read_engine_manifest(engine)


def test_versions(engine):
    opened = read_engine(engine)
    header, manifest = opened.header, opened.manifest
    require_version(engine, header, manifest, TENSORRT)
    with pytest.raises(UnsupportedError, match=r"made by tensorrt 8.6.0, and tensorrt-rtx 1.7.1.116 cannot"):
        require_version(engine, header, manifest, RTX)
    newer = Capabilities("tensorrt", "8.6.1", 8, True, True, False)
    with pytest.raises(UnsupportedError, match=r"made by tensorrt 8.6.0, this is tensorrt 8.6.1"):
        require_version(engine, header, manifest, newer)
    portable = manifest_of(engine, options={"version_compatible": True})
    require_version(engine, header, portable, newer)
    with pytest.raises(UnsupportedError):
        require_version(engine, header, portable, Capabilities("tensorrt", "10.0.1", 10, True, True, False))


def test_gpus(engine):
    manifest = manifest_of(engine)
    assert require_gpu(engine, manifest, TENSORRT, H200) == ()
    same = Gpu(0, "NVIDIA H100", "9.0", 1, 132, "00")
    assert "tuned on NVIDIA H200" in require_gpu(engine, manifest, TENSORRT, same)[0]
    other = Gpu(0, "NVIDIA A100", "8.0", 1, 108, "00")
    with pytest.raises(UnsupportedError, match=r"built on NVIDIA H200 .* 9.0; this is NVIDIA A100 with 8.0"):
        require_gpu(engine, manifest, TENSORRT, other)
    portable = manifest_of(engine, options={"hardware_compatibility": "ampere_plus"})
    require_gpu(engine, portable, TENSORRT, other)
    with pytest.raises(UnsupportedError, match=r"does not run on compute capability 9.0"):
        require_gpu(engine, None, RTX, H200)
    ahead = manifest_of(engine, compute_capabilities=("8.6", "8.9"), environment={})
    with pytest.raises(UnsupportedError, match=r"built for compute capability 8.6, 8.9"):
        require_gpu(engine, ahead, RTX, other)


def test_plugins(engine, tmp_path):
    manifest = manifest_of(engine, plugins={"libx.so": hashlib.sha256(b"one").hexdigest()})
    with pytest.raises(InvalidRequestError, match=r"needs the plugin library libx.so"):
        require_plugins(engine, manifest, ())
    library = tmp_path / "libx.so"
    with pytest.raises(InvalidRequestError, match=r"plugin library .*libx.so"):
        require_plugins(engine, manifest, (library,))
    library.write_bytes(b"one")
    require_plugins(engine, manifest, (library,))
    library.write_bytes(b"another")
    with pytest.raises(InvalidRequestError, match=r"libx.so' is not the one that .* was built with") as caught:
        require_plugins(engine, manifest, (library,))
    assert "build the engine again" in (caught.value.hint or "")


def test_manifest_is_plain_sorted_json(engine):
    text = manifest_path(engine).read_text()
    assert list(json.loads(text)) == sorted(json.loads(text))


@pytest.mark.parametrize(
    ("field", "value"),
    [("compute_capabilities", [9]), ("plugin_kernels", {"a": {"architecture": 1}}), ("messages", "text"),
     ("types", {"FP32": "many"}), ("plugins", {"p.so": None}), ("environment", {"gpu": []}), ("layers", -1),
     ("seconds", "soon"), ("options", []), ("profiles", [{"x": [[1, 3], [2, 3]]}]), ("padding", None),
     ("inputs", [{"name": "x", "dtype": "float32", "dims": [1.5]}]), ("more", 1)],
    ids=str,
)  # fmt: skip
def test_a_manifest_that_was_sealed_anew_has_one_type_for_each_field(tmp_path, field, value):
    engine = tmp_path / "m.engine"
    engine.write_bytes(plan())
    path = write_manifest(engine, manifest_of(engine))
    assert read_engine_manifest(engine) == manifest_of(engine)
    path.write_text(json.dumps(sealed({**json.loads(path.read_text()), field: value})))
    with pytest.raises(InvalidRequestError, match="is damaged"):
        read_engine_manifest(engine)
