import numpy as np
import onnx
import pytest

from tests.backends.onnx_models import conv_net
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.check.compare.layer_check import pinned_dims
from trtconv.check.compare.layers import compare_layers, describe_layers, dump_tensors, graph_tensors
from trtconv.core.model.file import load_model

X = {"x": np.random.default_rng(0).standard_normal((1, 3, 16, 16)).astype(np.float32)}


@pytest.fixture
def model(tmp_path):
    path = conv_net(tmp_path / "m.onnx", depth=6)
    proto = load_model(path)
    for number, node in enumerate(proto.graph.node):
        node.metadata_props.add(key="trtconv.module", value=f"layers.{number}")
        node.metadata_props.add(key="trtconv.source", value=f"net.py:{10 + number}")
    onnx.save(proto, str(path))
    return path


class Engine:
    """ONNX Runtime in the engine's place, with one weight changed (`bad`) or wrong unless a tensor is marked."""

    def __init__(self, model, tmp_path, *, bad="", heals=""):
        self.proto, self.path, self.heals, self.built = load_model(model), tmp_path / "engine.onnx", heals, []
        for weight in self.proto.graph.initializer:
            if weight.name == bad:
                array = onnx.numpy_helper.to_array(weight).copy()
                array[0] += 0.5
                weight.CopyFrom(onnx.numpy_helper.from_array(array, weight.name))

    def __call__(self, names):
        self.built.append(len(names))
        marked = onnx.ModelProto()
        marked.CopyFrom(self.proto)
        marked.graph.output.extend(onnx.helper.make_empty_tensor_value_info(n) for n in names)
        onnx.save(marked, str(self.path))
        outputs = OnnxRuntimeRunner(self.path)(X)
        if self.heals and self.heals not in names:
            outputs["y"] = outputs["y"] + 1
        return outputs


def test_all_agree(model, tmp_path):
    report = compare_layers(model, X, Engine(model, tmp_path))
    assert report.first_off is None
    assert report.fused is None
    assert len(report.rows) == 11
    assert "all 11 inner tensors agree" in describe_layers(report)[0]


@pytest.mark.parametrize("index", range(6))
def test_the_first_tensor_that_is_off(model, tmp_path, index):
    report = compare_layers(model, X, Engine(model, tmp_path, bad=f"w{index}"))
    assert report.first_off.tensor.node == f"conv{index}" or (index == 5 and report.first_off.tensor.name == "c5")
    lines = describe_layers(report)
    assert f"net.py:{10 + 2 * index}" in lines[0]
    assert any(line.startswith("->") for line in lines)


@pytest.mark.parametrize("index", range(5))
def test_a_fusion_is_found_by_bisection(model, tmp_path, index):
    engine = Engine(model, tmp_path, heals=f"r{index}")
    report = compare_layers(model, X, engine)
    assert report.first_off is None
    assert report.fused.name == f"r{index}"
    assert report.builds == len(engine.built) <= 6
    assert "a fusion around" in describe_layers(report)[0]


def test_dump(model, tmp_path):
    names = [t.name for t in graph_tensors(load_model(model))]
    path = dump_tensors(tmp_path, X, Engine(model, tmp_path), names)
    with np.load(path) as array:
        assert {"input__x", "c0", "r3", "y"} <= set(array.files)


def test_pinned_dims(model):
    profile = {"x": ((1, 3, 16, 16), (1, 3, 16, 32), (1, 3, 16, 64))}
    assert pinned_dims(model, (profile,)) == (("x", 0, 1), ("x", 2, 16))
    assert pinned_dims(model, (profile, {"x": ((2, 3, 16, 16),) * 3})) == (("x", 2, 16),)
