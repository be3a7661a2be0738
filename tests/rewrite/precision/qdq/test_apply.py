"""A quantised graph computes what its pairs say, reads them where it should, and is taken by TensorRT."""

import numpy as np
import onnx
import pytest

from tests.rewrite.precision.qdq.models import OLD, RESIDUAL, RTX, model, runs, weight
from trtconv.core.errors import UnsupportedError
from trtconv.core.model.provenance import REST_FP32_KEY, REST_KEY
from trtconv.core.precision import FP8, INT8
from trtconv.core.progress import SilentProgress
from trtconv.rewrite.precision.qdq.apply import QuantisePlan, quantise
from trtconv.rewrite.precision.qdq.step import signal_to_noise

PROGRESS = SilentProgress()
DATA = runs(4, 16, 8, 8)
MLP = {
    "text": "n = LayerNormalization<axis=-1>(x, g, b) h = MatMul(n, w) r = Relu(h) y = MatMul(r, v)",
    "inputs": "float[N,16] x",
    "outputs": "float[a,b] y",
    "g": np.ones(16),
    "b": np.zeros(16),
    "w": weight(16, 32),
    "v": weight(32, 16),
}


def quantised(proto, data=DATA, target=RTX, **plan):
    plan.setdefault("precision", INT8)
    return quantise(proto, QuantisePlan(**plan), data, target, PROGRESS)


def noise(before, after, data=DATA):
    return signal_to_noise(before, after.model, data[0].inputs)["y"]


@pytest.mark.parametrize("method", ["max", "percentile", "entropy", "mse"])
def test_a_residual_block_loses_little(method):
    proto = model(**RESIDUAL)
    result = quantised(proto, method=method)
    onnx.checker.check_model(result.model, full_check=True)
    assert 25 < noise(proto, result) < 60
    assert "QuantizeLinear" not in {n.op_type for n in proto.graph.node}, "the model that was handed in is untouched"


def test_weights_stay_float_with_both_nodes_and_biases_have_none():
    graph = quantised(model(**RESIDUAL)).model.graph
    makers = {o: n for n in graph.node for o in n.output}
    for conv in (n for n in graph.node if n.op_type == "Conv"):
        dequantize = makers[conv.input[1]]
        assert [dequantize.op_type, makers[dequantize.input[0]].op_type] == ["DequantizeLinear", "QuantizeLinear"]
        assert len(conv.input) < 3 or conv.input[2] not in makers
    types = {t.name: t.data_type for t in graph.initializer}
    assert types["w1"] == onnx.TensorProto.FLOAT


def test_readers_that_do_not_compute_in_int8_read_the_exact_value():
    proto = model("a = Conv(x, w) s = Sigmoid(x) y = Mul(a, s)", w=weight(16, 16, 1, 1))
    node = next(n for n in quantised(proto).model.graph.node if n.op_type == "Sigmoid")
    assert list(node.input) == ["x"]


def test_what_shares_a_scale_shares_the_larger_range():
    proto = model("p = MaxPool<kernel_shape=[8,8]>(x) a = Conv(x, w) y = Conv(p, w)", w=weight(16, 16, 1, 1))
    scales = quantised(proto).scales
    assert scales["x"] == scales["p"] == pytest.approx(max(np.abs(r.inputs["x"]).max() for r in DATA) / 127)


def test_the_rest_in_fp16_has_pairs_in_fp16():
    proto = model(**RESIDUAL)
    result = quantised(proto, rest="fp16")
    inferred = onnx.shape_inference.infer_shapes(result.model, strict_mode=True)
    types = {v.name: v.type.tensor_type.elem_type for v in inferred.graph.value_info}
    pairs = [n for n in result.model.graph.node if n.op_type == "DequantizeLinear"]
    assert {types[n.output[0]] for n in pairs} == {onnx.TensorProto.FLOAT16}
    assert 25 < noise(proto, result) < 60


def test_an_older_opset_is_raised_where_the_target_reads_it():
    proto = model(**RESIDUAL, opset=17)
    assert quantised(proto, rest="fp16").model.opset_import[0].version == 22
    assert quantised(proto, target=OLD).model.opset_import[0].version == 17


def test_the_rest_is_a_flag_where_the_graph_cannot_say_it():
    proto = model(
        "f = Exp(x) a = Conv<pads=[1,1,1,1]>(f, w1) r = Relu(a) e = Exp(r) m = GlobalAveragePool(f) y = Conv(m, w2) "
        "z = Add(y, e)",
        w1=weight(16, 16, 3, 3),
        w2=weight(16, 16, 1, 1),
    )
    for node in proto.graph.node:
        node.name = node.output[0]
    result = quantised(proto, target=OLD, rest="fp16")
    metadata = {p.key: p.value for p in result.model.metadata_props}
    assert metadata == {REST_KEY: "fp16", REST_FP32_KEY: "f"}, (
        "a pool moves values, and 'e' reads a quantised convolution"
    )
    types = {t.data_type for t in result.model.graph.initializer}
    assert types == {onnx.TensorProto.FLOAT, onnx.TensorProto.INT8}
    assert not quantised(proto, target=OLD).model.metadata_props
    with pytest.raises(UnsupportedError, match="has no bf16"):
        quantised(proto, target=OLD, rest="bf16")


def test_fp8_is_for_targets_that_have_it():
    proto = model(**MLP)
    data = runs(8, 16)
    result = quantised(proto, data, precision=FP8)
    assert 15 < noise(proto, result, data) < 45
    with pytest.raises(UnsupportedError, match="has no fp8"):
        quantised(proto, data, OLD, precision=FP8)


def test_a_graph_without_such_layers_says_why():
    with pytest.raises(UnsupportedError, match="no layer of the model can be computed in int8") as error:
        quantised(model("y = Conv(x, w)", w=weight(8, 16, 1, 1)))
    assert "thin" in error.value.details[0]


def test_smoothing_helps_where_one_channel_is_an_outlier():
    gain = np.ones(16)
    gain[3] = 80.0
    wide = {**MLP, "g": gain}
    wide["w"] = MLP["w"] / gain[:, None].clip(1, 20)
    proto, data = model(**wide), runs(64, 16)
    smooth, plain = (quantised(proto, data, smooth=s) for s in (True, False))
    assert smooth.smoothed == ("n",)
    assert noise(proto, smooth, data) > noise(proto, plain, data) + 3


def test_what_tensorrt_reads():
    from trtconv.backends.select import choose_backend
    from trtconv.core.files.private_folder import private_temporary_folder

    pytest.importorskip("tensorrt_rtx")
    from pathlib import Path

    proto = model(**RESIDUAL)
    with private_temporary_folder("qdq") as folder:
        for rest in ("fp32", "fp16"):
            path = Path(folder) / "model.onnx"
            onnx.save(quantised(proto, rest=rest).model, path)
            assert choose_backend("tensorrt-rtx").supports(path) == ()


def test_convolutions_say_the_size_of_their_kernel():
    graph = quantised(model("y = Conv(x, w)", w=weight(16, 16, 3, 2)), rest="fp16").model.graph
    (conv,) = (n for n in graph.node if n.op_type == "Conv")
    assert {a.name: list(a.ints) for a in conv.attribute} == {"kernel_shape": [3, 2]}
