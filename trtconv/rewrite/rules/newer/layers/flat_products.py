"""Products of an image, channels last, by a matrix, as one product of all its rows.

On an H200 TensorRT 8.6 took a product of rank 4 for one small product per row of the image: ConvNeXt-T in FP16 at
batch 8 took 1.97 ms, and 1.16 flat. Sequences (rank 3) lost by it: ViT-S took 0.79 ms, and 0.74 as it was.
"""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

# These compute element by element: between two products they stay flat.
UNARY = frozenset(
    {"Erf", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Neg", "Relu", "Sigmoid", "Softplus", "Tanh"}
)
BINARY = frozenset({"Add", "Div", "Mul", "Sub"})


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a MatMul of rank 4 by a constant matrix, with the one before it where only activations part them."""
    if not _is_product(graph, node):
        return NOT_THIS
    if graph.rank(node.output) is None or not isinstance(_last(graph, node.inputs[0]), int):
        return Skip("the rank or the length of a row is not known")
    if _leads_to_product(graph, node):
        return NOT_THIS
    between = _between(graph, node)
    nodes = (*between, node)
    return Found(nodes, partial(_build, graph=graph, nodes=nodes))


def _is_product(graph: Graph, node: Node) -> bool:
    if node.key != "MatMul" or not graph.is_constant(node.inputs[1]) or graph.is_constant(node.inputs[0]):
        return False
    weight, rank = graph.dims(node.inputs[1]), graph.rank(node.inputs[0])
    return weight is not None and len(weight) == 2 and rank is not None and rank > 3


def _last(graph: Graph, name: str) -> int | str | None:
    return (graph.dims(name) or (None,))[-1]


def _leads_to_product(graph: Graph, node: Node) -> bool:
    """True where this one is matched with the product after it."""
    waiting, visited = [node.output], {node.name}
    while waiting:
        for user in graph.uses(waiting.pop()):
            if _is_product(graph, user):
                if node in _between(graph, user):
                    return True
            elif user.name not in visited and user.key in UNARY | BINARY:
                visited.add(user.name)
                waiting.append(user.output)
    return False


def _between(graph: Graph, product: Node) -> tuple[Node, ...]:
    """The product before this one and the activations that part them; empty where more than that does."""
    nodes: dict[str, Node] = {}
    waiting, sources = [product.inputs[0]], 0
    while waiting:
        name = waiting.pop()
        maker = graph.maker(name)
        if maker is None or name in graph.outputs:
            return ()
        if maker.name in nodes:
            continue
        nodes[maker.name] = maker
        if _is_product(graph, maker):
            sources += 1
        elif maker.key in UNARY:
            waiting.append(maker.inputs[0])
        elif maker.key in BINARY and all(_broadcasts(graph, i) for i in maker.inputs if graph.is_constant(i)):
            waiting += [i for i in maker.inputs if not graph.is_constant(i)]
        else:
            return ()
    inner = {*nodes, product.name}
    if sources != 1 or any(user.name not in inner for n in nodes.values() for user in graph.uses(n.output)):
        return ()
    return tuple(sorted(nodes.values(), key=lambda n: n.order))


def _broadcasts(graph: Graph, name: str) -> bool:
    """A number, or one for each element of a row."""
    dims = graph.dims(name)
    return dims is not None and all(d == 1 for d in dims[:-1]) and len(dims) <= 2


def _build(g: Replacement, graph: Graph, nodes: tuple[Node, ...]) -> Value:
    x = nodes[0].inputs[0]
    length = _last(graph, x)
    values: dict[str, Value] = {x: g.reshape(x, -1, int(length or 0))}
    for node in nodes:
        attributes = node.attributes()
        values[node.output] = g.op(node.op, *(values.get(i, i) for i in node.inputs), **attributes)
    return g.reshape(values[nodes[-1].output], _sizes(g, graph, x, int(_last(graph, nodes[-1].inputs[1]) or 0)))


def _sizes(g: Replacement, graph: Graph, x: str, width: int) -> Value:
    """The sizes of `x` with another last one; the operators of shapes only where two of them move."""
    lead = (graph.dims(x) or ())[:-1]
    if sum(not isinstance(d, int) for d in lead) <= 1:
        return g.ints(*(d if isinstance(d, int) else -1 for d in lead), width)
    return g.concat(g.slice(g.shape_of(x), g.ints(0), g.ints(len(lead)), (0,)), g.ints(width))


RULE = Rule(
    name="flat-products",
    why="TensorRT 8.6 computes a product of rank 4 row by row of the image, as many small ones; flat it is one.",
    ops=("MatMul",),
    find=find,
    needed=only_tensorrt_8,
    after_rules=("gelu",),
    before="MatMul(x[N,H,W,K], w[K,M])",
    after="Reshape(MatMul(Reshape(x, [-1, K]), w), [N, H, W, M])",
)
