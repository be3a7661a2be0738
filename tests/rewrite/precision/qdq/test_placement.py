"""Where pairs go: as TensorRT fuses them, and a reason wherever they do not."""

import numpy as np
import pytest

from tests.rewrite.precision.qdq.models import OLD, RESIDUAL, RTX, model, weight
from trtconv.core.precision import FP8, INT8
from trtconv.rewrite.graph.facts import index_model
from trtconv.rewrite.precision.qdq.apply import prepared
from trtconv.rewrite.precision.qdq.placement import place_pairs


def placed(proto, precision=INT8, only=None, target=RTX):
    return place_pairs(index_model(prepared(proto), target), precision, only)


def sites(placement):
    return {(s.node, s.value, s.axis if s.weight else "activation") for s in placement.sites}


def test_a_residual_block_quantises_inputs_weights_and_the_waiting_side_of_the_sum():
    assert sites(placed(model(**RESIDUAL))) == {
        ("a", "x", "activation"),
        ("a", "w1", 0),
        ("c", "r", "activation"),
        ("c", "w2", 0),
        ("s", "x", "activation"),
    }


def test_of_two_convolutions_the_later_one_adds():
    text = "a = Conv(x, w) b = Conv(x, w) y = Add(b, a)"
    assert ("y", "a", "activation") in sites(placed(model(text, w=weight(16, 16, 1, 1))))


def test_a_sum_with_a_bias_or_of_products_is_left_exact():
    text = "a = Conv(x, w) y = Add(a, b)"
    assert {s.node for s in placed(model(text, w=weight(16, 16, 1, 1), b=weight(1, 16, 1, 1))).sites} == {"a"}
    text = "a = MatMul(x, w) y = Add(a, x)"
    shape = {"inputs": "float[N,4,16] x", "outputs": "float[a,b,c] y"}
    assert {s.node for s in placed(model(text, w=weight(16, 16), **shape)).sites} == {"a"}


@pytest.mark.parametrize(
    "text",
    [
        "p = MaxPool<kernel_shape=[2,2]>(x) a = Conv(x, w) y = Conv(p, w)",
        "p = Concat<axis=1>(x, x) a = Conv(x, w) q = Slice(p, i0, i16, i1) y = Conv(q, w)",
        "p = Transpose<perm=[0,1,3,2]>(x) a = Conv(x, w) y = Conv(p, w)",
    ],
)
def test_one_scale_where_values_only_move(text):
    bounds = [f"i{n} = Constant<value = int64[1] {{{n}}}>()" for n in (0, 16, 1)]
    share = placed(model(" ".join([*bounds, text]), w=weight(16, 16, 1, 1))).share
    assert len(share) == 2
    assert len(set(share.values())) == 1


def test_an_activation_in_between_keeps_two_scales():
    share = placed(model("r = Relu(x) a = Conv(x, w) y = Conv(r, w)", w=weight(16, 16, 1, 1))).share
    assert len(set(share.values())) == 2


@pytest.mark.parametrize(
    ("text", "weights", "axis"),
    [
        ("y = Gemm<transB=1>(x, w)", weight(32, 16), 0),
        ("y = Gemm(x, w)", weight(16, 32), 1),
        ("y = MatMul(x, w)", weight(16, 32), 1),
    ],
)
def test_weights_have_a_scale_for_each_output(text, weights, axis):
    proto = model(text, inputs="float[N,16] x", outputs="float[a,b] y", w=weights)
    assert [s.axis for s in placed(proto).sites if s.weight] == [axis]


def test_a_transposed_convolution_has_its_outputs_on_axis_1():
    proto = model("y = ConvTranspose(x, w)", w=weight(16, 32, 1, 1))
    assert [s.axis for s in placed(proto).sites if s.weight] == [1]


@pytest.mark.parametrize(
    ("text", "weights", "reason"),
    [
        ("y = Conv(x, w)", weight(8, 16, 1, 1), "thin (K=16, N=8"),
        ("y = MatMul(x, x)", weight(1), "two activations"),
        ("y = Conv<group=4>(x, w)", weight(16, 4, 1, 1), "thin (K=4, N=4"),
    ],
)
def test_what_gains_nothing_is_left_alone_for_a_reason(text, weights, reason):
    placement = placed(model(text, w=weights))
    assert not placement.layers
    assert reason in placement.skipped[0].reason


def test_a_depthwise_convolution_is_quantised():
    assert placed(model("y = Conv<group=16,pads=[1,1,1,1]>(x, w)", w=weight(16, 1, 3, 3))).layers


def test_fp8_leaves_convolutions_alone_and_says_so():
    placement = placed(model(**RESIDUAL), FP8)
    assert not placement.layers
    assert "not to be trusted" in placement.skipped[0].reason


def test_only_the_layers_that_were_chosen():
    assert [layer.node.name for layer in placed(model(**RESIDUAL), only={"c"}).layers] == ["c"]


def test_8_6_adds_in_int8_before_a_relu_or_to_what_a_layer_in_int8_gave():
    linear = model("a = Conv(x, w) s = Add(a, x) y = Sigmoid(s)", w=weight(16, 16, 1, 1))
    assert ("s", "x", "activation") in sites(placed(linear))
    assert {s.node for s in placed(linear, target=OLD).sites} == {"a"}
    assert ("s", "x", "activation") in sites(placed(model(**RESIDUAL), target=OLD))
    text = "b = Conv(x, w) r = Clip(b, zero, six) a = Conv(r, w) s = Add(a, r) c = Conv(s, w) y = Add(c, s)"
    inverted = model(text, w=weight(16, 16, 1, 1), zero=np.float32(0), six=np.float32(6))
    assert {("s", "r", "activation"), ("y", "s", "activation")} <= sites(placed(inverted, target=OLD))
    # The first layer in floats: zeros came out of the sum behind it.
    later = [n.name for n in inverted.graph.node if n.op_type == "Conv"][1:]
    assert "s" not in {s.node for s in placed(inverted, only=later, target=OLD).sites}


def test_a_sum_with_floats_reads_what_a_layer_reads_in_int8_anyway():
    # A transposed convolution stays in floats on 8.6, so that nothing fuses the sum.
    text = """a = Conv(x, w) r = Relu(a) c = Conv<strides=[2,2]>(r, w)
        t = ConvTranspose<strides=[2,2],kernel_shape=[2,2]>(c, v) s = Add(t, r) y = Conv(s, w)"""
    weights = {"w": weight(16, 16, 1, 1), "v": weight(16, 16, 2, 2)}
    assert {site for site in sites(placed(model(text, **weights), target=OLD)) if site[0] == "s"} == {
        ("s", "r", "activation")
    }
    # Without such a reader a pair would cost a node and spare nothing.
    alone = text.replace("c = Conv<strides=[2,2]>(r, w)", "c = MaxPool<kernel_shape=[2,2],strides=[2,2]>(r)")
    assert all(site[0] != "s" for site in sites(placed(model(alone, **weights), target=OLD)))


def test_a_thin_convolution_is_quantised_for_those_that_read_it():
    text = "a = Conv(x, u) r = Relu(a) p = MaxPool<kernel_shape=[2,2]>(r) b = Conv(p, w) y = Conv(b, v)"
    proto = model(text, inputs="float[N,3,8,8] x", u=weight(16, 3, 1, 1), w=weight(16, 16, 1, 1), v=weight(4, 16, 1, 1))
    placement = placed(proto)
    assert [layer.node.outputs[0] for layer in placement.layers] == ["a", "b"]
    (last,) = placement.skipped
    assert last.reason == "it is thin (K=16, N=4; under 16 it gains nothing) and gives no such layer its input"
    alone = placed(proto, only=[placement.layers[0].node.name])
    assert [layer.node.outputs[0] for layer in alone.layers] == ["a"]
    assert {one.reason for one in alone.skipped} == {last.reason, "it was not chosen"}


def test_transposed_convolutions_are_left_alone_where_tensorrt_fails():
    proto = model("a = Conv(x, w) y = ConvTranspose<group=2>(a, v)", w=weight(32, 16, 1, 1), v=weight(32, 16, 2, 2))
    (left,) = placed(proto).skipped
    assert "in groups" in left.reason
    proto = model("a = Conv(x, w) y = ConvTranspose(a, v)", w=weight(32, 16, 1, 1), v=weight(32, 16, 2, 2))
    assert not placed(proto).skipped
    assert ["8.6 fails" in x.reason for x in placed(proto, target=OLD).skipped] == [True]
