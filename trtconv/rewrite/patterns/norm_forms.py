"""Reading a Euclidean norm off the graph, in every form in which people and exporters write one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.patterns.sizes import Size, dim_size, same_dim, size_element

VIEWS = ("Identity", "Cast", "Expand", "Unsqueeze", "Reshape")


@dataclass(frozen=True)
class Norm:
    """A norm as found: of which value, over which axes, epsilon and its place, and the nodes that make it.

    `place` is `none`, `outside` (norm + eps), `inside` (sqrt(sum + eps)), `clamp` (max(norm, eps)) or `clamp-inside`
    (sqrt(max(sum, eps))); `zero` gives 0 where the norm is 0.
    """

    value: str
    axes: tuple[int, ...]
    location: str = "none"
    epsilon: float = 0.0
    nodes: tuple[Node, ...] = ()
    canonical: bool = True

    def after(self, *nodes: Node, canonical: bool = True) -> Norm:
        """The same norm with nodes behind it; `canonical` stays True only when it was and is."""
        return replace(self, nodes=(*self.nodes, *nodes), canonical=self.canonical and canonical)


def read_norm(graph: Graph, name: str) -> Norm | None:
    """The norm that this value is, with the rank of what it is the norm of; None when it is none."""
    norm = _with_epsilon(graph, name, _bare, "outside", "clamp")
    return norm if norm is not None and _same_rank(graph, norm) else None


def read_inverse(graph: Graph, name: str, depth: int = 2) -> tuple[Norm, tuple[str, ...]] | None:
    """1 / norm, scale / norm, scale * (1 / norm) or (sum of squares) ** -0.5: the norm, and the constant scales."""
    inner, views = graph.behind(name, *VIEWS)
    maker = graph.maker(inner, "Reciprocal", "Div", "Pow", "Mul")
    if maker is None:
        return None
    if maker.key == "Mul":
        for scale, other in ((0, 1), (1, 0)) if depth and not views else ():
            below = read_inverse(graph, maker.inputs[other], depth - 1)
            if below is not None and is_fixed(graph, maker.inputs[scale]):
                return below[0].after(maker, canonical=False), (maker.inputs[scale], *below[1])
        return None
    scales: tuple[str, ...] = ()
    if maker.key == "Div" and graph.scalar(maker.inputs[0]) != 1.0:
        if views or not is_fixed(graph, maker.inputs[0]):
            return None
        scales = (maker.inputs[0],)
    if maker.key == "Pow":
        norm = _root(graph, maker.inputs[0]) if graph.scalar(maker.inputs[1]) == -0.5 else None
    else:
        norm = read_norm(graph, maker.inputs[-1])
    if norm is None:
        return None
    norm = norm.after(maker, *views, canonical=False)
    return (norm, scales) if _same_rank(graph, norm) else None


def is_fixed(graph: Graph, name: str) -> bool:
    """True for a constant, seen through what changes its shape only."""
    return graph.is_constant(graph.behind(name, *VIEWS)[0])


def _same_rank(graph: Graph, norm: Norm) -> bool:
    """True when the axes that the reduction took away were put back where they were, and no other one was added."""
    reduction = next(n for n in norm.nodes if n.key.startswith("Reduce"))
    put = [n for n in norm.nodes if n.key in ("Unsqueeze", "Reshape")]
    if reduction.attr("keepdims", 1):
        return not put
    rank = graph.rank(norm.value)
    if rank is None or len(put) != 1:
        return False
    if put[0].key == "Reshape":
        return _puts_ones(graph, put[0], norm, rank)
    axes = put[0].attr("axes") or graph.ints(put[0].input(1))
    return axes is not None and tuple(sorted(a % rank for a in axes)) == norm.axes


def _puts_ones(graph: Graph, reshape: Node, norm: Norm, rank: int) -> bool:
    """True for a Reshape to the sizes of the value, with 1 for each reduced axis; one size may be left open as -1."""
    if graph.rank(reshape.output) != rank:
        return False
    open_sizes = 0
    for axis in range(rank):
        size = size_element(graph, reshape.inputs[1], axis)
        if size is None:
            return False
        if axis in norm.axes:
            if not (size.is_constant and size.add == 1):
                return False
            continue
        if size.is_constant and size.add == -1:
            open_sizes += 1
        elif not _is_own(graph, size, dim_size(graph, norm.value, axis)):
            return False
    return open_sizes <= 1


def _is_own(graph: Graph, size: Size, own: Size) -> bool:
    if size.is_constant:
        return own.is_constant and own.add == size.add
    return size.is_dim and same_dim(graph, size, own)


def _bound(graph: Graph, node: Node) -> tuple[str, float] | None:
    """The value and the constant of Add, Max or Clip from below; only a positive constant is an epsilon."""
    if node.key == "Clip":
        low = graph.scalar(node.input(1)) if node.input(1) else node.attr("min")
        top = graph.scalar(node.input(2)) if node.input(2) else node.attr("max", float("inf"))
        if low is None or top is None or top < 3.0e38:
            return None
        return (node.inputs[0], float(low)) if low > 0 else None
    operands = graph.operand(node) if len(node.inputs) == 2 else None
    if operands is None or operands[1].size != 1 or float(operands[1].reshape(-1)[0]) <= 0:
        return None
    return operands[0], float(operands[1].reshape(-1)[0])


def _bare(graph: Graph, name: str) -> Norm | None:
    """ReduceL2, or a square root of a sum of squares."""
    name, views = graph.behind(name, *VIEWS)
    node = graph.maker(name, "ReduceL2", "Sqrt", "Pow")
    if node is None:
        return None
    if node.key == "ReduceL2":
        axes = _axes(graph, node)
        return None if axes is None else Norm(node.inputs[0], axes, nodes=(node, *views), canonical=False)
    if node.key == "Pow" and graph.scalar(node.inputs[1]) != 0.5:
        return None
    norm = _root(graph, node.inputs[0])
    return None if norm is None else norm.after(node, *views, canonical=node.key == "Sqrt" and not views)


def _root(graph: Graph, name: str) -> Norm | None:
    """What stands under the root: the sum of squares, perhaps with an epsilon."""
    return _with_epsilon(graph, name, _sum, "inside", "clamp-inside")


def _with_epsilon(
    graph: Graph, name: str, read: Callable[[Graph, str], Norm | None], added: str, clamped: str
) -> Norm | None:
    """What `read` finds here, or under an epsilon, whose location is then `added` or `clamped`."""
    name, views = graph.behind(name, *VIEWS)
    node = graph.maker(name, "Add", "Max", "Clip")
    if node is None:
        norm = read(graph, name)
    else:
        bound = _bound(graph, node)
        norm = None if bound is None else read(graph, bound[0])
        if norm is None or bound is None or norm.location != "none":
            return None
        location = added if node.key == "Add" else clamped
        norm = replace(norm, location=location, epsilon=bound[1]).after(node, canonical=node.key != "Clip")
    return None if norm is None else norm.after(*views, canonical=not views)


def _sum(graph: Graph, name: str) -> Norm | None:
    name, views = graph.behind(name, *VIEWS)
    node = graph.maker(name, "ReduceSum", "ReduceSumSquare")
    axes = None if node is None else _axes(graph, node)
    if node is None or axes is None:
        return None
    if node.key == "ReduceSumSquare":
        return Norm(node.inputs[0], axes, nodes=(node, *views), canonical=False)
    squared, between = graph.behind(node.inputs[0], "Identity", "Cast")
    square = graph.maker(squared, "Mul", "Pow")
    if square is None:
        return None
    squares = square.inputs[0] == square.inputs[1] if square.key == "Mul" else graph.scalar(square.inputs[1]) == 2.0
    if not squares:
        return None
    # Exporters write vector_norm with an Abs before the square.
    value, passed = graph.behind(square.inputs[0], "Abs")
    plain = square.key == "Mul" and not (views or between or passed)
    return Norm(value, axes, nodes=(*passed, square, *between, node, *views), canonical=plain)


def _axes(graph: Graph, node: Node) -> tuple[int, ...] | None:
    axes = graph.reduced_axes(node)
    return axes if axes and graph.rank(node.inputs[0]) is not None else None
