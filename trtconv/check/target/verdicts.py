"""The verdict on one node: supported, rewritten, plugin, refused, or wrong (taken and computed wrongly)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from trtconv.check.target.node_facts import GraphFacts, NodeFacts
from trtconv.core.model.provenance import Origin
from trtconv.core.targets import Target
from trtconv.core.targets.table import SupportTable


@dataclass(frozen=True)
class NodeVerdict:
    """`status` is supported, rewritten (by `rule`), plugin (needs `plugin`), refused or wrong; `evidence` says why."""

    node: str
    op: str
    origin: Origin
    status: str
    message: str
    remedy: str = ""
    evidence: str = ""
    rule: str = ""
    plugin: str = ""

    @classmethod
    def of(cls, node: NodeFacts, status: str, message: str, **more: str) -> NodeVerdict:
        """A verdict on a node."""
        op = f"{node.domain}::{node.op}" if node.domain else node.op
        return cls(node.name or node.outputs[0], op, node.origin, status, message, **more)

    def made_by(self, rule: str) -> NodeVerdict:
        """The same for a node that a rewrite rule made."""
        return replace(self, rule=rule, message=f"{self.message} (made by rule {rule})" if rule else self.message)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def judge_by_table(node: NodeFacts, graph: GraphFacts, target: Target, table: SupportTable) -> NodeVerdict:
    """The verdict of the target's table on a node."""
    if node.domain:
        return _foreign(node, target)
    entry = table.ops.get(node.op)
    what = f"{node.op} '{node.name or node.outputs[0]}'"
    if entry is None:
        return NodeVerdict.of(
            node,
            "refused",
            f"{target} is not known to have {what}",
            remedy="see `trtconv rules`",
            evidence=f"the table {table.name} has no entry",
        )
    if not entry.supported:
        remedy = f"see whether a rule replaces it: trtconv rewrite --target {target} --explain"
        return NodeVerdict.of(node, "refused", f"{target} lacks {what}", remedy=remedy, evidence=entry.evidence)
    if entry.since and _older(target, entry.since):
        since = ".".join(map(str, entry.since))
        return NodeVerdict.of(
            node,
            "refused",
            f"{what} came with TensorRT {since}",
            remedy=f"name the version that you have, e.g. --target tensorrt=={since}",
            evidence=entry.evidence,
        )
    verdict = _judge_construct(node, graph, target, table)
    if verdict is not None:
        return verdict
    if entry.plugin:
        return NodeVerdict.of(
            node,
            "plugin",
            f"{what} becomes TensorRT's own plugin {entry.plugin}",
            plugin=entry.plugin,
            remedy="the plugin library that comes with TensorRT has to be there at run time",
            evidence=entry.evidence,
        )
    return NodeVerdict.of(node, "supported", "supported", evidence=entry.evidence)


def _judge_construct(node: NodeFacts, graph: GraphFacts, target: Target, table: SupportTable) -> NodeVerdict | None:
    """The verdict of the first construct of the operator that the target has a problem with and the node is."""
    for construct in table.of(node.op):
        if construct.before and not _older(target, construct.before):
            continue
        if construct.matches(node, graph):
            silence_text = ", silently" if construct.effect == "wrong" else ""
            return NodeVerdict.of(
                node,
                construct.effect,
                f"{node.op} '{node.name or node.outputs[0]}': {target} {construct.problem}{silence_text}",
                remedy=construct.remedy,
                evidence=construct.evidence,
            )
    return None


def _foreign(node: NodeFacts, target: Target) -> NodeVerdict:
    what = f"{node.domain}::{node.op} '{node.name or node.outputs[0]}'"
    if not target.has_plugins:
        return NodeVerdict.of(
            node,
            "refused",
            f"{what} needs a plugin, and {target} has none",
            remedy="rewrite without plugins: trtconv rewrite --plugins never",
            evidence="TensorRT-RTX has no plugin registry; its parser ends the process when it finds a creator",
        )
    from trtconv.plugins.described.registry import PLUGINS

    ours = {p.op_type for p in PLUGINS}
    remedy = (
        "`trtconv plugins build` makes its library, which build and check then find"
        if node.op in ours
        else "name the library that has it with --plugin FILE; trtconv does not know this plugin"
    )
    return NodeVerdict.of(
        node,
        "plugin",
        f"{what} needs the plugin {node.op}",
        plugin=node.op,
        remedy=remedy,
        evidence="a node outside of ONNX's own domain",
    )


def _older(target: Target, version: tuple[int, ...]) -> bool:
    """True when a target of the same family is older than `version`; RTX and 11 have what 10 got later."""
    if target.is_rtx:
        return False
    padded_version = target.version + (0,) * max(0, 2 - len(target.version))
    return padded_version[: len(version)] < version


def refusal(node: NodeFacts, message: str, table: NodeVerdict) -> NodeVerdict:
    """A refusal in the parser's own words, with the table's remedy."""
    what = f"{node.op} '{node.name or node.outputs[0]}'"
    has_remedy = table.status in ("refused", "wrong")
    remedy = table.remedy if has_remedy else "see `trtconv rewrite --explain` for why no rule rewrote it"
    return NodeVerdict.of(node, "refused", f"{what}: {message}", remedy=remedy, evidence="the parser itself")
