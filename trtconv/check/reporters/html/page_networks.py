"""The whole network before and after the rewrite, for the page; what was replaced, and by what, is marked."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trtconv.check.reporters.html.network.data import ENDS, DrawnGraph, read_graph
from trtconv.check.reporters.html.network.page import embed_json, graph_data
from trtconv.core.artifacts import beside
from trtconv.core.errors import TrtconvError
from trtconv.core.ledger.records import LedgerEntry

# Two of these make a page of about 3 MiB.
MOST_NODES = 3000


def network_pair(subject: Path, entries: Sequence[LedgerEntry]) -> list[dict[str, Any]]:
    """Before and after: `which`, `title`, `nodes`, `edges`, `marked`, `data`; empty where a file is missing."""
    exported, rewritten = (subject.with_name(beside(subject, s).name) for s in (".onnx", ".trt.onnx"))
    if not exported.is_file() or not rewritten.is_file():
        return []
    try:
        before, after = read_graph(exported), read_graph(rewritten)
    except TrtconvError:
        return []
    if max(len(before.nodes), len(after.nodes)) > MOST_NODES:
        return []
    return [_drawn("before", _with_replaced(before, entries)), _drawn("after", after)]


def _with_replaced(graph: DrawnGraph, entries: Sequence[LedgerEntry]) -> DrawnGraph:
    """The exported graph, whose nodes carry the rule that replaced them."""
    rules = {node.name: entry.rule for entry in entries for node in entry.before}
    nodes = tuple(
        dataclasses.replace(node, rule=rules[node.name], facts=(("replaced by rule", rules[node.name]), *node.facts))
        if node.name in rules and node.op not in ENDS
        else node
        for node in graph.nodes
    )
    return dataclasses.replace(graph, nodes=nodes)


def _drawn(which: str, graph: DrawnGraph) -> dict[str, Any]:
    return {
        "which": which,
        "title": graph.title,
        "nodes": graph.node_count,
        "edges": len(graph.edges),
        "marked": sum(bool(node.rule) for node in graph.nodes),
        "data": embed_json(graph_data(graph)),
    }
