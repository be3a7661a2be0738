"""Ifs whose branches give other sizes: both are cut or padded to those of the branch that is taken.

`if t % 8: x = F.pad(x, (0, 8 - t % 8))` in one branch leaves the other with other sizes at every size, also where it
is not taken. TensorRT 8.6 takes the sizes of one branch for the other, and TensorRT-RTX 1.7 ends its build with a
failed check (`op->input_size()`), also where the sizes are the same and it does not see it. What an output has to be is
worked out in front of the If, from the dims that an export records for each side or that a file declares; a Pad at the
end of each branch, by nothing where it is taken, and a Reshape give both the same.
"""

from __future__ import annotations

import json
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
from trtconv.rewrite.engine.rounds import RewriteRecord, RewriteSetting, node_text
from trtconv.rewrite.graph.branches import BRANCHES, branch_of, up_to_branch
from trtconv.rewrite.lowering.branch_sizes import points_beside_turns
from trtconv.rewrite.lowering.defined_branches import LentSizes, define_branches, index_of
from trtconv.rewrite.lowering.selected_branches import costs_little, select

NAME = "level-branches"
WHY = "TensorRT wants one size of both branches of an If, also of the one that is not taken."
# Of Unsqueeze, and of Pad on whole numbers.
LEAST_OPSET = 13
SIDES = {True: "then", False: "else"}
# The sample points at the ends of the ranges, and the usual one.
ENDS = ("min", "opt", "max")
Dims = list[int | str]


def level_branches(model: onnx.ModelProto, setting: RewriteSetting, record: RewriteRecord) -> onnx.ModelProto:
    """The model, in place, with branches of one size; an If of which the sizes cannot be written stays as it is."""
    if opset_of(model) < LEAST_OPSET:
        return model
    names = {n for spec in setting.specs for n in spec.names()}
    light: onnx.ModelProto | None = None
    visited: set[tuple[str, ...]] = set()
    # What was lent to the branch that an If comes from, by its outputs.
    lent_dims: dict[tuple[str, ...], Mapping[str, str]] = {}
    turn = 0
    while (node := _first_if(model, visited)) is not None:
        outputs = tuple(node.output)
        visited.add(outputs)
        light = light or without_weights(model)
        uneven = _uneven_outputs(light, node, names)
        leveling = _Leveling(model, node, setting, f"trtconv_level_{turn}_", lent_dims.get(outputs))
        if not (setting.proof and uneven) and not leveling.recorded:
            # What a foreign file says of its sizes need not be so.
            continue
        before = (node_text(node),)
        origin, name = origin_of(node), node.name or node.output[0]
        try:
            sizes = [leveling.sizes(output) for output in uneven]
        except (UnwritableSizeError, SyntaxError):
            continue
        is_little = costs_little(model, node)
        lent = leveling.define(is_little=is_little)
        for output, size in zip(uneven, sizes, strict=True):
            leveling.fit(output, size)
        leveling.put_in_front()
        model, node = leveling.model, leveling.node
        after, note = [node], []
        if uneven:
            shown = ", ".join(repr(outputs[o]) for o in uneven)
            note.append(f"{shown}: both branches padded to the sizes of the one taken")
        for branch in (lent or {}).values():
            note.append(f"a branch gets the sizes of {branch.point} where it is not taken, to be defined there")
        if is_little and lent is not None:
            prefix = f"trtconv_taken_{turn}_"
            after = select(model, node, prefix)
            for inner in [n for n in after if n.op_type == "If"]:
                side = inner.output[0].startswith(f"{prefix}then")
                if side in lent:
                    lent_dims[tuple(inner.output)] = lent[side].dims
                elif outputs in lent_dims:
                    lent_dims[tuple(inner.output)] = lent_dims[outputs]
            note.append("both branches are computed, and a Where takes one")
        elif not uneven and not lent:
            continue
        texts = tuple(map(node_text, after))
        proof = Proof(None, note="compared with the whole graph")
        record.entries.append(LedgerEntry(NAME, WHY, name, origin, "", before, texts, proof, "; ".join(note)))
        turn += 1
        light = None
    if turn:
        del model.graph.value_info[:]
    return model


def _first_if(model: onnx.ModelProto, visited: Collection[tuple[str, ...]]) -> onnx.NodeProto | None:
    return next((n for n in model.graph.node if n.op_type == "If" and tuple(n.output) not in visited), None)


def _uneven_outputs(light: onnx.ModelProto, node: onnx.NodeProto, names: Collection[str]) -> list[int]:
    """The outputs of an If but those of which both branches have the same sizes, as inference names them."""
    index = next(i for i, n in enumerate(light.graph.node) if n.output == node.output)
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
        dims: Mapping[str, str] | None,
    ) -> None:
        self.model, self.node, self.setting, self.prefix = model, node, setting, prefix
        # Nothing is put into the model before all of it is written.
        self.scratch = onnx.GraphProto()
        self.writer = SizeWriter(setting.specs, self.scratch, f"{prefix}size_", dims)
        self.flag = ""
        self.outputs = list(node.output)
        self.is_in_front = False
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
        self.writer.put_before(self.model.graph, index_of(self.model, self.node))
        self.node = self._current()

    def define(self, *, is_little: bool) -> dict[bool, LentSizes] | None:
        """Let both branches run where they are not taken; what was lent to them for it, or None where they do not.

        At all sample points where the target or a Where needs that; else at the ends of the ranges, at which a builder
        works out shapes.
        """
        if external_files(self.model):
            return None
        points = points_beside_turns(self.model, self.node.input[0], self.setting)
        if not (is_little or self.setting.target.facts.branches_of_one_size):
            points = [p for p in points if p.label in ENDS]
        flag, count = self.flag, len(self.writer.nodes)
        result = define_branches(self.model, self.node, self.setting, self.writer, self._is_first, points)
        if result is None:
            self.flag = flag
            del self.writer.nodes[count:]
            return None
        self.model, lent = result
        self.is_in_front = bool(lent)
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
        return self._written(dim)

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
