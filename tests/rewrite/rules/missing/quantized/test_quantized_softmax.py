"""The softmax of bytes."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.quantized.quantized_softmax import RULE


def contrib(model):
    model.graph.node[0].domain = "com.microsoft"
    model.opset_import.add(domain="com.microsoft", version=1)


def case(name, attributes, **more):
    kind, zero = more.pop("kind", "uint8"), more.pop("zero", 117)
    low, last = (-128, -128) if kind == "int8" else (0, 0)
    constants = f"float s = {{0.0312}}, {kind} z = {{{zero}}}, float t = {{0.00391}}, {kind} u = {{{last}}}"
    body = f"y = QLinearSoftmax<{attributes}>(x, s, z, t, u)"
    facts = {"inputs": f"{kind}[N,8,H,W] x", "outputs": f"{kind}[a,b,c,d] y", "ranges": {"x": (low, low + 255)}}
    return Case(name, body, constants=constants, edit=contrib, **(facts | more))


@pytest.mark.parametrize(
    "case",
    [
        case("last axis", "axis=-1, opset=13", present=("Softmax",)),
        case("channels", "axis=1, opset=17"),
        case("int8", "axis=-1, opset=13", kind="int8", zero=3),
    ],
    ids=str,
)
def test_fires(case):
    check_case(RULE, case)


def test_of_an_old_opset():
    check_near_miss(RULE, case("flattens", "axis=1, opset=11", skip="flattens"))


def test_more_than_a_step_is_a_difference():
    other = case("other", "axis=-1, opset=13")
    import dataclasses

    scaled = dataclasses.replace(RULE, find=lambda graph, node: _with_axis(RULE.find(graph, node)))
    with pytest.raises(AssertionError, match="differ by more than"):
        check_case(scaled, other)


def _with_axis(found):
    import dataclasses

    def build(g):
        value = found.build(g)
        g.nodes[1].attrs["axis"] = 1
        return value

    return dataclasses.replace(found, build=build)
