"""How a typed graph is written: weights, inputs and outputs, opsets, plugins."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.rewrite import precision_cases as cases
from tests.rewrite.precision_cases import Net, error, f32, i64, normal, run
from trtconv.rewrite.precision import convert_precision


def test_weights_are_counted_and_converted_once():
    weights = {"w": f32([[1e-9, 1e-5, 1, 1]] * 4), "w2": f32([[1e5, 1, 1, 1]] * 4), "s": f32(3)}
    net = Net(
        "weights",
        "float[2,4] x",
        "float[2,4] y, float[2,4] z",
        "a = MatMul(x, w)\n b = MatMul(a, w)\n c = MatMul(b, w2)\n d = Mul(c, s)\n"
        " r = Relu(x)\n z = Exp(r)\n y = Relu(d)",
        {"x": normal(2, 4)},
        weights,
    )
    typed = convert_precision(net.model(), "fp16")
    assert [(k.op, k.kind) for k in typed.fp32_nodes] == [("MatMul", "overflow"), ("Mul", "overflow"), ("Exp", "range")]
    rows = {t.name: t.data_type for t in typed.model.graph.initializer}
    assert rows["w"] == TensorProto.FLOAT16
    assert rows["w2"] == TensorProto.FLOAT
    assert list(rows).count("w") == 1
    assert (typed.weights.underflowed, typed.weights.subnormal, typed.weights.overflowed) == (4, 4, 0)
    assert convert_precision(net.model(), "bf16").weights.underflowed == 0


def test_a_weight_of_two_uses_has_two_types():
    net = Net(
        "shared",
        "float[2,4] x",
        "float[2,4] y",
        "a = MatMul(x, s)\n c = Exp(s)\n y = MatMul(a, c)",
        {"x": normal(2, 4)},
        {"s": normal(4, 4)},
    )
    typed = convert_precision(net.model(), "fp16").model
    assert {t.name: t.data_type for t in typed.graph.initializer} == {"s": 1, "s_fp16": 10}


def test_what_the_file_says_of_its_values_follows_their_types():
    """The dynamo exporter writes value infos for all values, weights among them."""
    model = cases.CONV.model()
    names = [("w", [4, 3, 3, 3]), ("s", [4]), ("c", ["N", 4, "H", "W"]), ("n", ["N", 4, "H", "W"])]
    model.graph.value_info.extend(helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in names)
    typed = convert_precision(model, "fp16").model
    onnx.checker.check_model(typed, full_check=True)
    kinds = {v.name: v.type.tensor_type.elem_type for v in typed.graph.value_info}
    assert kinds == {"w": 10, "s": 1, "c": 10, "n": 10}
    assert typed.graph.value_info[2].type.tensor_type.shape.dim[2].dim_param == "H"


def test_an_input_with_a_default_stays_one():
    """The caller may override it, so it is not a weight: it comes as FP32 and is cast."""
    model = cases.EINSUM.model()
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [4, 5]))
    typed = convert_precision(model, "fp16").model
    onnx.checker.check_model(typed, full_check=True)
    assert [v.name for v in typed.graph.input] == ["x", "w"]
    feed = {**cases.EINSUM.feed, "w": normal(4, 5)}
    assert error(run(model, feed)["y"], run(typed, feed)["y"]) < 2e-3


def test_half_inputs_and_outputs_when_asked():
    net = cases.CONV
    typed = convert_precision(net.model(), "fp16", keep_io=False)
    assert typed.casts == 0
    values = [*typed.model.graph.input, *typed.model.graph.output]
    assert {v.type.tensor_type.elem_type for v in values} == {TensorProto.FLOAT16}
    assert [d.dim_param for d in typed.model.graph.input[0].type.tensor_type.shape.dim] == ["N", "", "H", "W"]
    feed = {n: v.astype(np.float16) for n, v in net.feed.items()}
    assert error(run(net.model(), net.feed)["y"], run(typed.model, feed)["y"]) < 2e-3


def test_an_output_may_be_used_an_input_or_a_weight():
    net = Net(
        "outputs",
        "float[2,4] x",
        "float[2,4] h, float[2,4] y, float[4,4] w",
        "h = MatMul(x, w)\n e = Exp(h)\n y = MatMul(e, w)",
        {"x": normal(2, 4)},
        {"w": normal(4, 4)},
    )
    typed = convert_precision(net.model(), "fp16").model
    onnx.checker.check_model(typed, full_check=True)
    casts = [n for n in typed.graph.node if n.op_type == "Cast" and n.attribute[0].i == 1]
    assert [n.output[0] for n in casts] == ["h", "y"], "Exp takes the FP32 output, not a cast of its own"
    for name, want in run(net.model(), net.feed).items():
        assert error(want, run(typed, net.feed)[name]) < 2e-3


def test_bf16_brings_the_graph_to_opset_22():
    net = Net(
        "older forms",
        "float[1,4,6,6] x, float[1,6,6,2] grid",
        "float[1,4,1,1] y, float[1,4,6,6] s, float[K,4,2,2] r",
        """
        a, b = Split<axis=1>(x)
        c = Concat<axis=1>(b, a)
        y = ReduceMean<axes=[2,3]>(c)
        s = GridSample(x, grid)
        r = RoiAlign<output_height=2, output_width=2>(x, rois, which)
        """,
        {"x": normal(1, 4, 6, 6), "grid": normal(1, 6, 6, 2, scale=0.3)},
        {"rois": f32([[0, 0, 4, 4], [1, 1, 5, 3]]), "which": i64([0, 0])},
        opset=16,
    )
    model = net.model()
    del model.graph.node[4], model.graph.output[2]
    typed = convert_precision(model, "bf16").model
    onnx.checker.check_model(typed, full_check=True)
    assert typed.opset_import[0].version == 22
    for name, want in run(model, net.feed).items():
        assert error(want, run(typed, net.feed)[name]) < 2e-2


def test_roi_align_of_an_old_opset_keeps_its_offset():
    net = Net(
        "rois",
        "float[1,4,6,6] x",
        "float[2,4,2,2] y",
        "y = RoiAlign<output_height=2, output_width=2>(x, rois, which)",
        {"x": normal(1, 4, 6, 6)},
        {"rois": f32([[0, 0, 4, 4], [1, 1, 5, 3]]), "which": i64([0, 0])},
        opset=15,
    )
    typed = convert_precision(net.model(), "bf16").model
    onnx.checker.check_model(typed, full_check=True)
    modes = [a.s for a in typed.graph.node[0].attribute if a.name == "coordinate_transformation_mode"]
    assert modes == [b"output_half_pixel"], "which was not an attribute before opset 16, where the default is another"


def test_plugins_of_trtconv_are_typed_and_others_are_left():
    from trtconv.plugins.description import NAMESPACE

    def model_of(domain: str, op: str) -> onnx.ModelProto:
        nodes = [
            helper.make_node("Relu", ["x"], ["r"], name="relu"),
            helper.make_node(op, ["r", "g"], ["l"], name="plugin", domain=domain),
            helper.make_node("Relu", ["l"], ["y"], name="after"),
        ]
        value = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4, 2, 2]) for n in "xy"]
        graph = helper.make_graph(nodes, "g", value[:1], value[1:], [numpy_helper.from_array(normal(4), "g")])
        imports = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)

    ours = convert_precision(model_of(NAMESPACE, "TrtconvL2Norm"), "fp16")
    assert dict(ours.nodes) == {"fp16": 3, "fp32": 0, "other": 0}
    theirs = convert_precision(model_of("other", "Norm"), "fp16")
    assert [(k.node, k.kind) for k in theirs.fp32_nodes] == [("plugin", "custom")]
