"""Drawing a few nodes as SVG: layers by longest path, order within a layer by the mean of the nodes above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

_HEIGHT, _GAP_X, _GAP_Y, _PAD = 40, 22, 34, 10
_CHAR = 7.2
# The width that an edge keeps free for itself beside the nodes that it passes.
_LANE = 10.0
MOST_INPUTS = 8


def draw_nodes(nodes: Sequence[Mapping[str, Any]]) -> str:
    """An SVG of nodes (`op`, `name`, `inputs`, `outputs`, `attributes`) with an edge for each value between them."""
    nodes = [*_inputs(nodes), *nodes]
    makers = {out: i for i, node in enumerate(nodes) for out in node["outputs"]}
    before = [sorted({makers[i] for i in n["inputs"] if i in makers and makers[i] != k}) for k, n in enumerate(nodes)]
    ranks = _near_use(_ranks(before), before, [n.get("kind") == "input" for n in nodes])
    ways, ranks, above = _with_waypoints(before, ranks)
    rows = _rows(ranks, above)
    widths = [max(64.0, _CHAR * max(len(n["op"]), len(_below(n))) + 18) for n in nodes]
    widths += [_LANE] * (len(ranks) - len(nodes))
    spans = [sum(widths[i] for i in row) + _GAP_X * (len(row) - 1) for row in rows]
    width = max(spans, default=0.0) + 2 * _PAD
    places: dict[int, tuple[float, float]] = {}
    for depth, row in enumerate(rows):
        x = (width - spans[depth]) / 2
        for index in row:
            places[index] = (x, _PAD + depth * (_HEIGHT + _GAP_Y))
            x += widths[index] + _GAP_X
    height = _PAD * 2 + len(rows) * _HEIGHT + (len(rows) - 1) * _GAP_Y
    parts = [_edge(places, widths, way) for way in ways]
    parts += [_box(node, *places[i], widths[i]) for i, node in enumerate(nodes)]
    return (
        f'<svg class="graph" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'role="img" aria-label="{len(nodes)} nodes">{"".join(parts)}</svg>'
    )


def _inputs(nodes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A small box for each value that comes from outside; none when there are many."""
    produced = {out for node in nodes for out in node["outputs"]}
    names = dict.fromkeys(i for node in nodes for i in node["inputs"] if i and i not in produced)
    if len(names) > MOST_INPUTS:
        return []
    short = {n: n if len(n) <= 18 else "…" + n[-17:] for n in names}
    empty = {"inputs": (), "attributes": "", "kind": "input"}
    return [{"op": short[n], "name": n, "outputs": (n,), **empty} for n in names]


def _ranks(before: Sequence[Sequence[int]]) -> list[int]:
    """The longest path from a node without predecessors; nodes come in any order, a cycle ends the walk."""
    ranks = [0] * len(before)
    for _ in before:
        changed = False
        for index, above in enumerate(before):
            rank = max((ranks[a] + 1 for a in above), default=0)
            if rank > ranks[index] and rank < len(before):
                ranks[index], changed = rank, True
        if not changed:
            break
    return ranks


def _near_use(ranks: Sequence[int], before: Sequence[Sequence[int]], is_input: Sequence[bool]) -> list[int]:
    """The ranks with every input right above the first node that reads it."""
    placed = list(ranks)
    for index in (i for i, is_input_node in enumerate(is_input) if is_input_node):
        users = [ranks[b] for b, above in enumerate(before) if index in above]
        placed[index] = max(0, min(users, default=1) - 1)
    return placed


def _with_waypoints(
    before: Sequence[Sequence[int]], ranks: Sequence[int]
) -> tuple[list[list[int]], list[int], list[list[int]]]:
    """Edges as ways over a waypoint in each rank between, so that no edge runs behind a node; ranks; what is above."""
    ways, wider = [], list(ranks)
    above: list[list[int]] = [[] for _ in before]
    for b, makers in enumerate(before):
        for a in makers:
            way = [a]
            for rank in range(ranks[a] + 1, ranks[b]):
                wider.append(rank)
                above.append([way[-1]])
                way.append(len(wider) - 1)
            above[b].append(way[-1])
            ways.append([*way, b])
    return ways, wider, above


def _rows(ranks: Sequence[int], before: Sequence[Sequence[int]]) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(max(ranks, default=-1) + 1)]
    for index, rank in enumerate(ranks):
        rows[rank].append(index)
    position: dict[int, float] = {}
    for row in rows:
        row.sort(key=lambda i: _mean([position[a] for a in before[i] if a in position]))
        for column, index in enumerate(row):
            position[index] = (column + 0.5) / len(row)
    return rows


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.5


def _below(node: Mapping[str, Any]) -> str:
    text = str(node.get("attributes") or "")
    return text if len(text) <= 26 else text[:25] + "…"


def _box(node: Mapping[str, Any], x: float, y: float, width: float) -> str:
    below = _below(node)
    middle = x + width / 2
    lines = [f'<text x="{middle:.1f}" y="{y + (17 if below else 25):.1f}" class="op">{escape(node["op"])}</text>']
    if below:
        lines.append(f'<text x="{middle:.1f}" y="{y + 32:.1f}" class="attributes">{escape(below)}</text>')
    kind = node.get("kind", "node")
    about = (node["op"], node.get("name", ""), node.get("attributes", ""), "-> " + ", ".join(node["outputs"]))
    title = node["name"] if kind == "input" else "\n".join(a for a in about if a)
    return (
        f'<g class="{kind}"><title>{escape(title)}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_HEIGHT}" rx="6" class="{family(node["op"])}"/>'
        f"{''.join(lines)}</g>"
    )


def _edge(places: Mapping[int, tuple[float, float]], widths: Sequence[float], way: Sequence[int]) -> str:
    """A curve from the first to the last, straight down through what lies between."""
    x, y = places[way[0]][0] + widths[way[0]] / 2, places[way[0]][1] + _HEIGHT
    parts = [f"M{x:.1f} {y:.1f}"]
    for index in way[1:]:
        left, top = places[index]
        to, middle = left + widths[index] / 2, (y + top) / 2
        parts.append(f"C{x:.1f} {middle:.1f} {to:.1f} {middle:.1f} {to:.1f} {top:.1f}")
        x, y = to, top
        if index != way[-1]:
            y += _HEIGHT
            parts.append(f"V{y:.1f}")
    return f'<path class="edge" d="{"".join(parts)}"/>'


_FAMILIES: Mapping[str, str] = {
    **dict.fromkeys(("Conv", "ConvTranspose", "Gemm", "MatMul", "Einsum", "LSTM", "GRU", "RNN", "Attention"), "heavy"),
    **dict.fromkeys(
        ("Relu", "Sigmoid", "Tanh", "Softmax", "Gelu", "Mish", "LeakyRelu", "PRelu", "Clip", "Erf", "HardSwish", "Elu"),
        "activation",
    ),
    **dict.fromkeys(
        ("Shape", "Gather", "Reshape", "Transpose", "Concat", "Slice", "Squeeze", "Unsqueeze", "Flatten", "Expand",
         "Split", "Pad", "Tile", "Cast", "Constant", "ConstantOfShape", "Range", "Size"), "shape",
    ),
    **dict.fromkeys(
        ("BatchNormalization", "InstanceNormalization", "LayerNormalization", "GroupNormalization"), "norm"
    ),
}  # fmt: skip


def family(op: str) -> str:
    """heavy, activation, shape, norm, pool, plugin or other: what a node is coloured by."""
    if "::" in op or op.endswith("_TRT"):
        return "plugin"
    if "Pool" in op or op.startswith("Reduce") or op == "Resize":
        return "pool"
    return _FAMILIES.get(op, "other")
