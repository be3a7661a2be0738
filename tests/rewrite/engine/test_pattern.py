"""Rules that are made from a pattern and what stands in its place."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.engine.pattern import pattern_rule


def hard_swish(g, x):
    """What `x * relu6(x + 3) / 6` becomes."""
    return g.div(g.mul(x, g.clip(g.add(x, 3.0), 0.0, 6.0)), 6.0)


RULE = pattern_rule(
    "hard", "A test.", hard_swish, lambda g, x: g.layer(op="HardSwish", inputs=[x], outputs=["y"]), opset=14
)
CONSTANTS = "float three = {3.0}, float low = {0.0}, float six = {6.0}, float[1] one = {6.0}, float five = {5.0}"
BODY = "a = Add(x, three) c = Clip(a, low, six) m = Mul(x, c) y = Div(m, six)"
MEAN = pattern_rule(
    "mean",
    "A test.",
    lambda g, x: g.div(g.reduce("ReduceSum", x, [1]), 8.0),
    lambda g, x: g.reduce("ReduceMean", x, [1]),
)
LEAKY = pattern_rule("leaky", "A test.", lambda g, x: g.maximum(x, g.mul(x, 0.01)), lambda g, x: g.op("LeakyRelu", x))


@pytest.mark.parametrize(
    "body",
    [
        BODY,
        BODY.replace("Mul(x, c)", "Mul(c, x)"),
        BODY.replace("Add(x, three)", "Add(three, x)"),
        BODY.replace("Div(m, six)", "Div(m, one)"),
    ],
)
def test_operands_in_either_order_and_numbers_of_any_rank(body):
    check_case(RULE, Case("hard", body, constants=CONSTANTS, present=("HardSwish",), absent=("Clip",)))


@pytest.mark.parametrize(
    ("case", "rule"),
    [
        (Case("another bound", BODY.replace("low, six", "low, five"), constants=CONSTANTS), RULE),
        (Case("no bound", BODY.replace("a, low, six", "a, low"), constants=CONSTANTS), RULE),
        (Case("another value", "z = Neg(x) " + BODY.replace("Mul(x, c)", "Mul(z, c)"), constants=CONSTANTS), RULE),
        (Case("divided the other way", BODY.replace("Div(m, six)", "Div(six, m)"), constants=CONSTANTS), RULE),
        (Case("another opset", BODY, constants=CONSTANTS, opset=13, skip="opset 14"), RULE),
        (Case("axes", "s = ReduceSum(x, a) y = Div(s, n)", constants="int64[1] a = {2}, float n = {8.0}"), MEAN),
        (
            Case(
                "dims not kept",
                "s = ReduceSum<keepdims=0>(x, a) y = Div(s, n)",
                outputs="float[a,b,c] y",
                constants="int64[1] a = {1}, float n = {8.0}",
            ),
            MEAN,
        ),
    ],
    ids=lambda v: str(v) if isinstance(v, Case) else "",
)
def test_near_misses(case, rule):
    check_near_miss(rule, case)


def test_an_attribute_that_is_not_written_has_its_default():
    constants = "int64[1] a = {1}, float n = {8.0}"
    check_case(MEAN, Case("default", "s = ReduceSum(x, a) y = Div(s, n)", constants=constants, present=("ReduceMean",)))


def test_a_commutative_root():
    body = "m = Mul(k, x) y = Max(m, x)"
    check_case(LEAKY, Case("leaky", body, constants="float k = {0.01}", present=("LeakyRelu",), absent=("Max",)))


def test_the_page_shows_both_sides():
    assert RULE.before == "Div(Mul(x, Clip(Add(x, 3), 0, 6)), 6)"
    assert RULE.after == "HardSwish(x)"
    assert RULE.ops == ("Div",)


@pytest.mark.parametrize(
    ("before", "match"),
    [(lambda g, x: x, "at least one node"), (lambda g, x: g.ops("Split", 2, x), "one output")],
)
def test_what_is_no_pattern(before, match):
    with pytest.raises(ValueError, match=match):
        pattern_rule("bad", "A test.", before, lambda g, x: x)
