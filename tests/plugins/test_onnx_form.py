"""The node, the function body and the evaluator's operator compute what the NumPy reference says."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.plugins.cases import CASES, Array, Case
from trtconv.core.errors import InvalidRequestError
from trtconv.plugins.described.registry import PLUGINS, find_plugin
from trtconv.plugins.onnx_form import (
    SIGNATURE_KEY,
    add_functions,
    evaluator_operators,
    function_proto,
    make_node,
    node_attributes,
    remove_functions,
    signature_of,
    used_plugins,
)

TOLERANCE = {"float32": 1e-5, "float16": 2e-3}


def model_of(case: Case, dtype: str, opset: int = 17) -> onnx.ModelProto:
    plugin = find_plugin(case.op_type)
    element = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}[dtype]
    names = [t.name for t in plugin.inputs]
    ranks = [len(s) for s in case.shapes]
    inputs = [helper.make_tensor_value_info(n, element, [None] * r) for n, r in zip(names, ranks, strict=True)]
    output = helper.make_tensor_value_info("y", element, [None] * len(case.shapes[0]))
    node = make_node(plugin, names, ["y"], name="plugin", **case.attributes)
    graph = helper.make_graph([node], "g", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    add_functions(model)
    return model


def relative_error(actual: Array, expected: Array) -> float:
    if actual.size == 0:
        return 0.0
    difference = np.abs(actual.astype(np.float64) - expected.astype(np.float64)).max()
    return float(difference / max(np.abs(expected.astype(np.float64)).max(), 1e-12))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_onnx_runtime_runs_the_body_as_the_reference(case: Case, dtype: str) -> None:
    import onnxruntime as ort

    arrays = case.arrays(dtype)
    expected = find_plugin(case.op_type).evaluate(arrays, case.attributes)[0]
    model = model_of(case, dtype)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = dict(zip([i.name for i in model.graph.input], arrays, strict=True))
    actual = session.run(None, feeds)[0]
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert relative_error(actual, expected) <= TOLERANCE[dtype]


@pytest.mark.parametrize("opset", [15, 18, 21])
@pytest.mark.parametrize("case", [CASES[0], CASES[5], CASES[11], CASES[16]], ids=str)
def test_the_body_is_valid_in_other_opsets(case: Case, opset: int) -> None:
    import onnxruntime as ort

    arrays = case.arrays("float32")
    model = model_of(case, "float32", opset)
    onnx.checker.check_model(model)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    actual = session.run(None, dict(zip([i.name for i in model.graph.input], arrays, strict=True)))[0]
    assert relative_error(actual, find_plugin(case.op_type).evaluate(arrays, case.attributes)[0]) <= 1e-5


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_evaluator_uses_the_reference_with_and_without_the_body(case: Case) -> None:
    from onnx.reference import ReferenceEvaluator

    arrays = case.arrays("float32")
    expected = find_plugin(case.op_type).evaluate(arrays, case.attributes)[0]
    model = model_of(case, "float32")
    bare = model_of(case, "float32")
    remove_functions(bare)
    for candidate in (model, bare):
        feeds = dict(zip([i.name for i in candidate.graph.input], arrays, strict=True))
        actual = ReferenceEvaluator(candidate, new_ops=evaluator_operators()).run(None, feeds)[0]
        assert relative_error(actual, expected) <= 1e-5


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_shape_rule_agrees_with_the_values(case: Case) -> None:
    plugin = find_plugin(case.op_type)
    expected = tuple(a.shape for a in plugin.evaluate(case.arrays("float32"), case.attributes))
    assert plugin.output_shapes(case.shapes, case.attributes) == expected
    unknown = tuple(tuple(None for _ in s) for s in case.shapes)
    for names, shape in zip(expected, plugin.output_shapes(unknown, case.attributes), strict=True):
        assert all(u in (None, k) for u, k in zip(shape, names, strict=True))


def test_the_reference_is_pytorch() -> None:
    torch = pytest.importorskip("torch")
    functional: Any = torch.nn.functional
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, 6, 11, 13)).astype(np.float32)
    t = torch.from_numpy(x)
    ones, zeros = np.ones(6, np.float32), np.zeros(6, np.float32)
    pairs = [
        (functional.normalize(t, eps=2.0), ("TrtconvL2Norm", [x, ones], {"eps_mode": "max", "epsilon": 2.0})),
        (functional.instance_norm(t, eps=1e-3), ("TrtconvInstanceNorm", [x, ones, zeros], {"epsilon": 1e-3})),
        (functional.pad(t, (3, 4, 1, 2), mode="reflect"), ("TrtconvReflectionPad", [x], {"pads": (1, 3, 2, 4)})),
        (functional.adaptive_avg_pool2d(t, (4, 17)), ("TrtconvAdaptivePool", [x], {"output_size": (4, 17)})),
        (functional.adaptive_max_pool2d(t, (5, 3)), ("TrtconvAdaptivePool", [x], {"output_size": (5, 3), "mode": 1})),
    ]
    for expected, (op_type, arrays, attributes) in pairs:
        actual = find_plugin(op_type).evaluate(arrays, attributes)[0]
        assert relative_error(actual, expected.numpy()) <= 1e-6


@pytest.mark.parametrize(
    ("op_type", "shapes", "attributes", "message"),
    [
        ("TrtconvL2Norm", [(1, 4, 2, 2), (5,)], {}, "scale has shape"),
        ("TrtconvL2Norm", [(4,), (4,)], {}, "rank 2 to 8"),
        ("TrtconvL2Norm", [(1, 4), (4,)], {"axis": -1}, "outside 0 to 7"),
        ("TrtconvL2Norm", [(1, 4), (4,)], {"eps_mode": "insid"}, "Did you mean 'inside'"),
        ("TrtconvL2Norm", [(1, 4), (4,)], {"eps": 1.0}, "no attribute 'eps'"),
        ("TrtconvInstanceNorm", [(1, 4), (4,), (4,)], {}, "rank 3 to 8"),
        ("TrtconvInstanceNorm", [(1, 4, 2), (4,), (4,)], {"epsilon": float("nan")}, "outside"),
        ("TrtconvReflectionPad", [(1, 4, 3)], {"pads": (0, 0, 0, 3)}, "needs an axis longer"),
        ("TrtconvReflectionPad", [(1, 4, 3)], {"pads": (0, 0, 0)}, "takes 4 ints"),
        ("TrtconvReflectionPad", [(1, 4, 3)], {"pads": (0, 0, -1, 0)}, "outside 0 to"),
        ("TrtconvAdaptivePool", [(1, 0, 3)], {}, "empty"),
        ("TrtconvAdaptivePool", [(1, 2, 3)], {"output_size": (0, 1)}, "outside 1 to"),
        ("TrtconvAdaptivePool", [(1, 2, 3), (1,)], {}, "takes 1 inputs"),
    ],
)
def test_what_a_plugin_refuses(op_type: str, shapes: Any, attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        find_plugin(op_type).output_shapes(shapes, attributes)
    assert message in str(caught.value)


def test_nodes_carry_name_version_and_namespace_as_old_importers_want_them() -> None:
    for plugin in PLUGINS:
        attributes = node_attributes(plugin)
        assert attributes["plugin_version"] == "1"
        assert attributes["plugin_namespace"] == "trtconv"
        node = make_node(plugin, [t.name for t in plugin.inputs], ["y"])
        assert (node.op_type, node.domain) == (plugin.op_type, "trtconv")


def test_op_types_are_no_onnx_operators() -> None:
    names = {schema.name for schema in onnx.defs.get_all_schemas()}
    assert not names & {p.op_type for p in PLUGINS}


def test_functions_are_added_once_and_taken_out() -> None:
    model = model_of(CASES[0], "float32")
    add_functions(model)
    assert [f.name for f in model.functions] == ["TrtconvL2Norm"]
    assert used_plugins(model) == (find_plugin("TrtconvL2Norm"),)
    remove_functions(model)
    assert not model.functions


def test_an_opset_without_the_operators_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="opset 15"):
        function_proto(PLUGINS[0], 13)


@pytest.mark.parametrize(
    "signature",
    [[], {"inputs": ["T"]}, {"inputs": "T", "outputs": [], "types": {}}, {"inputs": ["T"], "outputs": [], "types": {}},
     {"inputs": [], "outputs": [1], "types": {}}, {"inputs": ["T"], "outputs": [], "types": {"T": "float32"}}],
    ids=str,
)  # fmt: skip
def test_a_signature_of_another_form_is_one_error(signature):
    function = function_proto(PLUGINS[0], 17)
    assert signature_of(function)["inputs"]
    entry = next(p for p in function.metadata_props if p.key == SIGNATURE_KEY)
    entry.value = json.dumps(signature)
    with pytest.raises(InvalidRequestError, match="has a damaged signature"):
        signature_of(function)
