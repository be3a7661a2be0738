"""The nodes of a joined graph: what both sides share in front, Ifs for what differs, and what is merged behind them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import bodies_of, values_read, walk_nodes
from trtconv.core.model.dim_names import axis_name
from trtconv.core.model.provenance import BRANCH_SIZES_KEY
from trtconv.core.model.size_nodes import SizeWriter
from trtconv.export.branches.joined.alignment import Alignment, Pair, PairKind
from trtconv.export.branches.joined.nodes import FreeNames, copy_of, in_order, rename_values
from trtconv.export.branches.joined.numbering import is_joined, joined_outputs
from trtconv.export.branches.joined.outputs import widen_branches
from trtconv.export.branches.joined.sides import DeclaredTensor

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Further:
    """A truth of a side's own that is joined to the condition by And or Or."""

    operator: str
    name: str
    side: int
    negated: bool


@dataclass(frozen=True)
class Choice:
    """One value by a condition: `low` where it holds, else `high`."""

    low: str
    high: str
    further: Further | None = None


@dataclass
class Merging:
    """Nodes of the joined graph; `condition`, of the nodes `conditions`, is true where the low side holds."""

    alignment: Alignment
    condition: str
    conditions: list[onnx.NodeProto]
    writer: SizeWriter
    nested: bool
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    types: dict[str, DeclaredTensor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sides = (self.alignment.low, self.alignment.high)
        self.results: dict[Pair, str] = {}
        self.merged: tuple[dict[str, str], dict[str, str]] = ({}, {})
        # What is computed in the main graph, and its names there: a side's own values, and those of both by number.
        self.outer: tuple[dict[str, str], dict[str, str]] = ({}, {})
        # The same of what reads no merged value: it is what the side computes, whichever side is taken.
        self.plain: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self.shared: dict[int, str] = {}
        self.names = FreeNames({n for s in self.sides for n in (*s.makers, *s.weights)})
        self.written: set[Pair] = set()
        self.flag = ""

    def merge(self, *, apart: bool) -> list[str]:
        """Fill `nodes`, in order; the names of the outputs. With `apart` each choice is an If of its own.

        Raises CrossingError where the nodes have no order.
        """
        needed = self._needed()
        for pair in needed:
            self._name(pair)
        for pair in needed:
            self._write(pair)
        choices = {p: self._choice(p) for p in needed if self._kind(p) is PairKind.CHOSEN}
        if not self.nested:
            self._take_ifs_out(choices.values())
        groups: dict[tuple[Further | None, Pair | None], list[Pair]] = {}
        for pair, choice in choices.items():
            group = (choice.further, pair if apart else None)
            groups.setdefault(group, []).append(pair)
        for pairs in groups.values():
            self._write_if(pairs, [choices[p] for p in pairs])
        self._write_shared()
        self.nodes = in_order([*self.writer.nodes, *self.nodes])
        return [self.results[p] for p in self.alignment.roots]

    def _kind(self, pair: Pair) -> PairKind:
        return self.alignment.pairs[pair].kind

    def _needed(self) -> list[Pair]:
        needed = dict.fromkeys([*self.alignment.roots, *self.alignment.inner])
        waiting = list(needed)
        while waiting:
            pair = waiting.pop()
            if self._kind(pair) is PairKind.MERGED:
                reads = self.alignment.inputs(pair)
                if self.alignment.pairs[pair].sizes_of is not None:
                    del reads[1]
                further = [p for p in reads if p not in needed]
                needed.update(dict.fromkeys(further))
                waiting += further
        return list(needed)

    def _name(self, pair: Pair) -> None:
        """Say what the pair is called in the joined graph."""
        kind = self._kind(pair)
        if kind is PairKind.SHARED:
            self.results[pair] = self._shared_name(0, pair[0])
        elif kind is PairKind.MERGED:
            self.results[pair] = self.names.new(pair[0])
        elif kind is PairKind.CHOSEN:
            self.results[pair] = self.names.new(f"{pair[0]}/chosen")
        if kind in (PairKind.MERGED, PairKind.CHOSEN):
            self.types[self.results[pair]] = self._type(pair)
        if kind is PairKind.MERGED:
            for names, name in zip(self.merged, pair, strict=True):
                names.setdefault(name, self.results[pair])

    def _write(self, pair: Pair) -> None:
        """Write the node of a merged pair, and of sizes."""
        kind = self._kind(pair)
        if kind is PairKind.BLENDED:
            self._result(pair)
        if kind is not PairKind.MERGED:
            return
        low, high = (side.makers[name] for side, name in zip(self.sides, pair, strict=True))
        key = (low.output[0], high.output[0])
        if key in self.written:
            return
        self.written.add(key)
        outputs = [
            self.results.get((a, b)) or self.names.new(f"{a}/unread")
            for a, b in zip(low.output, high.output, strict=True)
        ]
        reads = iter(self.alignment.inputs(pair))
        side = self.alignment.pairs[pair].sizes_of
        copy = copy_of(high if side else low)
        if side is None:
            copy.input[:] = [self._result(next(reads)) if name else "" for name in low.input]
        else:
            sizes = copy.input[1]
            self._take_out(side, sizes, plain=True)
            copy.input[:] = [self._result(next(reads)), self._main_name(side, sizes, plain=True)]
        copy.output[:] = outputs
        self.nodes.append(self.names.call(copy))

    def _result(self, pair: Pair) -> str:
        if pair not in self.results:
            self.results[pair] = self._blend(pair)
        return self.results[pair]

    def _blend(self, pair: Pair) -> str:
        for index, name in enumerate(pair):
            self._take_out(index, name)
        self.flag = self.flag or self.writer.flag(self.condition, {o: n for n in self.conditions for o in n.output})
        low, high = (self._main_name(i, n) for i, n in enumerate(pair))
        return self.writer.choose(self.flag, low, high)

    def _type(self, pair: Pair) -> DeclaredTensor:
        first, second = (side.types.get(name) for side, name in zip(self.sides, pair, strict=True))
        if first is None or second is None or len(first.dims) != len(second.dims):
            return DeclaredTensor(0, ())
        return DeclaredTensor(first.element, tuple(self.alignment.common.of(list(first.dims), list(second.dims))))

    def _choice(self, pair: Pair) -> Choice:
        """What the pair is chosen by; where one side chose before, and one of its values is the other side's, once."""
        for index, name in enumerate(pair):
            node = self.sides[index].makers.get(name)
            if node is None or not is_joined(node):
                continue
            other = self.sides[1 - index].numbering.of(pair[1 - index])
            branches = joined_outputs(node, list(node.output).index(name))
            numbers = [self.sides[index].numbering.of(b) for b in branches]
            if other not in numbers:
                continue
            same = numbers.index(other)
            own = branches[1 - same]
            self._take_out(index, node.input[0])
            # Low: its own where the condition and the truth hold. High: the low one where either holds.
            further = Further("Or" if index else "And", node.input[0], index, (same == 0) is (index == 0))
            return Choice(pair[0], own, further) if index else Choice(own, pair[1], further)
        return Choice(*pair)

    def _condition_of(self, choice: Choice) -> str:
        further = choice.further
        if further is None:
            return self.condition
        truth = self._main_name(further.side, further.name)
        if further.negated:
            truth = self.writer.node("Not", truth)
        return self.writer.node(further.operator, self.condition, truth)

    def _take_ifs_out(self, choices: Iterable[Choice]) -> None:
        """An If stands before the If that chooses it; no TensorRT takes one in another."""
        for choice in choices:
            for index, name in enumerate((choice.low, choice.high)):
                if any(n.op_type == "If" for n in self._cone(index, [name])):
                    self._take_out(index, name)

    def _take_out(self, index: int, name: str, *, plain: bool = False) -> None:
        """Compute a value of a side in the main graph."""
        side, names = self.sides[index], (self.plain if plain else self.outer)[index]
        cone = self._cone(index, [name], plain=plain)
        for node in cone:
            names.update({o: self.names.new(o) for o in node.output if o})
        for node in cone:
            self.nodes.append(self._renamed(index, node, names, plain=plain))
            self.types.update({names[o]: side.types[o] for o in node.output if o in side.types})

    def _cone(self, index: int, names: Iterable[str], *, plain: bool = False) -> list[onnx.NodeProto]:
        """A side's own nodes that values need, in no order; what the main graph has is not among them."""
        side = self.sides[index]
        waiting, nodes = list(names), {}
        while waiting:
            name = waiting.pop()
            if self._main_name(index, name, plain=plain) or name not in side.makers:
                continue
            node = side.makers[name]
            if node.output[0] not in nodes:
                nodes[node.output[0]] = node
                waiting += values_read(node)
        return list(nodes.values())

    def _main_name(self, index: int, name: str, *, plain: bool = False) -> str:
        """What a side's value is called in the main graph; empty where it is not there."""
        side = self.sides[index]
        name = side.through(name)
        if side.is_outside(name):
            return name
        conditional = "" if plain else self.outer[index].get(name) or self.merged[index].get(name)
        return self.plain[index].get(name) or conditional or self._shared_name(index, name)

    def _shared_name(self, index: int, name: str) -> str:
        """The name of a value of both sides, which is from now on computed once; empty for one of this side alone."""
        side, other = self.sides[index], self.sides[1 - index]
        name = side.through(name)
        if side.is_outside(name):
            return name
        number = side.numbering.of(name)
        if number not in side.names or number not in other.names:
            return ""
        if number not in self.shared:
            self.shared[number] = self.names.new(self.alignment.low.names[number])
        return self.shared[number]

    def _write_shared(self) -> None:
        low = self.alignment.low
        written: set[str] = set()
        while waiting := [n for n in self.shared if low.makers[low.names[n]].output[0] not in written]:
            for number in waiting:
                node = low.makers[low.names[number]]
                if node.output[0] in written:
                    continue
                written.add(node.output[0])
                own = {o: self._shared_name(0, o) for o in node.output if o}
                copy = self._renamed(0, node, own, plain=True)
                if is_joined(node):
                    high = self.sides[1]
                    widen_branches(copy, high.makers[high.names[number]], self.alignment.common)
                self.nodes.append(copy)
                for output, name in own.items():
                    types = [s.types.get(s.names.get(low.numbering.of(output), "")) for s in self.sides]
                    if types[0] is not None and types[0] == types[1]:
                        self.types[name] = types[0]

    def _write_if(self, pairs: list[Pair], choices: list[Choice]) -> None:
        import onnx

        names = [self.results[p] for p in pairs]
        chosen = onnx.helper.make_node("If", [self._condition_of(choices[0])], names, f"branch{len(self.names.values)}")
        sizes: dict[str, list[list[int | str]]] = {}
        for index, key in enumerate(("then", "else")):
            own = [choice.high if index else choice.low for choice in choices]
            body = onnx.GraphProto(name=f"{key}{len(self.names.values)}")
            renamed: dict[str, str] = {}
            cone = self._cone(index, own)
            for node in cone:
                renamed.update({o: self.names.new(o) for o in node.output if o})
            body.node.extend(in_order([self._renamed(index, node, renamed) for node in cone]))
            sizes[key] = []
            for name, pair in zip(own, pairs, strict=True):
                body.output.append(self._given(index, name, pair, body, renamed))
                common = self.types[self.results[pair]].dims
                dims = self._dims_in_branch(index, name, pair)
                sizes[key].append([c or d for c, d in zip(common, dims, strict=True)] if common else list(dims))
            chosen.attribute.append(onnx.helper.make_attribute(f"{key}_branch", body))
        chosen.metadata_props.add(key=BRANCH_SIZES_KEY, value=json.dumps(sizes))
        self.nodes.append(chosen)

    def _given(
        self, index: int, name: str, pair: Pair, body: onnx.GraphProto, renamed: Mapping[str, str]
    ) -> onnx.ValueInfoProto:
        """The output of a branch."""
        import onnx

        inner = renamed.get(self.sides[index].through(name)) or self._main_name(index, name)
        if inner not in renamed.values() or inner in [v.name for v in body.output]:
            # A node of the branch makes it, and one output each.
            source, inner = inner, self.names.new(f"{name}/given")
            body.node.append(onnx.helper.make_node("Identity", [source], [inner], inner))
        result = self.results[pair]
        declared = self.sides[index].types.get(pair[index])
        if declared is None:
            return onnx.ValueInfoProto(name=inner)
        other = self.sides[1 - index].types.get(pair[1 - index])
        common = other.dims if other is not None and len(other.dims) == len(declared.dims) else declared.dims
        dims = [
            a if a == b and (isinstance(a, int) or a.isidentifier()) else axis_name(result, axis)
            for axis, (a, b) in enumerate(zip(declared.dims, common, strict=True))
        ]
        return onnx.helper.make_tensor_value_info(inner, declared.element, dims)

    def _dims_in_branch(self, index: int, name: str, pair: Pair) -> tuple[int | str, ...]:
        """The dims of what a branch gives; a value of an earlier If has those that were recorded there."""
        side = self.sides[index]
        if name == pair[index]:
            declared = side.types.get(name)
            return declared.dims if declared else ()
        node = side.makers[pair[index]]
        output = list(node.output).index(pair[index])
        key = ("then", "else")[joined_outputs(node, output).index(name)]
        recorded = json.loads(next(p.value for p in node.metadata_props if p.key == BRANCH_SIZES_KEY))
        return tuple(recorded[key][output])

    def _renamed(
        self, index: int, node: onnx.NodeProto, own: Mapping[str, str], *, plain: bool = False
    ) -> onnx.NodeProto:
        """A copy of a side's node that reads what the main graph has, and what its own branch calls `own`."""
        names = {}
        for name in values_read(node):
            source = self.sides[index].through(name)
            names[name] = own.get(source) or own.get(name) or self._main_name(index, source, plain=plain) or source
        copy = copy_of(node)
        # Of an If that stands in two places each has values of its own: what is unread in one may be read in the other.
        inner = (part for body in bodies_of(copy) for part in walk_nodes(body.node))
        names |= {o: self.names.new(o) for part in inner for o in part.output if o}
        rename_values(copy, names | {o: own[o] for o in copy.output if o in own})
        return self.names.call(copy)
