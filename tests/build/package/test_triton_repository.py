"""The model repository, read back with Triton's own message class."""

import hashlib
import importlib.util
import shlex

import pytest

from tests.backends.test_engine_files import manifest_of, plan
from tests.wheels import wheel_folder
from trtconv.backends.tensorrt.manifest import write_manifest
from trtconv.build.inspection import engine_facts
from trtconv.build.package.triton_repository import PackageRequest, package_engine, require_packaged
from trtconv.core.errors import InvalidRequestError
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor


@pytest.fixture(scope="session")
def messages():
    """`model_config_pb2` of the tritonclient wheel, without what else the wheel needs."""
    folder = wheel_folder("tritonclient", "tritonclient==2.57.0")
    path = next(folder.glob("tritonclient/grpc/model_config_pb2.py"))
    spec = importlib.util.spec_from_file_location("model_config_pb2", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parsed(messages, path):
    from google.protobuf import text_format

    return text_format.Parse(path.read_text(), messages.ModelConfig())


@pytest.fixture
def engine(tmp_path):
    path = tmp_path / "net.engine"
    path.write_bytes(plan())
    return path


def write(engine, **changes):
    write_manifest(engine, manifest_of(engine, **changes))


def test_a_batched_model(engine, tmp_path, messages):
    write(
        engine,
        space=parse_space(["N=1:4:16 H=32:64:128"]),
        inputs=(parse_tensor("x:float32[N,3,H,H]"), parse_tensor("ids:int64[N,7]")),
        outputs=(parse_tensor("y:float16[N,10]"), parse_tensor("z:float64[N]")),
        profiles=({"x": ((1, 3, 32, 32), (4, 3, 64, 64), (16, 3, 128, 128))}, {}),
    )
    result = package_engine(PackageRequest(engine, tmp_path / "repo", instances=2))
    assert result.model.read_bytes() == engine.read_bytes()
    assert result.model == tmp_path / "repo" / "net" / "1" / "model.plan"
    config = parsed(messages, result.config)
    assert (config.name, config.platform, config.max_batch_size) == ("net", "tensorrt_plan", 16)
    assert [list(i.dims) for i in config.input] == [[3, -1, -1], [7]]
    assert [messages.DataType.Name(i.data_type) for i in config.input] == ["TYPE_FP32", "TYPE_INT32"]
    assert [messages.DataType.Name(o.data_type) for o in config.output] == ["TYPE_FP16", "TYPE_FP32"]
    assert list(config.output[1].dims) == [1]
    assert config.output[1].HasField("reshape")
    assert list(config.instance_group[0].profile) == ["0", "1"]
    assert config.instance_group[0].count == 2
    assert list(config.dynamic_batching.preferred_batch_size) == [4, 16]
    assert config.parameters["shape_space"].string_value == "N=1:4:16 H=32:64:128"


@pytest.mark.parametrize(
    ("space", "inputs", "outputs"),
    [
        ("N=1:4:16", ("x:float32[N,3]",), ("y:float32[3]",)),
        ("N=1:4:16", ("x:float32[N,N]",), ("y:float32[N,N]",)),
        ("N=4:4:4", ("x:float32[2,3]",), ("y:float32[2,3]",)),
        ("N=1:1:1", ("x:float32[N,3]",), ("y:float32[N,3]",)),
    ],
)
def test_models_without_a_batch(engine, tmp_path, messages, space, inputs, outputs):
    write(
        engine,
        space=parse_space([space]),
        inputs=tuple(parse_tensor(t) for t in inputs),
        outputs=tuple(parse_tensor(t) for t in outputs),
    )
    config = parsed(messages, package_engine(PackageRequest(engine, tmp_path / "repo")).config)
    assert config.max_batch_size == 0
    assert not config.HasField("dynamic_batching")
    assert len(config.input[0].dims) == 2


@pytest.mark.parametrize(("batches", "largest"), [("1:4:8", 8), ("2:4:8", 0), ("1:1:1", 0), ("4:4:8%4", 0)])
def test_no_batching_where_some_batch_sizes_are_refused(engine, tmp_path, messages, batches, largest):
    """Triton would send a single request as a batch of 1."""
    write(engine, space=parse_space([f"N={batches} H=32:64:128%32"]))
    result = package_engine(PackageRequest(engine, tmp_path / "repo"))
    assert result.max_batch == largest
    assert parsed(messages, result.config).HasField("dynamic_batching") == (largest > 0)


def test_int64_stays_on_newer_versions(engine, tmp_path, messages):
    write(engine, version="10.16.1.11", inputs=(parse_tensor("ids:int64[N,7]"),))
    config = parsed(messages, package_engine(PackageRequest(engine, tmp_path / "repo", name="other")).config)
    assert messages.DataType.Name(config.input[0].data_type) == "TYPE_INT64"
    assert config.name == "other"


def test_plugins_travel_with_the_model(engine, tmp_path, messages):
    write(engine, plugins={"libp.so": hashlib.sha256(b"library").hexdigest()})
    with pytest.raises(InvalidRequestError, match=r"needs the plugin library libp.so"):
        package_engine(PackageRequest(engine, tmp_path / "repo"))
    library = tmp_path / "libp.so"
    library.write_bytes(b"library")
    result = package_engine(PackageRequest(engine, tmp_path / "repo", plugins=(library,)))
    assert (tmp_path / "repo" / "net" / "plugins" / "libp.so").read_bytes() == b"library"
    assert "--backend-config=tensorrt,plugins=" in result.command


def test_the_command_can_be_pasted_into_a_shell(engine, tmp_path):
    names = ("liba.so", "lib b.so")
    write(engine, plugins=dict.fromkeys(names, hashlib.sha256(b"library").hexdigest()))
    libraries = tuple(tmp_path / n for n in names)
    for library in libraries:
        library.write_bytes(b"library")
    result = package_engine(PackageRequest(engine, tmp_path / "my repo", plugins=libraries))
    words = shlex.split(result.command)
    assert words[1] == f"--model-repository={tmp_path / 'my repo'}"
    assert words[2].count(";") == 1
    assert len(words) == 3


def test_engines_that_triton_cannot_serve(engine, tmp_path):
    write(engine, backend="tensorrt-rtx")
    with pytest.raises(InvalidRequestError, match="which Triton cannot serve"):
        package_engine(PackageRequest(engine, tmp_path / "repo"))
    assert not (tmp_path / "repo").exists()


def test_a_plan_that_its_repository_was_not_written_for(engine, tmp_path):
    write(engine)
    plans = [package_engine(PackageRequest(engine, tmp_path / "repo", version=v)).model for v in (1, 2)]
    for path in (*plans, engine):
        require_packaged(path)
        assert engine_facts(path)["kind"] == "engine"
    # What a `package` leaves that was killed between the plan and the config.
    plans[1].write_bytes(plan(size=300))
    with pytest.raises(InvalidRequestError, match=r"is not the engine that '.*config.pbtxt' was written for"):
        engine_facts(plans[1])
    require_packaged(plans[0])
