# ruff: noqa: E501 - the text of a model stands on one line
"""Concats that begin as an earlier one does."""

import onnx
import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model
from trtconv.rewrite.rules.faster.nested_concats import RULE

OLD = {"target": "tensorrt==8.6"}
PARTS = "a = Relu(x) b = Neg(x) c = Abs(x) d = Floor(x) "
TWO, ONE = "float[p,q,r,s] y, float[t,u,v,w] z", "float[p,q,r,s] y"
CASES = [
    Case("three behind two", PARTS + "y = Concat<axis=1>(a, b) z = Concat<axis=1>(a, b, c)", outputs=TWO, **OLD),
    Case("the axis from behind", PARTS + "y = Concat<axis=1>(a, b) z = Concat<axis=-3>(a, b, c, d)", outputs=TWO, **OLD),
    Case("the longest", PARTS + "e = Concat<axis=1>(a, b) y = Concat<axis=1>(e, c) z = Concat<axis=1>(a, b, c, e)", outputs=TWO, **OLD),
    Case("a chain", PARTS + "e = Concat<axis=2>(a, b) f = Concat<axis=2>(a, b, c) g = Concat<axis=2>(a, b, c, d) y = Concat<axis=2>(e, f, g)", outputs=ONE, fires=2, **OLD),
    Case("the same part again", PARTS + "y = Concat<axis=1>(a, a) z = Concat<axis=1>(a, a, a)", outputs=TWO, **OLD),
]  # fmt: skip
NEAR_MISSES = [
    Case("another order", PARTS + "y = Concat<axis=1>(b, a) z = Concat<axis=1>(a, b, c)", outputs=TWO, **OLD),
    Case("another axis", PARTS + "y = Concat<axis=2>(a, b) z = Concat<axis=1>(a, b, c)", outputs=TWO, **OLD),
    Case("the later is the shorter", PARTS + "y = Concat<axis=1>(a, b, c) z = Concat<axis=1>(a, b)", outputs=TWO, **OLD),
    Case("all parts", PARTS + "y = Concat<axis=1>(a, b, c) z = Concat<axis=1>(a, b, c)", outputs=TWO, **OLD),
    Case("at the end", PARTS + "y = Concat<axis=1>(b, c) z = Concat<axis=1>(a, b, c)", outputs=TWO, **OLD),
    Case("whole numbers", "a = Shape(x) b = Concat<axis=0>(a, a) c = Concat<axis=0>(a, a, a) y = Expand(x, a)", outputs=ONE, **OLD),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


@pytest.mark.parametrize(("target", "widest"), [("tensorrt==8.6", 2), ("tensorrt==10", 6)])
def test_a_dense_block_copies_nothing(tmp_path, target, widest):
    """Every layer reads all features before it: each Concat takes the one before and what is new."""
    make, nodes, parts = onnx.helper.make_node, [], ["x"]
    for layer in range(5):
        joined = f"c{layer}" if layer else "x"
        if layer:
            nodes.append(make("Concat", list(parts), [joined], f"concat{layer}", axis=1))
        nodes.append(make("ReduceMean", [joined], [f"m{layer}"], f"mean{layer}", axes=[1]))
        parts.append(f"m{layer}")
    nodes.append(make("Concat", parts, ["y"], "last", axis=1))
    ends = [
        onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["N", c, 8, 8]) for n, c in (("x", 4), ("y", 9))
    ]
    model = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:]),
        opset_imports=[onnx.helper.make_opsetid("", 17)],
        ir_version=8,
    )
    onnx.save(model, tmp_path / "m.onnx")
    request = RewriteRequest(
        tmp_path / "m.onnx", tmp_path / "r.onnx", target=parse_target(target), space=parse_space(["N=1:2:4"])
    )
    assert not rewrite_model(request, SilentProgress()).rejected
    assert max(len(n.input) for n in onnx.load(tmp_path / "r.onnx").graph.node if n.op_type == "Concat") == widest
