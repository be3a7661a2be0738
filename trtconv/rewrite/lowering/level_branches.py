"""Ifs whose branches give other sizes: both are cut or padded to those of the branch that is taken.

`if t % 8: x = F.pad(x, (0, 8 - t % 8))` in one branch leaves the other with other sizes at every size, also where it
is not taken. TensorRT 8.6 takes the sizes of one branch for the other, and TensorRT-RTX 1.7 ends its build with a
failed check (`op->input_size()`), also where the sizes are the same and it does not see it. What an output has to be is
worked out in front of the If, from the dims that an export records for each side or that a file declares; a Pad at the
end of each branch, by nothing where it is taken, and a Reshape give both the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping

import onnx
from onnx import TensorProto, shape_inference

from trtconv.core.ledger.records import LedgerEntry, Proof
from trtconv.core.model.dim_names import declared_dims
from trtconv.core.model.file import external_files
from trtconv.core.model.inference import infer, inferred_types, without_weights
from trtconv.core.model.opset import opset_of
from trtconv.core.model.provenance import BRANCH_SIZES_KEY, origin_of
from trtconv.core.model.size_nodes import LOGIC, SizeWriter, UnwritableSizeError
from trtconv.proof.points import SamplePoint
from trtconv.rewrite.engine.rounds import RewriteRecord, RewriteSetting, node_text
from trtconv.rewrite.graph.branches import BRANCHES, branch_of, index_of, up_to_branch
from trtconv.rewrite.lowering.branch_sizes import points_beside_turns, random_points
from trtconv.rewrite.lowering.defined_branches import LentSizes, define_branches, defined_points, least_sizes
from trtconv.rewrite.lowering.selected_branches import costs_little, select

NAME = "level-branches"
WHY = "TensorRT wants one size of both branches of an If, also of the one that is not taken."
# Of Unsqueeze, and of Pad on whole numbers.
LEAST_OPSET = 13
SIDES = {True: "then", False: "else"}
# The sample points at the ends of the ranges, and the usual one.
ENDS = ("min", "opt", "max")
# CPU seconds for running branches at sizes that are not sampled.
SECONDS = 4.0
Dims = list[int | str]
# By the answer of an If what was lent to that branch.
Lent = dict[bool, LentSizes]


def level_branches(model: onnx.ModelProto, setting: RewriteSetting, record: RewriteRecord) -> onnx.ModelProto:
    """The model, in place, with branches of one size; an If of which the sizes cannot be written stays as it is."""
    if opset_of(model) < LEAST_OPSET:
        return model
    names = {n for spec in setting.specs for n in spec.names()}
    light: onnx.ModelProto | None = None
    visited: set[tuple[str, ...]] = set()
    # What was lent to the branch that an If comes from, by its outputs.
    dims_of_branches: dict[tuple[str, ...], Mapping[str, str]] = {}
    is_changed = False
    while (node := _first_if(model, visited)) is not None:
        # One number for each If, also for one that stays as it is: the names of its nodes are its own.
        turn = len(visited)
        visited.add(tuple(node.output))
        light = light or without_weights(model)
        uneven = _uneven_outputs(light, node, names)
        dims = dims_of_branches.get(tuple(node.output), {})
        leveling = _Leveling(model, node, setting, f"trtconv_level_{turn}_", dims)
        if not (setting.proof and uneven) and not leveling.recorded:
            # What a foreign file says of its sizes need not be so.
            continue
        before, origin, name = (node_text(node),), origin_of(node), node.name or node.output[0]
        try:
            lent = leveling.level(uneven)
        except (UnwritableSizeError, SyntaxError):
            continue
        model, after = leveling.model, [leveling.node]
        if leveling.may_select(lent):
            prefix = f"trtconv_taken_{turn}_"
            after = select(model, leveling.node, prefix)
            leveling.notes.append("both branches are computed, and a Where takes one")
            for inner in [n for n in after if n.op_type == "If"]:
                side = lent.get(inner.output[0].startswith(f"{prefix}then")) if lent else None
                dims_of_branches[tuple(inner.output)] = side.dims if side else dims
        if not leveling.notes:
            continue
        texts = tuple(map(node_text, after))
        proof = Proof(None, note="compared with the whole graph")
        record.entries.append(LedgerEntry(NAME, WHY, name, origin, "", before, texts, proof, "; ".join(leveling.notes)))
        is_changed = True
        light = None
    if is_changed:
        del model.graph.value_info[:]
    return model


def _first_if(model: onnx.ModelProto, visited: Collection[tuple[str, ...]]) -> onnx.NodeProto | None:
    return next((n for n in model.graph.node if n.op_type == "If" and tuple(n.output) not in visited), None)


def _uneven_outputs(light: onnx.ModelProto, node: onnx.NodeProto, names: Collection[str]) -> list[int]:
    """The outputs of an If but those of which both branches have the same sizes, as inference names them."""
    index = index_of(light.graph, node)
    sides = [up_to_branch(light, index, answer) for answer in BRANCHES]
    for side in sides:
        del side.graph.output[:]
        side.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name)
    first, second = (_inferred_dims(side, names) for side in sides)
    outputs = [(i, name) for i, name in enumerate(node.output) if name and _rank(node, i)]
    return [i for i, name in outputs if name not in first or first[name] != second.get(name)]


def _inferred_dims(side: onnx.ModelProto, names: Collection[str]) -> dict[str, Dims]:
    """By output its dims, where all of them are numbers or dims of the inputs."""
    try:
        graph = infer(side).graph
    except (shape_inference.InferenceError, RuntimeError, ValueError):
        return {}
    dims = {v.name: declared_dims(v) for v in graph.output if v.type.tensor_type.HasField("shape")}
    return {n: d for n, d in dims.items() if all(size in names or isinstance(size, int) for size in d)}


def _rank(node: onnx.NodeProto, output: int) -> int:
    """The rank that both branches declare for an output; 0 where they differ or it is no tensor."""
    branches = [branch_of(node, answer) for answer in BRANCHES]
    ranks = {len(b.output[output].type.tensor_type.shape.dim) for b in branches}
    return ranks.pop() if len(ranks) == 1 else 0


class _Leveling:
    """What is put in front of one If and at the end of its branches."""

    def __init__(
        self,
        model: onnx.ModelProto,
        node: onnx.NodeProto,
        setting: RewriteSetting,
        prefix: str,
        dims: Mapping[str, str],
    ) -> None:
        self.model, self.node, self.setting, self.prefix = model, node, setting, prefix
        # Nothing is put into the model before all of it is written.
        self.scratch = onnx.GraphProto()
        self.writer = SizeWriter(setting.specs, self.scratch, f"{prefix}size_", dims)
        self.flag = ""
        self.outputs = list(node.output)
        self.is_in_front = False
        self.is_little = costs_little(model, node)
        self.notes: list[str] = []
        recorded = next((p.value for p in node.metadata_props if p.key == BRANCH_SIZES_KEY), "{}")
        self.recorded: dict[str, list[Dims]] = json.loads(recorded)

    def sizes(self, output: int) -> str:
        """The name of the int64 sizes of an output. Raises UnwritableSizeError."""
        sides = {answer: self._dims(answer, output) for answer in BRANCHES}
        parts = []
        for axis in range(len(sides[True])):
            first, second = sides[True][axis], sides[False][axis]
            if self.recorded and first == second != "":
                # An export compared it with both sides at all sizes.
                parts.append(self._written(first))
                continue
            size = self._size(True, output, axis, first)
            if first != second or self._handed_on(True, output) or self._handed_on(False, output):
                size = self.writer.choose(self._is_first(), size, self._size(False, output, axis, second))
            parts.append(size)
        return self.writer.vector(parts)

    def fit(self, output: int, sizes: str) -> None:
        """Cut or pad an output of both branches to `sizes`."""
        for answer, side in SIDES.items():
            branch = branch_of(self.node, answer)
            value = branch.output[output]
            tensor = value.type.tensor_type
            writer = SizeWriter((), self.scratch, f"{self.prefix}{side}_{output}_")
            is_bool = tensor.elem_type == TensorProto.BOOL
            value.name = writer.fitted(value.name, len(tensor.shape.dim), sizes, is_bool=is_bool)
            branch.node.extend(writer.nodes)
            tensor.ClearField("shape")

    def put_in_front(self) -> None:
        """Put the nodes of the sizes in front of the If."""
        if self.is_in_front:
            self.writer.nodes.clear()
        self.writer.put_before(self.model.graph, index_of(self.model.graph, self.node))
        self.node = self._current()

    def level(self, uneven: list[int]) -> Lent | None:
        """Give both branches the same sizes, of the outputs `uneven` or, where one is not defined everywhere, of all.

        Returns what was lent to them to be so; None where they cannot be made to. Raises UnwritableSizeError.
        """
        points, defined = self._defined_points()
        is_defined = bool(points) and all(len(defined[answer]) == len(points) for answer in BRANCHES)
        # What is lent to a branch changes all of its sizes.
        every = [i for i, output in enumerate(self.outputs) if output and _rank(self.node, i)]
        sizes = {output: self.sizes(output) for output in (uneven if is_defined or not points else every)}
        lent = {} if is_defined else self._define(points, defined) if points else None
        fitted = {o: s for o, s in sizes.items() if lent or o in uneven}
        for output, size in fitted.items():
            self.fit(output, size)
        if fitted or lent:
            self.put_in_front()
        if fitted:
            shown = ", ".join(repr(self.outputs[o]) for o in fitted)
            self.notes.append(f"{shown}: both branches padded to the sizes of the one taken")
        for branch in (lent or {}).values():
            self.notes.append(f"a branch gets the sizes of {branch.point} where it is not taken, to be defined there")
        return lent

    def may_select(self, lent: Lent | None) -> bool:
        """True where both branches may be computed at each run."""
        return self.is_little and lent is not None

    def _defined_points(self) -> tuple[list[SamplePoint], dict[bool, list[SamplePoint]]]:
        """Points, and those of them at which each branch runs.

        All sample points where the target or a Where needs both branches there; else those at the ends of the ranges,
        at which a builder works out shapes. None for a model whose weights lie beside it.
        """
        if external_files(self.model):
            return [], {answer: [] for answer in BRANCHES}
        points = random_points(self.setting)
        if not (self.is_little or self.setting.target.facts.branches_of_one_size):
            points = [p for p in points if p.label in ENDS]
            return points, defined_points(self.model, self.node, self.setting, points)
        started = time.process_time()
        defined = defined_points(self.model, self.node, self.setting, points)
        seconds = max(time.process_time() - started, 1e-3)
        # Behind a large network an If is looked at where it is sampled.
        beside = points_beside_turns(self.model, self.node.input[0], self.setting)
        more = beside[: int(len(points) * SECONDS / seconds)]
        defined_there = defined_points(self.model, self.node, self.setting, more) if more else {}
        return [*points, *more], {answer: [*defined[answer], *defined_there.get(answer, ())] for answer in BRANCHES}

    def _define(self, points: list[SamplePoint], defined: Mapping[bool, list[SamplePoint]]) -> Lent | None:
        """Let both branches run at the points; what was lent to them for it, or None where they cannot be made to."""
        flag, count = self.flag, len(self.writer.nodes)
        result = define_branches(self.model, self.node, self.setting, self.writer, self._is_first, points, defined)
        if result is None:
            self.flag = flag
            del self.writer.nodes[count:]
            return None
        self.model, lent = result
        self.is_in_front = True
        self.node = self._current()
        return lent

    def _current(self) -> onnx.NodeProto:
        return next(n for n in self.model.graph.node if list(n.output) == self.outputs)

    def _is_first(self) -> str:
        """1 where the first branch is taken and else 0; what says so is written once."""
        if not self.flag:
            self.flag = self.writer.flag(self.node.input[0], self._whole_comparisons())
        return self.flag

    def _whole_comparisons(self) -> dict[str, onnx.NodeProto]:
        """The makers of truths in the main graph that compare int64, or join such truths."""
        types = inferred_types(without_weights(self.model))
        makers = {o: n for n in self.model.graph.node for o in n.output if types.get(o) == TensorProto.BOOL}

        def is_whole(node: onnx.NodeProto) -> bool:
            read = TensorProto.BOOL if node.op_type in LOGIC else TensorProto.INT64
            return all(types.get(name) == read for name in node.input)

        return {name: node for name, node in makers.items() if is_whole(node)}

    def _dims(self, answer: bool, output: int) -> Dims:
        if self.recorded:
            return self.recorded[SIDES[answer]][output]
        return declared_dims(branch_of(self.node, answer).output[output])

    def _size(self, answer: bool, output: int, axis: int, dim: int | str) -> str:
        outer = self._handed_on(answer, output)
        if outer:
            return self.writer.node("Gather", self.writer.node("Shape", outer), self.writer.constant(axis))
        size = self._written(dim)
        bounds = least_sizes(self.model.graph, self.node.input[0], answer, str(dim), self.setting)
        if bounds is None or bounds[1] >= bounds[0]:
            return size
        # Where the branch is not taken it would be less, and a builder that meets a size below 0 ends by it.
        return self.writer.node("Max", size, self.writer.constant(bounds[0]))

    def _written(self, dim: int | str) -> str:
        return self.writer.constant(dim) if isinstance(dim, int) else self.writer.expression(dim)

    def _handed_on(self, answer: bool, output: int) -> str:
        """The value outside of the If that a branch gives as it is; empty for what it computes."""
        branch = branch_of(self.node, answer)
        name = branch.output[output].name
        makers = {o: n for n in branch.node for o in n.output}
        maker = makers.get(name)
        if maker is None or maker.op_type != "Identity" or maker.input[0] in makers:
            return ""
        inside = {t.name for t in branch.initializer}
        return "" if maker.input[0] in inside else str(maker.input[0])
