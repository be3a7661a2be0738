"""What is inferred in a branch whose constants stand outside of it."""

import pytest
from onnx import parser

from trtconv.core.targets import parse_target
from trtconv.rewrite.graph.facts import index_model

ONE = "then_branch = t () => (float[a,b] y1) { s = Squeeze(r, axes) y1 = Relu(s) }"
OTHER = "else_branch = e () => (float[a,b] y2) { y2 = ReduceSum<keepdims=0>(r, axes) }"
INNER = f"""then_branch = outer_t () => (float[a,b] o) {{
    inside = Identity(flag) o = If (inside) <{ONE}, else_branch = e () => (float[a,b] y2) {{ y2 = ReduceMax(r) }}> }},
    else_branch = outer_e () => (float[a,b] p) {{ p = Relu(r) }}"""


def rank_in_branch(branches: str, constants: str = "", nodes: str = "") -> int | None:
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 17]>
        g (float[N,1,4] x, bool flag) => (float[a,b] y) {constants} {{
            {nodes} r = Relu(x) y = If (flag) <{branches}> }}""")
    scopes = index_model(model, parse_target("tensorrt-rtx")).scopes()
    (scope,) = [s for s in scopes if "s" in s.makers]
    return scope.rank("s")


@pytest.mark.parametrize("branches", [f"{ONE}, {OTHER}", INNER], ids=["one", "a branch in a branch"])
@pytest.mark.parametrize(
    ("constants", "nodes"),
    [("<int64[1] axes = {1}>", ""), ("", "axes = Constant<value = int64[1] {1}>()")],
    ids=["an initializer", "a node"],
)
def test_ranks_are_known(branches: str, constants: str, nodes: str) -> None:
    assert rank_in_branch(branches, constants, nodes) == 2


def test_a_default_of_an_input_is_no_constant() -> None:
    model = parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 17]>
        g (float[N,1,4] x, bool flag, int64[one] axes) => (float[a,b] y) <int64[1] axes = {{1}}> {{
            r = Relu(x) y = If (flag) <{ONE}, {OTHER}> }}""")
    (scope,) = [s for s in index_model(model, parse_target("tensorrt-rtx")).scopes() if "s" in s.makers]
    assert scope.rank("s") is None
