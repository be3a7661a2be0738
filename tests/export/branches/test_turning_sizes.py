"""Conditions on fractions of sizes as nodes: they decide as Python's FP64 does at every joint size."""

import math

import numpy as np
import onnx
import onnxruntime
import pytest

pytest.importorskip("torch")

from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.export.branches.guard_split import GuardCut, NoConditionError, condition_nodes
from trtconv.export.branches.guards import Guard, hold_everywhere, unproved_guards
from trtconv.export.branches.turning_sizes import near_ties, turning_sizes

SPACE = parse_space(["N=1:1:2 H=24:32:64%8 W=24:48:97"])
SPECS = (parse_tensor("x:float32[N,3,H,W]"),)


def decided(text, *names):
    """What nodes make of a condition at sizes; sizes outside of the space are looked up, too."""
    graph = onnx.GraphProto(name="main")
    graph.input.append(onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", 3, "H", "W"]))
    graph.output.append(onnx.helper.make_tensor_value_info("holds", onnx.TensorProto.BOOL, []))
    graph.node.extend(condition_nodes(GuardCut(Guard(text, names), ()), SPECS, SPACE, graph, "holds"))
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return lambda h, w: bool(session.run(None, {"x": np.zeros((1, 3, h, w), np.float32)})[0])


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("(W / H) <= 1.3333333333333333", lambda h, w: w / h <= 4 / 3),
        ("abs((-1.5) + (W / H)) >= abs((-1.0) + (W / H))", lambda h, w: abs(w / h - 1.5) >= abs(w / h - 1.0)),
        ("((40.0 / (sym_float(min(W, H)))))*sym_float(max(W, H)) <= 66.0",
         lambda h, w: 40.0 / min(h, w) * max(h, w) <= 66.0),
        ("trunc((0.1*sym_float(W))) == 3", lambda h, w: int(w * 0.1) == 3),
        ("(W / H) > 99.0", lambda h, w: False),
        ("(W / H) < 99.0", lambda h, w: True),
    ],
)  # fmt: skip
def test_it_decides_as_python_does(text, python):
    holds = decided(text, *[n for n in ("W", "H") if n in text])
    sizes = [(h, w) for h in SPACE["H"].values() for w in SPACE["W"].values()]
    assert [(h, w) for h, w in sizes if holds(h, w) != python(h, w)] == []
    assert isinstance(holds(8, 200), bool)


def test_the_smaller_table_is_taken():
    turns = turning_sizes(Guard("(W / H) <= 1.5", ("W", "H")), SPACE)
    assert (turns.dim, turns.by, turns.rows) == ("W", "H", (24, 8, 5))
    assert turns.table.shape == (6, 2)


def test_a_last_bit_that_torch_lost_decides_nothing():
    # Python has h * 0.1 * 3, of which sympy makes one factor.
    with pytest.raises(NoConditionError, match="its last bit decides"):
        decided("0.30000000000000004*sym_float(H) >= 12.0", "H")
    assert decided("0.30000000000000004*sym_float(H) >= 12.1", "H")(48, 24)


def test_ties_are_sizes_to_compare_at():
    ties = near_ties(Guard("(W / H) <= 1.5", ("W", "H")), SPACE)
    assert {"W": 36, "H": 24} in ties
    assert all(2 * t["W"] == 3 * t["H"] for t in ties)
    assert near_ties(Guard("W <= H", ("W", "H")), SPACE) == []


EQUAL = """Constraints violated (H, W)!
  - The values of W = L['x'].size()[3] and H = L['x'].size()[2] must always be equal.
Suggested fixes:
  W = H
"""
SOLVED = """Constraints violated (W)!
  - Not all values of W = L['x'].size()[3] in the specified range 24 <= W <= 97 satisfy the generated guard \
(3*L['x'].size()[3]) != (3*max(1, L['x'].size()[3] // 2)).Specializations unexpectedly required (W)! For more \
information, run with TORCH_LOGS="+dynamic".
  - solving the guards generated for W = L['x'].size()[3] resulted in a specialized value of 40.

Suggested fixes:
  W = 40
"""


def test_equal_sizes_are_a_condition():
    (guard,) = unproved_guards(EQUAL)
    assert guard.names == ("W", "H")
    assert not hold_everywhere(EQUAL, SPACE)
    assert hold_everywhere(EQUAL, SPACE, ((Guard("H != W", ("H", "W")), False),))


def test_the_traced_size_that_torch_takes_for_a_solution():
    assert hold_everywhere(SOLVED, SPACE)
    assert not hold_everywhere(SOLVED.replace("!= (3*max", "!= (96 + 0*max"), SPACE)
    assert not hold_everywhere("\n".join(SOLVED.splitlines()[-1:]), SPACE)


ENCODEC = "T > max(2, 2 + ((-1)*T) + 3*ceil(1.0 + (((-3) + T) / 3)))"


def test_sums_of_whole_numbers_lose_no_bit():
    """EnCodec's padding: what is rounded is a quotient and a one, and the rest are whole numbers."""
    space = parse_space(["T=1:20:40"])
    turns = turning_sizes(Guard(ENCODEC, ("T",)), space)
    holds = [t > max(2, 2 - t + 3 * math.ceil((t - 3) / 3 + 1)) for t in space["T"].values()]
    assert turns.table.tolist() == [[t for t in range(2, 41) if holds[t - 1] != holds[t - 2]]]


def test_what_is_rounded_turns_where_it_is_whole():
    ties = near_ties(Guard("trunc((0.1*sym_float(W))) == 3", ("W",)), SPACE)
    assert ties[0]["W"] == 30
    assert all(t["W"] % 10 == 0 for t in ties)
