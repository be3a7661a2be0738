"""The harness itself: a wrong rule and a rule that never fires both fail it."""

from __future__ import annotations

import dataclasses

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip

RELU = Case("relu", "y = Relu(x)")
RIGHT = Rule(
    "relu-as-max",
    "A test.",
    ("Relu",),
    lambda g, n: Found((n,), lambda g: g.op("Max", n.inputs[0], g.scalar(0.0, n.inputs[0]))),
)
WRONG = Rule("relu-as-abs", "A test.", ("Relu",), lambda g, n: Found((n,), lambda g: g.op("Abs", n.inputs[0])))
NEVER = Rule("never", "A test.", ("Relu",), lambda g, n: NOT_THIS)
RESTLESS = Rule("restless", "A test.", ("Relu",), lambda g, n: Found((n,), lambda g: g.op("Relu", n.inputs[0])))


def test_a_right_rule_passes():
    check_case(RIGHT, RELU)


def test_a_wrong_rule_is_rejected_by_its_proof():
    with pytest.raises(AssertionError, match="the proof found a difference"):
        check_case(WRONG, RELU)


def test_a_wrong_rule_fails_without_its_proof_too():
    with pytest.raises(AssertionError, match="elements differ"):
        check_case(WRONG, RELU, proof=False)


def test_a_rule_that_never_fires_fails():
    with pytest.raises(AssertionError, match="fired 0 times"):
        check_case(NEVER, RELU)


def test_a_rule_that_fires_on_its_own_result_fails():
    with pytest.raises(AssertionError, match="fired"):
        check_case(RESTLESS, RELU)


def test_a_near_miss_that_fires_fails():
    with pytest.raises(AssertionError, match="fired at"):
        check_near_miss(RIGHT, RELU)


def test_a_near_miss_has_to_give_its_reason():
    rule = dataclasses.replace(NEVER, find=lambda g, n: Skip("because of one thing"))
    with pytest.raises(AssertionError, match="reasons"):
        check_near_miss(rule, dataclasses.replace(RELU, skip="because of another"))


def test_two_sizes_are_too_few():
    with pytest.raises(AssertionError, match="three sizes"):
        check_case(RIGHT, dataclasses.replace(RELU, sizes=RELU.sizes[:2]))
