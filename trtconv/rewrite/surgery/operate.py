"""`trtconv rewrite --script file.py:function`: run it, put back what was dropped, prove it, write it down."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from trtconv.core.errors import TrtconvError
from trtconv.core.ledger.records import LedgerEntry, NodeText, Proof
from trtconv.core.model.opset import opset_of
from trtconv.core.model.provenance import INPUTS_KEY, origin_of
from trtconv.core.progress import Progress
from trtconv.core.targets import Target
from trtconv.core.tensors import parse_tensor
from trtconv.rewrite.engine.explain import proof_text
from trtconv.rewrite.engine.rounds import NOT_PROVED, node_text
from trtconv.rewrite.graph.index import Graph
from trtconv.rewrite.graph.splice import write_back
from trtconv.rewrite.surgery.carry import (
    Changes,
    GraphChange,
    carry_graph,
    carry_model,
    scope_of,
    without_data,
    without_rare_types,
)
from trtconv.rewrite.surgery.prove import prove_script
from trtconv.rewrite.surgery.script import Script, export_graph, import_graph, load_script, round_trip, run_script


@dataclass(frozen=True)
class Surgery:
    """What a script left behind, and an entry for each node and constant that is not as it was."""

    model: onnx.ModelProto
    entries: tuple[LedgerEntry, ...] = ()
    notes: tuple[str, ...] = ()


def operate(model: onnx.ModelProto, spec: str, target: Target, progress: Progress, *, proof: bool) -> Surgery:
    """Run the script that `spec` names on a copy of the model.

    Raises InvalidRequestError when there is no such script, TrtconvError when it fails, AccuracyError when it changes
    what the model computes.
    """
    script = load_script(spec)
    progress.phase(f"script {script}")
    exported, changes = changed_by(script, model, target)
    if not changes.all and not _reshaped(model, exported):
        return Surgery(model, (), (f"the script {script} changed nothing",))
    verdict = prove_script(str(script), model, exported, changes, target) if proof else NOT_PROVED
    entries = tuple(_entry(script, change, verdict) for change in changes.all)
    return Surgery(exported, entries, (f"the script {script} changed {_counted(changes)}: {proof_text(verdict)}",))


def changed_by(script: Script, model: onnx.ModelProto, target: Target) -> tuple[onnx.ModelProto, Changes]:
    """The model that the script leaves behind, with what graph-surgeon drops, and what is not as it was."""
    working = onnx.ModelProto()
    working.CopyFrom(model)
    bare = without_data(model)
    without_rare_types(bare.graph)
    without_rare_types(working.graph)
    plain, graph = round_trip(bare), import_graph(working)
    scope = scope_of(model.graph, plain.graph, graph)
    result = run_script(script, graph)
    exported = export_graph(script, result)
    changes = Changes()
    carry_model(model, plain, exported)
    carry_graph(scope, exported.graph, result, str(script), changes)
    _sort(script, exported, target)
    _forget_inputs(model, exported)
    return exported, changes


def _sort(script: Script, model: onnx.ModelProto, target: Target) -> None:
    """Bring the nodes into a valid order: scripts append, and not all of them sort."""
    count = len(model.graph.node)
    write_back(Graph(model.graph, {}, opset=opset_of(model), target=target))
    if len(model.graph.node) < count:
        raise TrtconvError(f"the script {script} leaves a cycle behind: a node uses what follows from it")


def _counted(changes: Changes) -> str:
    """`2 nodes and 1 constant`."""
    constants = sum(isinstance(c.after, onnx.TensorProto) for c in changes.all)
    counts = ((len(changes.all) - constants, "node"), (constants, "constant"))
    return " and ".join(f"{n} {word}{'s' * (n != 1)}" for n, word in counts if n) or "inputs or outputs"


def _reshaped(before: onnx.ModelProto, after: onnx.ModelProto) -> bool:
    """True when inputs or outputs are not as they were."""
    return list(before.graph.input) != list(after.graph.input) or list(before.graph.output) != list(after.graph.output)


def _forget_inputs(before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    """Take what export recorded of an input that has another type or shape now out of the metadata."""
    same = {v.name for v in before.graph.input if v in after.graph.input}
    for prop in after.metadata_props:
        if prop.key == INPUTS_KEY:
            prop.value = "\n".join(t for t in prop.value.splitlines() if t and parse_tensor(t).name in same)


def _entry(script: Script, change: GraphChange, proof: Proof) -> LedgerEntry:
    item = change.after if change.after is not None else change.before
    name = item.name or next((o for o in getattr(item, "output", ()) if o), "")
    origin = next((o for p in (change.after, change.before) if p is not None and (o := origin_of(p))), origin_of(item))
    before, after = (() if p is None else (_text(p),) for p in (change.before, change.after))
    return LedgerEntry(str(script), "A surgery script of the user's.", name, origin, change.scope, before, after, proof)


def _text(item: onnx.NodeProto | onnx.TensorProto) -> NodeText:
    if isinstance(item, onnx.NodeProto):
        return node_text(item)
    kind = onnx.TensorProto.DataType.Name(item.data_type).lower()
    return NodeText("constant", item.name, (), (item.name,), f"{kind}{list(item.dims)}")
