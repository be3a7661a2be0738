"""Applying rules to a model in rounds, until nothing fires any more. Pure: proto in, proto and record out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import onnx
from onnx import helper

from trtconv.core.errors import TrtconvError
from trtconv.core.progress import Progress
from trtconv.core.shapes import ShapeSpace
from trtconv.core.targets import Target
from trtconv.core.tensors import TensorSpec
from trtconv.rewrite.builder import Builder
from trtconv.rewrite.facts import index_model
from trtconv.rewrite.fragment import cut, with_plugin_bodies
from trtconv.rewrite.graph import Graph, Node
from trtconv.rewrite.halves import in_float32
from trtconv.rewrite.points import Points
from trtconv.rewrite.proof import Prover
from trtconv.rewrite.result import Entry, NodeText, Proof, Rejected, Skipped
from trtconv.rewrite.rule import Found, Rule
from trtconv.rewrite.splice import splice, write_back

MAX_ROUNDS = 12
NOT_PROVED = Proof(None, note="the proof was switched off")


@dataclass
class Record:
    """What happened while rules were applied. `skipped` is that of the last round, when the graph was final."""

    entries: list[Entry] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    refused: set[tuple[str, str]] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Setting:
    """What stays the same during a run."""

    target: Target
    space: ShapeSpace
    specs: tuple[TensorSpec, ...]
    proof: bool


def apply_rules(
    model: onnx.ModelProto, rules: Sequence[Rule], setting: Setting, progress: Progress, record: Record
) -> None:
    """Apply `rules` to `model` in place, in their order, round by round until a round changes nothing."""
    points: Points | None = None
    wanted = {key for r in rules for key in r.ops}
    for round_number in range(MAX_ROUNDS):
        if not _any_candidate(model.graph, wanted):
            record.skipped = []
            return
        graph = index_model(model, setting.target)
        if setting.proof:
            points = points.moved_to(model) if points else Points.of(model, setting.space, setting.specs)
        prover = Prover(points) if points else None
        record.skipped = []
        before = len(record.entries)
        for number, rule in enumerate(rules):
            progress.phase(f"round {round_number + 1}: {rule.name}", number, len(rules))
            for scope in graph.scopes():
                _apply_rule(scope, rule, prover, record)
        if len(record.entries) == before:
            return
        write_back(graph)
        with_plugin_bodies(model)
    progress.warn(f"rules still fired after {MAX_ROUNDS} rounds; two of them undo each other")


def _any_candidate(graph: onnx.GraphProto, wanted: set[str]) -> bool:
    """True when some node, in bodies too, has an op type that a rule names: otherwise nothing has to be indexed."""
    for node in graph.node:
        default = node.domain in ("", "ai.onnx")
        if (node.op_type if default else f"{node.domain}::{node.op_type}") in wanted:
            return True
        if not default and f"*::{node.op_type}" in wanted:
            return True
        for attribute in node.attribute:
            if attribute.HasField("g") and _any_candidate(attribute.g, wanted):
                return True
            if any(_any_candidate(g, wanted) for g in attribute.graphs):
                return True
    return False


def _apply_rule(graph: Graph, rule: Rule, prover: Prover | None, record: Record) -> None:
    for node in graph.find(*rule.ops):
        if id(node) not in graph.nodes or (rule.name, node.name) in record.refused or _is_fresh(graph, node):
            continue
        if not any(graph.users.get(o) or o in graph.outputs for o in node.outputs if o):
            continue
        with naming(rule, node):
            found = rule.find(graph, node)
        if isinstance(found, Found):
            _try(graph, rule, found, prover, record)
        elif found.reason:
            record.skipped.append(Skipped(rule.name, node.name, found.reason, node.origin))


@contextmanager
def naming(rule: Rule, node: Node) -> Iterator[None]:
    """Turn whatever a rule raises into an error that names it: rules may be the user's own."""
    try:
        yield
    except TrtconvError:
        raise
    except Exception as error:
        raise TrtconvError(
            f"the rule '{rule.name}' fails at {describe(node)}: {type(error).__name__}: {error}",
            hint=f"--skip {rule.name} leaves it out; a rule of your own: docs/how-to/write-a-rule.md",
        ) from error


def _is_fresh(graph: Graph, node: Node) -> bool:
    """True when the node, or what it uses, was made in this round: the next one knows its types."""
    makers = (graph.makers.get(i) for i in node.inputs)
    return node.fresh or any(m is not None and m.fresh for m in makers)


def _try(graph: Graph, rule: Rule, found: Found, prover: Prover | None, record: Record) -> None:
    """Build the replacement, prove it, and put it in or take it back."""
    root = found.root
    builder = Builder(graph, f"{root.output}/{rule.name}")
    with naming(rule, root):
        made = found.build(builder)
    values = [made] if isinstance(made, str) else list(made)
    proof = Proof(None, note=rule.unproved) if rule.unproved else NOT_PROVED
    if prover is not None and not rule.unproved:
        fragment = cut(graph, found.nodes, builder, values, graph.opset)
        if rule.judged_as_float32:
            fragment = replace(fragment, before=in_float32(fragment.before))
        proof = prover(fragment, rule.tolerance, found.ranges)
        if proof.passed is not True:
            verdict = "the proof found a difference" if proof.passed is False else "it could not be proved"
            reason = f"{verdict}: {proof.note}"
            record.refused.add((rule.name, root.name))
            record.rejected.append(Rejected(rule.name, root.name, reason, root.origin, proof))
            return
    before = tuple(node_text(n.proto) for n in found.nodes)
    origin = next((n.origin for n in reversed(found.nodes) if n.origin), root.origin)
    new = splice(graph, found.nodes, builder, values, rule.name)
    after = tuple(node_text(n.proto) for n in new)
    record.entries.append(Entry(rule.name, rule.why, root.name, origin, graph.scope, before, after, proof, found.note))


def node_text(proto: onnx.NodeProto) -> NodeText:
    """A node as text for the ledger; tensors and bodies are only named."""
    op = f"{proto.domain}::{proto.op_type}" if proto.domain not in ("", "ai.onnx") else proto.op_type
    shown = []
    for attribute in proto.attribute:
        if attribute.type == onnx.AttributeProto.TENSOR:
            shown.append(f"{attribute.name}=tensor{list(attribute.t.dims)}")
        elif attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
            shown.append(f"{attribute.name}=graph")
        else:
            value = helper.get_attribute_value(attribute)
            shown.append(f"{attribute.name}={value.decode() if isinstance(value, bytes) else value}")
    return NodeText(op, proto.name, tuple(proto.input), tuple(proto.output), " ".join(shown))


def describe(node: Node) -> str:
    """A node for messages: op, name, origin."""
    return f"{node.key} '{node.name}'" + (f" of {node.origin}" if node.origin else "")
