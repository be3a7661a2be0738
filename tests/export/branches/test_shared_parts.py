"""What both sides of a join share is written once, whatever the sides are."""

import copy
import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

pytest.importorskip("torch")

from tests.export.branches.test_split import traced
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.model.bodies import walk_nodes
from trtconv.core.model.provenance import BRANCH_SIZES_KEY
from trtconv.core.shape_space.space import parse_space
from trtconv.export.branches.joined.cuts import Cut
from trtconv.export.branches.joined.graphs import join

POSITIONS = """
class Positions(nn.Module):
    def __init__(self):
        super().__init__()
        self.positions = nn.Parameter(torch.randn(1, 3, 5, 5))
        self.patch = nn.Conv2d(2, 3, 2, 2)

    def forward(self, x):
        y, positions = self.patch(x), self.positions
        if y.shape[-2:] != positions.shape[-2:]:
            positions = F.interpolate(positions, size=y.shape[-2:], mode="bicubic")
        return (y + positions).flatten(2).mT
"""
PADDED = """
class Padded(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Conv1d(1, 4, 8, 8), nn.ConvTranspose1d(4, 1, 8, 8)

    def forward(self, x):
        t = x.shape[2]
        rest = t % 8
        if rest:
            x = F.pad(x, (0, 8 - rest))
        y = self.decode(torch.relu(self.encode(x))).view(x.shape[0], 1, x.shape[2])
        return y[..., : rest - 8] if rest else y
"""


CUT_AND_EVEN = """
class CutAndEven(nn.Module):
    def forward(self, x):
        if x.shape[1] > 2:
            x = x[:, :2]
        if x.shape[2] % 2:
            x = x[..., :-1]
        return x + 1
"""


def test_a_part_of_one_size_says_no_size_of_another(write_module, export):
    # C at 1 and C at 2 are parts of their own, and both have the If by the parity of T.
    source = f"{write_module(CUT_AND_EVEN)}:CutAndEven"
    model = export(source, ["x:float32[2,C,T]"], "C=1:2:4 T=2:4:9").model
    graph = onnx.load(model).graph
    declared = {v.name: v.type.tensor_type.shape.dim for v in graph.value_info}
    inner = [o for n in walk_nodes(graph.node) for a in n.attribute if a.HasField("g") for o in a.g.output]
    for node in graph.node:
        (recorded,) = [p.value for p in node.metadata_props if p.key == BRANCH_SIZES_KEY] or ["{}"]
        assert all(dims[1] != 1 for sides in json.loads(recorded).values() for dims in sides)
        assert all(declared[o][1].dim_value != 1 for o in node.output if o in declared and node.op_type == "If")
    assert all(o.type.tensor_type.shape.dim[1].dim_value != 1 for o in inner)


@pytest.mark.slow
def test_an_if_holds_a_table_and_its_interpolation_alone(write_module, export):
    source = f"{write_module(POSITIONS)}:Positions"
    graph = onnx.load(export(source, ["x:float32[N,2,H,W]"], "N=1:2:3 H=4:10:16 W=4:10:16").model).graph
    operators = [n.op_type for n in graph.node]
    assert (operators.count("If"), operators.count("Conv"), operators.count("Add")) == (1, 1, 1)
    (chosen,) = (n for n in graph.node if n.op_type == "If")
    inside = [[n.op_type for n in a.g.node] for a in chosen.attribute]
    assert sorted(len(nodes) for nodes in inside)[0] == 1
    assert sum(nodes.count("Resize") for nodes in inside) == 1
    recorded = json.loads(next(p.value for p in chosen.metadata_props if p.key == BRANCH_SIZES_KEY))
    assert recorded["then"] == recorded["else"] == [[1, 3, "(H//2)", "(W//2)"]]


@pytest.mark.slow
def test_one_side_may_go_further_than_the_other(write_module, export):
    source = f"{write_module(PADDED)}:Padded"
    graph = onnx.load(export(source, ["x:float32[N,1,T]"], "N=1:2:3 T=9:30:64").model).graph
    operators = [n.op_type for n in graph.node]
    assert (operators.count("If"), operators.count("Conv"), operators.count("ConvTranspose")) == (2, 1, 1)


TRACE = traced(parse_space(["N=1:2:3 T=2:5:9"]), 2, 5, "x:float32[N,T]")
UNARY, BINARY = ("Neg", "Abs", "Relu", "Tanh", "Identity"), ("Add", "Mul", "Sub")


def random_nodes(rng, count):
    """Nodes by op and positions of earlier values; 0 is the input, and a Reshape has one of three ways to its sizes."""
    nodes = []
    for index in range(count):
        kind = rng.integers(8)
        reads = [int(rng.integers(index + 1)) for _ in range(2)]
        if kind == 0:
            nodes.append(["Reshape", reads[0], int(rng.integers(3))])
        elif kind < 4:
            nodes.append([str(rng.choice(UNARY)), reads[0]])
        else:
            nodes.append([str(rng.choice(BINARY)), *reads])
    return nodes


def mutated(rng, nodes):
    """The same nodes with a few others: another operator, another input, another way to the sizes, a node more."""
    nodes = copy.deepcopy(nodes)
    for _ in range(rng.integers(1, 4)):
        node = nodes[rng.integers(len(nodes))]
        if node[0] == "Reshape":
            node[2] = int(rng.integers(3))
        elif rng.random() < 0.5:
            node[0] = str(rng.choice(UNARY if len(node) == 2 else BINARY))
        else:
            node[1] = int(rng.integers(nodes.index(node) + 1))
    if rng.random() < 0.5:
        nodes.append([str(rng.choice(UNARY)), len(nodes)])
    return nodes


def model_of(nodes, outputs):
    make = helper.make_node
    written, names = [], ["x"]
    for index, (op, *reads) in enumerate(nodes):
        name = f"v{index}"
        if op == "Reshape":
            # The sizes of the input, the same by way of a sum, or those of what is read.
            ways = (
                [make("Shape", ["x"], [f"{name}s"])],
                [make("Shape", ["x"], [f"{name}r"]), make("Add", [f"{name}r", "none"], [f"{name}s"])],
                [make("Shape", [names[reads[0]]], [f"{name}s"])],
            )
            written += [*ways[reads[1]], make("Reshape", [names[reads[0]], f"{name}s"], [name], name)]
        else:
            written.append(make(op, [names[r] for r in reads], [name], name))
        names.append(name)
    given = [make("Identity", [names[i]], [f"out{k}"], f"out{k}") for k, i in enumerate(outputs)]
    values = [helper.make_tensor_value_info(f"out{k}", TensorProto.FLOAT, ["N", "T"]) for k in range(len(outputs))]
    graph = helper.make_graph(
        [*written, *given],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "T"])],
        values,
        [helper.make_tensor("none", TensorProto.INT64, [2], [0, 0])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("seed", range(80))
def test_a_join_computes_what_its_sides_do(tmp_path, seed):
    rng = np.random.default_rng(seed)
    nodes = random_nodes(rng, int(rng.integers(3, 16)))
    other = mutated(rng, nodes) if seed % 8 else random_nodes(rng, len(nodes))
    last = [int(rng.integers(len(nodes) + 1)), len(nodes)]
    sides = {}
    for side, own in (("low", nodes), ("high", other)):
        sides[side] = tmp_path / f"{side}.onnx"
        onnx.save(model_of(own, [last[0], len(own)]), sides[side])
    joined = tmp_path / "joined.onnx"
    join(sides["low"], sides["high"], Cut("T", 4), TRACE, joined, nested=bool(seed % 2))
    # A joined model is a side as well.
    outer = tmp_path / "outer.onnx"
    join(joined, sides["low"], Cut("T", 6), TRACE, outer, nested=bool(seed % 3))
    runners = {n: OnnxRuntimeRunner(p) for n, p in (*sides.items(), ("joined", joined), ("outer", outer))}
    for size in range(2, 10):
        inputs = {"x": rng.normal(size=(2, size)).astype(np.float32)}
        expected = runners["low" if size <= 4 else "high"](inputs)
        for name, value in runners["joined"](inputs).items():
            np.testing.assert_array_equal(value, expected[name])
        expected = runners["low" if size <= 4 or size > 6 else "high"](inputs)
        for name, value in runners["outer"](inputs).items():
            np.testing.assert_array_equal(value, expected[name])


def test_sides_that_compute_one_thing_need_no_if(tmp_path):
    nodes = random_nodes(np.random.default_rng(3), 9)
    paths = [tmp_path / f"{n}.onnx" for n in ("low", "high", "joined")]
    for path in paths[:2]:
        onnx.save(model_of(nodes, [9]), path)
    join(*paths[:2], Cut("T", 4), TRACE, paths[2])
    assert all(n.op_type != "If" for n in onnx.load(paths[2]).graph.node)
