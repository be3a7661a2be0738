"""Ifs whose condition is the same in the whole shape space: the branch that is taken, written out in their place.

The TorchScript exporter writes an If for every `squeeze` and every question about a rank, one inside another, and no
TensorRT takes nested ones. What such an If asks is a constant, or is worked out from shapes alone: then it is
evaluated at all joint sizes of the space, and where the answer is one and the same the branch goes in
place of the If. The whole graph is compared afterwards. The rule `known-branch` needs no run, but neither looks into
nested branches nor behind an If whose branches differ in rank.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
import onnx
from onnx import helper

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.effort import Effort
from trtconv.core.errors import TrtconvError
from trtconv.core.ledger.records import LedgerEntry, Proof
from trtconv.core.model.bodies import leading_to, nodes_before, replace_nodes, values_read
from trtconv.core.model.file import external_files
from trtconv.core.model.provenance import origin_of
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.proof.joint_sizes import count_sizes, covering_sizes
from trtconv.proof.points import batch_dims, sample_points
from trtconv.proof.size_arithmetic import SizeArithmetic, truths
from trtconv.proof.size_elements import NotSizesError
from trtconv.rewrite.engine.rounds import RewriteRecord, RewriteSetting, node_text
from trtconv.rewrite.graph.branches import branch_of, write_out

NAME = "settled-ifs"
WHY = "No TensorRT takes an If inside an If; one that asks the same of every size needs no If."
# The size of what these give depends on values, and they draw numbers: no shape behind them is one of sizes alone.
BY_DATA = ("NonZero", "NonMaxSuppression", "Unique", "Compress", "RandomNormal", "RandomUniform", "Loop", "Bernoulli")
MOST_TURNS = 64
# Where a condition is run, and not evaluated: sizes at both ends of each dim, then others until the seconds are over.
SCANNED = 6
FEWEST = 40
SECONDS = 2.0
# Joint sizes of which none is left out where nothing but sizes is computed, at a tenth of a millisecond each: what is
# asked may hold at one of thousands.
MOST_RUN = 1 << 16


def settle_ifs(model: onnx.ModelProto, setting: RewriteSetting, record: RewriteRecord) -> onnx.ModelProto:
    """The model without Ifs of one answer, in place; each is an entry of the record."""
    if not any(n.op_type == "If" for n in model.graph.node) or external_files(model):
        return model
    inlined = 0
    for _ in range(MOST_TURNS):
        answers = _answers(model, setting, record)
        if not answers:
            break
        for index in sorted(answers, reverse=True):
            node = model.graph.node[index]
            before = (node_text(node),)
            nodes = write_out(model.graph, node, branch_of(node, answers[index]), f"if{inlined}")
            inlined += 1
            entry = LedgerEntry(
                NAME,
                WHY,
                node.name or node.output[0],
                origin_of(node),
                "",
                before,
                tuple(map(node_text, nodes)),
                Proof(None, note="compared with the whole graph"),
                f"the condition is {str(answers[index]).lower()} at every size",
            )
            record.entries.append(entry)
            replace_nodes(model.graph, [*model.graph.node[:index], *nodes, *model.graph.node[index + 1 :]])
    if inlined:
        # Recorded types of what an If gave may be those of the other branch.
        del model.graph.value_info[:]
    return model


def _answers(model: onnx.ModelProto, setting: RewriteSetting, record: RewriteRecord) -> dict[int, bool]:
    """By index of an If of the main graph, the one answer that its condition gives."""
    makers = {o: n for n in model.graph.node for o in n.output if o}
    constants = {t.name for t in model.graph.initializer} - {i.name for i in model.graph.input}
    conditions = {
        i: n.input[0]
        for i, n in enumerate(model.graph.node)
        if n.op_type == "If" and _by_size(n.input[0], makers, constants)
    }
    answers = {n: _truths(model, n, setting, record) for n in dict.fromkeys(conditions.values())}
    return {i: next(iter(answers[n])) for i, n in conditions.items() if len(answers[n]) == 1}


def _truths(model: onnx.ModelProto, name: str, setting: RewriteSetting, record: RewriteRecord) -> set[bool]:
    """What a condition comes to at all joint sizes; where its shapes are those of inner values, at those tried."""
    try:
        return truths(model.graph, name, setting.specs, setting.space)
    except NotSizesError:
        pass
    answers: set[bool] = set()
    depends, fewest = list(setting.space), FEWEST
    with suppress(NotSizesError):
        dims = SizeArithmetic(model.graph, setting.specs).dims(name)
        depends = [n for n in setting.space if n in dims]
        fewest = MOST_RUN
    total = count_sizes(setting.space, depends)
    effort, tried = Effort(SECONDS, fewest), 0
    try:
        run = OnnxRuntimeRunner(leading_part(model, [name]).SerializeToString())
        for sizes in _sizes(setting.space, setting.specs, depends):
            # Of what is asked about sizes the values are nothing.
            inputs = {s.name: np.zeros(s.shape(sizes), s.dtype.numpy()) for s in setting.specs}
            answers.add(bool(np.asarray(run(inputs)[name]).reshape(-1)[0]))
            tried += 1
            if len(answers) > 1 or not effort.step():
                break
    except TrtconvError:
        return set()
    if tried < total and len(answers) == 1:
        note = f"the condition '{name}' of an If was worked out at {tried:,} of {total:,} joint sizes"
        record.notes += [note] if note not in record.notes else []
    return answers


def _sizes(space: ShapeSpace, specs: Sequence[TensorSpec], depends: Sequence[str]) -> Iterator[dict[str, int]]:
    """The sizes at which a model is compared, those next to the ends of each dim, then all others while time lasts.

    Each joint size of the dims `depends` comes once; the others have their opt sizes, but where the model is compared.
    """
    compared = [dict(p.dims) for p in sample_points(space, specs) if p.values == "random"]
    opt = space.pick("opt")
    ends = [{**opt, n: size} for n in depends for size in _ends(space[n].values())]
    part = ShapeSpace(tuple((n, space[n]) for n in depends))
    rest = ({**opt, **sizes} for sizes in covering_sizes(part, batch_dims(specs)))
    emitted: set[tuple[int, ...]] = set()
    for sizes in itertools.chain(compared, ends, rest):
        key = tuple(sizes[n] for n in depends)
        if key not in emitted:
            emitted.add(key)
            yield sizes


def _ends(values: range) -> list[int]:
    return [*values[:SCANNED], *values[-SCANNED:]]


def _by_size(name: str, makers: dict[str, onnx.NodeProto], constants: set[str]) -> bool:
    """True when a value is worked out from constants and shapes alone."""
    waiting, visited = [name], {name}
    while waiting:
        value = waiting.pop()
        if value in constants:
            continue
        node = makers.get(value)
        if node is None or node.op_type in BY_DATA or node.op_type == "If":
            return False
        if node.op_type in ("Shape", "Size"):
            if any(n.op_type in BY_DATA for n in nodes_before(node.input[0], makers)):
                return False
            continue
        for read in set(values_read(node)) - visited:
            visited.add(read)
            waiting.append(read)
    return True


def leading_part(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """The part of a model that makes these values, which are its outputs."""
    graph = model.graph
    nodes = leading_to(graph.node, names)
    needed = {*names, *(v for n in nodes for v in values_read(n))}
    weights = [t for t in graph.initializer if t.name in needed]
    part = helper.make_graph(nodes, graph.name, list(graph.input), [], weights)
    part.sparse_initializer.extend(graph.sparse_initializer)
    part.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    cut = helper.make_model(part, opset_imports=list(model.opset_import), ir_version=model.ir_version)
    cut.functions.extend(model.functions)
    return cut
