# ruff: noqa: E501 - the text of a model stands on one line
"""Convolutions in narrow groups, of widths for which TensorRT 8.6 has no kernel."""

import numpy as np
import onnx
import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model
from trtconv.rewrite.rules.newer.layers.wider_groups import RULE, between_zeros, merged_groups

OLD = {"target": "tensorrt==8.6"}


def weights(*shape):
    count = int(np.prod(shape))
    values = ",".join(f"{v:.4f}" for v in np.random.default_rng(0).standard_normal(count))
    return f"float[{','.join(map(str, shape))}] w = {{{values}}}"


CASES = [
    Case("two groups of 24", "y = Conv<group=2, pads=[1,1,1,1]>(x, w)", "float[N,48,H,W] x", constants=weights(48, 24, 3, 3), **OLD),
    Case("strides and gaps", "y = Conv<group=4, strides=[2,1], dilations=[1,2], kernel_shape=[1,3]>(x, w)", "float[N,160,9,9] x", constants=weights(160, 40, 1, 3), **OLD),
    Case("padded by name", 'y = Conv<group=3, auto_pad="SAME_UPPER">(x, w)', "float[N,72,H,W] x", constants=weights(72, 24, 2, 2), **OLD),
]  # fmt: skip
OUT = "float[a,b,c,d] y"
NEAR_MISSES = [
    Case("no groups", "y = Conv(x, w)", "float[N,24,H,W] x", OUT, constants=weights(24, 24, 1, 1), **OLD),
    Case("a width that has kernels", "y = Conv<group=2>(x, w)", "float[N,64,H,W] x", OUT, constants=weights(64, 32, 1, 1), **OLD),
    Case("narrower", "y = Conv<group=2>(x, w)", "float[N,24,H,W] x", OUT, constants=weights(24, 12, 1, 1), **OLD),
    Case("groups that widen", "y = Conv<group=2>(x, w)", "float[N,48,H,W] x", OUT, constants=weights(96, 24, 1, 1), **OLD),
    Case("a prime number of groups", "y = Conv<group=23>(x, w)", "float[N,552,4,4] x", OUT, constants=weights(552, 24, 1, 1), **OLD),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


@pytest.mark.parametrize(("groups", "width", "merged"), [(3, 24, 3), (24, 24, 12), (63, 24, 21), (10, 40, 10), (8, 72, 4), (23, 24, 1)])
def test_the_most_groups_that_divide(groups, width, merged):
    assert merged_groups(groups, width) == merged


def test_zeros_between():
    own = np.arange(1, 13, dtype=np.float32).reshape(4, 1, 3, 1)
    wider = between_zeros(own, 2)
    assert wider.shape == (4, 2, 3, 1)
    assert [[int(np.count_nonzero(wider[o, i])) for i in range(2)] for o in range(4)] == [[3, 0], [0, 3], [3, 0], [0, 3]]


@pytest.mark.parametrize(
    ("options", "groups"),
    [
        ({"precision": "fp16"}, 1),
        ({"precision": "bf16"}, 4),
        ({}, 4),
        ({"also": ("wider-groups",)}, 1),
        ({"precision": "fp16", "skip": ("wider-groups",)}, 4),
        ({"precision": "fp16", "target": parse_target("tensorrt==10")}, 4),
    ],
)
def test_the_precision_decides(tmp_path, options, groups):
    w = np.random.default_rng(0).standard_normal((96, 24, 3, 3)).astype(np.float32)
    convolution = onnx.helper.make_node("Conv", ["x", "w"], ["y"], name="conv", group=4)
    ends = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["N", 96, s, s]) for n, s in (("x", 8), ("y", 6))]
    graph = onnx.helper.make_graph([convolution], "g", ends[:1], ends[1:], [onnx.numpy_helper.from_array(w, "w")])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    options = {"target": parse_target("tensorrt==8.6"), "space": parse_space(["N=1:2:4"]), **options}
    result = rewrite_model(RewriteRequest(tmp_path / "m.onnx", tmp_path / "r.onnx", **options), SilentProgress())
    (node,) = (n for n in onnx.load(tmp_path / "r.onnx").graph.node if n.op_type == "Conv")
    assert next(a.i for a in node.attribute if a.name == "group") == groups
    assert ("wider-groups" in [e.rule for e in result.entries]) == (groups == 1)
    assert not result.rejected
