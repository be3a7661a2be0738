"""The proof of a surgery script: the graph before and the one that it leaves behind compute the same outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx

from trtconv.core.errors import AccuracyError, TrtconvError
from trtconv.core.ledger.records import Proof
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.targets import Target
from trtconv.core.tensors import TensorSpec
from trtconv.rewrite.engine.points import Points, model_space
from trtconv.rewrite.engine.proof import Prover
from trtconv.rewrite.engine.whole import InitialGraph
from trtconv.rewrite.graph.facts import index_model, inferred
from trtconv.rewrite.graph.fragment import cut_between
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.surgery.carry import Changes

SKIP_HINT = "--no-proof takes what the script leaves behind without comparing"


def prove_script(name: str, before: onnx.ModelProto, after: onnx.ModelProto, changes: Changes, target: Target) -> Proof:
    """Compare the whole graphs; where they cannot be run, what the script changed, part by part.

    Raises AccuracyError for an output that differs or is gone, TrtconvError where nothing could be compared.
    """
    problem = _interface(before, after)
    if problem:
        raise AccuracyError(f"the script {name} changes what the model computes: {problem}", hint=SKIP_HINT)
    space, specs = model_space(before)
    with InitialGraph(before, space, specs) as original:
        proof = original.compare(after)
    if proof.passed is None:
        proof = _by_parts(before, after, changes, space, specs, target)
    if proof.passed is False:
        raise AccuracyError(f"the script {name} changes what the model computes: {proof.note}", hint=SKIP_HINT)
    if proof.passed is None:
        raise TrtconvError(f"what the script {name} changes could not be compared: {proof.note}", hint=SKIP_HINT)
    return proof


def _interface(before: onnx.ModelProto, after: onnx.ModelProto) -> str:
    """The first output or input without which the two graphs cannot be compared, or nothing."""
    left = {v.name for v in after.graph.output}
    for value in before.graph.output:
        if value.name not in left:
            return f"the output '{value.name}' is gone"
    own, other = ({s.name: s for s in model_space(m)[1]} for m in (before, after))
    for name in own.keys() ^ other.keys():
        return f"the input '{name}' is {'gone' if name in own else 'new'}"
    for name, spec in own.items():
        if (spec.dtype, len(spec.dims)) != (other[name].dtype, len(other[name].dims)):
            return f"the input '{name}' was {spec} and is {other[name]}"
    return ""


def _by_parts(
    before: onnx.ModelProto,
    after: onnx.ModelProto,
    changes: Changes,
    space: ShapeSpace,
    specs: tuple[TensorSpec, ...],
    target: Target,
) -> Proof:
    """The proof of each connected part that changed; weights that are large or on disk are random inputs of it."""
    facts = inferred(before)
    old, new = index_model(before, target, facts), index_model(after, target)
    prover = Prover(Points.of(facts, space, specs))
    constants = [c.after.name for c in changes.all if isinstance(c.after, onnx.TensorProto) and not c.scope]
    removed, added = (
        _located(graph, [*protos, *(u.proto for name in constants for u in graph.uses(name))])
        for graph, protos in ((old, changes.removed), (new, changes.added))
    )
    proofs = []
    for gone, come in _components(removed, added):
        fragment = cut_between(old, gone, new, come)
        if not fragment.outputs:
            continue
        proof = prover(fragment, None, {}, (come or gone)[0].name)
        if proof.passed is not True:
            return proof
        proofs.append(proof)
    return _joined(proofs) if proofs else Proof(True, note="nothing that is used has changed")


def _joined(proofs: Sequence[Proof]) -> Proof:
    """One proof of all parts."""
    note = f"the whole graph could not be run; {len(proofs)} changed parts were, with random values for large weights"
    return Proof(
        True,
        proofs[0].runner,
        tuple(p for f in proofs for p in f.points),
        tuple(s for f in proofs for s in f.shapes),
        tuple(c for f in proofs for c in f.comparisons),
        note,
    )


def _located(graph: Graph, protos: Sequence[onnx.NodeProto]) -> list[Node]:
    """The index's nodes of these messages, in the order of the graph."""
    nodes = {id(n): n for p in protos for o in p.output if o and (n := graph.maker(o)) is not None}
    return sorted(nodes.values(), key=lambda n: n.order)


def _components(removed: Sequence[Node], added: Sequence[Node]) -> Iterator[tuple[list[Node], list[Node]]]:
    """The changed nodes of both graphs in groups that share no value which one of them makes."""
    outputs = {o for n in (*removed, *added) for o in n.outputs if o}
    leader: dict[str, str] = {name: name for name in outputs}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = name = leader[leader[name]]
        return name

    for node in (*removed, *added):
        names = [n for n in (*node.inputs, *node.outputs, *node.implicit) if n in outputs]
        for name in names[1:]:
            leader[find(name)] = find(names[0])
    groups: dict[str, tuple[list[Node], list[Node]]] = {}
    for side, nodes in enumerate((removed, added)):
        for node in nodes:
            root = find(next(o for o in node.outputs if o))
            groups.setdefault(root, ([], []))[side].append(node)
    yield from groups.values()
