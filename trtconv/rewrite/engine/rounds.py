"""Applying rules to a model in rounds, until nothing fires any more. Pure: proto in, proto and record out."""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import onnx
from onnx import helper

from trtconv.core.errors import TrtconvError
from trtconv.core.ledger.records import LedgerEntry, NodeText, Proof, Rejected, Skipped
from trtconv.core.model.bodies import walk_nodes
from trtconv.core.progress import Progress
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.targets import Target
from trtconv.core.tensors import TensorSpec
from trtconv.plugins.description import NAMESPACE, PluginDescription
from trtconv.rewrite.engine.halves import in_float32
from trtconv.rewrite.engine.points import Points
from trtconv.rewrite.engine.proof import Prover, kind_of
from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.facts import index_model, inferred
from trtconv.rewrite.graph.fragment import cut, with_plugin_bodies
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.replacement import build_replacement
from trtconv.rewrite.graph.sayable import obstacle
from trtconv.rewrite.graph.splice import splice, write_back

# Rounds that are always allowed. More only while they neither come back to a graph that was there nor make it grow.
ROUNDS = 12
MAX_ROUNDS = 200
NOT_PROVED = Proof(None, note="the proof was switched off")


@dataclass
class RewriteRecord:
    """What happened while rules were applied. `skipped` is that of the last round, when the graph was final.

    So is `rejected`, for nodes that are still there: a later round knows more types, and tries again. `plugins` are
    the descriptions with which rules of the user's own made nodes. `needed_opset` is the opset from which every rule
    would fire that the graph's own kept from it; 0 where it kept none.
    """

    entries: list[LedgerEntry] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    plugins: dict[str, PluginDescription] = field(default_factory=dict)
    needed_opset: int = 0


def taken_back(entry: LedgerEntry, whole: Proof) -> Rejected:
    """An entry whose rewrite does not stay, as the whole graph differs with it."""
    return Rejected(entry.rule, entry.node, f"the whole graph differs with it: {whole.note}", entry.origin, whole)


@dataclass(frozen=True)
class RewriteSetting:
    """What stays the same during a run. `changed` is called, maybe often, when something was rewritten."""

    target: Target
    space: ShapeSpace
    specs: tuple[TensorSpec, ...]
    proof: bool
    changed: Callable[[], None] = lambda: None


def apply_rules(
    model: onnx.ModelProto, rules: Sequence[Rule], setting: RewriteSetting, progress: Progress, record: RewriteRecord
) -> None:
    """Apply `rules` to `model` in place, in their order, round by round until a round changes nothing."""
    prover: Prover | None = None
    rule_keys = {key for r in rules for key in r.ops}
    digests: set[bytes] = set()
    size = len(model.graph.node)
    for number in range(1, MAX_ROUNDS + 1):
        record.skipped = []
        if not _any_candidate(model.graph, rule_keys):
            return
        with _collector_paused():
            types = inferred(model)
            if prover is not None:
                prover = Prover(prover.points.moved_to(types), prover.proofs, prover.budget)
            elif setting.proof:
                prover = Prover(Points.of(types, setting.space, setting.specs))
            graph = index_model(model, setting.target, types)
            for scope in graph.scopes():
                scope.plugins = record.plugins
            if not _round(graph, rules, setting, prover, record, progress, number):
                return
            write_back(graph)
        if model.functions or any(key.startswith(f"{NAMESPACE}::") for g in graph.scopes() for key in g.by_key):
            with_plugin_bodies(model, record.plugins.values())
        if number >= ROUNDS:
            digest = hashlib.sha256(model.SerializeToString(deterministic=True)).digest()
            if digest in digests or len(model.graph.node) > 4 * size + 1000:
                break
            digests.add(digest)
    last = ", ".join(dict.fromkeys(e.rule for e in record.entries[-8:]))
    progress.warn(f"rules still fired after {number} rounds and were stopped; they undo or feed each other: {last}")


def _round(
    graph: Graph,
    rules: Sequence[Rule],
    setting: RewriteSetting,
    prover: Prover | None,
    record: RewriteRecord,
    progress: Progress,
    number: int,
) -> bool:
    """Apply each rule once everywhere; True when something was rewritten."""
    before, earlier, record.rejected = len(record.entries), record.rejected, []
    for index, rule in enumerate(rules):
        progress.phase(f"round {number}: {rule.name}", index, len(rules))
        for scope in graph.scopes():
            _apply_rule(scope, rule, prover, record)
        if len(record.entries) > before:
            setting.changed()
    handled = {(e.rule, e.node) for e in record.entries[before:]} | {(r.rule, r.node) for r in record.rejected}
    record.rejected = [*(r for r in earlier if (r.rule, r.node) not in handled), *record.rejected]
    return len(record.entries) > before


@contextmanager
def _collector_paused() -> Iterator[None]:
    """An index is a hundred thousand objects that all live until the round ends: looking for garbage is a fifth."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _any_candidate(graph: onnx.GraphProto, rule_keys: set[str]) -> bool:
    """True when some node, in bodies too, has an op type that a rule names: otherwise nothing has to be indexed."""
    for node in walk_nodes(graph.node):
        default = node.domain in ("", "ai.onnx")
        if (node.op_type if default else f"{node.domain}::{node.op_type}") in rule_keys:
            return True
        if not default and f"*::{node.op_type}" in rule_keys:
            return True
    return False


def _apply_rule(graph: Graph, rule: Rule, prover: Prover | None, record: RewriteRecord) -> None:
    for node in graph.find(*rule.ops):
        if id(node) not in graph.nodes or _is_fresh(graph, node) or not _is_used(graph, node):
            continue
        try:
            match = rule.find(graph, node)
            if isinstance(match, Found):
                _try(graph, rule, match, prover, record)
                continue
        except TrtconvError:
            raise
        except Exception as error:  # noqa: BLE001 - a rule may raise anything, and the node then stays as it is
            problem = failing(rule, node, error)
            record.skipped.append(Skipped(rule.name, node.name, problem, node.origin))
            if problem not in record.notes:
                record.notes.append(problem)
            continue
        if not isinstance(match, Skip):
            problem = f"find returned {type(match).__name__}, not Found, Skip or NOT_THIS"
            raise rule_error(rule, node, TypeError(problem))
        record.needed_opset = max(record.needed_opset, match.opset)
        if match.reason:
            record.skipped.append(Skipped(rule.name, node.name, match.reason, node.origin))


def failing(rule: Rule, node: Node, error: Exception) -> str:
    """The rule that raised `error` and where, in words: rules may be the user's own."""
    return f"the rule '{rule.name}' fails at {describe(node)}: {type(error).__name__}: {error}"


def rule_error(rule: Rule, node: Node, error: Exception) -> TrtconvError:
    """The error for a rule that does not do what a rule has to."""
    return TrtconvError(
        failing(rule, node, error),
        hint=f"--skip {rule.name} leaves it out; a rule of your own: `trtconv help write-a-rule`",
    )


def _is_fresh(graph: Graph, node: Node) -> bool:
    """True when the node, or what it uses, was made in this round, and only the next one will know its types.

    A value that was there before keeps its name and its type, so that blocks in a row need not one round each.
    """
    if node.fresh:
        return True
    for name in node.inputs:
        maker = graph.makers.get(name)
        if maker is not None and maker.fresh and graph.dims(name) is None:
            return True
    return False


def _is_used(graph: Graph, node: Node) -> bool:
    """True when some node or an output of the graph takes one of its values."""
    return any(o and (graph.users.get(o) or o in graph.outputs) for o in node.outputs)


def _try(graph: Graph, rule: Rule, match: Found, prover: Prover | None, record: RewriteRecord) -> None:
    """Build the replacement, prove it, and put it in or take it back."""
    root = match.root
    new = build_replacement(graph, f"{root.output}/{rule.name}", match.build)
    if any(graph.users.get(o) or o in graph.outputs for o in root.outputs[len(new.outputs) :] if o):
        raise rule_error(rule, root, ValueError(f"{len(new.outputs)} values for {len(root.outputs)} outputs"))
    unsayable, since = obstacle(new.nodes, graph.opset, new.dtypes)
    if unsayable:
        record.needed_opset = max(record.needed_opset, since)
        record.skipped.append(Skipped(rule.name, root.name, unsayable, root.origin))
        return
    proof = Proof(None, note=rule.unproved) if rule.unproved else NOT_PROVED
    if prover is not None and not rule.unproved:
        fragment = cut(graph, match.nodes, new)
        if rule.judged_as_float32:
            fragment = replace(fragment, before=in_float32(fragment.before))
        proof = prover(fragment, rule.tolerance, match.ranges, root.name)
        if proof.passed and proof.infinity and rule.keeps_infinities:
            proof = replace(proof, passed=False, note=proof.infinity)
        elif proof.passed and not rule.keeps_infinities:
            # Within ranges no infinity was tried.
            untried = all(i.name in match.ranges for i in fragment.inputs if not i.weight and kind_of(i) == "float")
            if proof.infinity or proof.nan or untried:
                tell_infinity(record, rule, root)
        if proof.passed is not True:
            verdict = "the proof found a difference" if proof.passed is False else "it could not be proved"
            reason = f"{verdict}: {proof.note}"
            record.rejected.append(Rejected(rule.name, root.name, reason, root.origin, proof))
            return
    before = tuple(node_text(n.proto) for n in match.nodes)
    origin = next((n.origin for n in reversed(match.nodes) if n.origin), root.origin)
    after = tuple(node_text(n.proto) for n in splice(graph, match.nodes, new, rule.name))
    record.entries.append(
        LedgerEntry(rule.name, rule.why, root.name, origin, graph.scope, before, after, proof, match.note)
    )


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


def tell_infinity(record: RewriteRecord, rule: Rule, node: Node) -> None:
    """Note once for a rule that infinities spread further than they did."""
    at = node.origin.source or node.origin.module or node.name
    spread = "with an infinity or a NaN among its inputs other outputs are NaN than before"
    note = f"{rule.name} at {at}: {spread}"
    if not any(n.startswith(f"{rule.name} at ") for n in record.notes):
        record.notes.append(note)
