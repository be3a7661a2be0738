"""Constants in place of what operators without an ONNX form compute from weights alone: `torch.matrix_exp(self.w)`."""

from __future__ import annotations

import copy
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def fold_weights(program: torch.export.ExportedProgram, registered: set[Any]) -> torch.export.ExportedProgram:
    """The program with constants in place of such results; itself where it has none.

    `registered` are the operators that have a form. Everything else that weights go through stays, so that the file
    holds them under their names.
    """
    import torch
    from torch._export.passes.lift_constants_pass import ConstantAttrMap, lift_constants_pass
    from torch._subclasses.fake_tensor import unset_fake_temporarily

    if not _folded_nodes(program, program.graph, registered):
        return program
    graph = copy.deepcopy(program.graph)
    values, folded_nodes = _weights(program, graph), _folded_nodes(program, graph, registered)
    with unset_fake_temporarily(), torch.no_grad():
        _compute(graph, folded_nodes, values)
    constants: dict[str, Any] = {}
    for node in folded_nodes:
        if values[node] is None:
            # A check, such as that an inverse exists: it has held.
            graph.erase_node(node)
        elif isinstance(values[node], torch.Tensor):
            name = f"folded_{node.name}"
            constants[name] = values[node].detach().clone()
            with graph.inserting_before(node):
                read = graph.get_attr(name)
            read.meta = dict(node.meta)
            # It keeps its name, by which outputs are known.
            node.target, node.args, node.kwargs = torch.ops.aten.clone.default, (read,), {}
    module = torch.fx.GraphModule({**dict(program.graph_module.named_children()), **constants}, graph)
    graph.eliminate_dead_code()
    signature = copy.deepcopy(program.graph_signature)
    lifted = lift_constants_pass(module, signature, ConstantAttrMap())
    module.recompile()
    folded = copy.copy(program)
    folded._graph_module, folded._graph_signature = module, signature
    folded._constants = {**program.constants, **lifted}
    return folded


def _folded_nodes(program: torch.export.ExportedProgram, graph: Any, registered: set[Any]) -> list[Any]:
    """The nodes of results of weights alone, of operators that have no form."""
    weights = _weights(program, graph)
    constant = {*weights}
    for node in graph.nodes:
        inputs = node.all_input_nodes
        if node.op == "call_function" and inputs and _is_pure(node) and constant.issuperset(inputs):
            constant.add(node)
    return [n for n in graph.nodes if n in constant and n not in weights and _source(n).target not in registered]


def _weights(program: torch.export.ExportedProgram, graph: Any) -> dict[Any, Any]:
    """The placeholders of weights and constants that forward does not write, with their values."""
    signature = program.graph_signature
    written = {*signature.buffers_to_mutate.values()}
    names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    names |= signature.inputs_to_lifted_tensor_constants
    values = {**program.constants, **program.state_dict}
    return {
        node: values[names[node.name]]
        for node in graph.nodes
        if node.op == "placeholder" and node.name in names and names[node.name] not in written
    }


def _is_pure(node: Any) -> bool:
    import torch

    if node.target is operator.getitem:
        return True
    if not isinstance(node.target, torch._ops.OpOverload):
        return False
    return not node.target._schema.is_mutable and torch.Tag.nondeterministic_seeded not in node.target.tags


def _source(node: Any) -> Any:
    """The operator whose result a node is, or one of whose results."""
    return node.args[0] if node.target is operator.getitem else node


def _compute(graph: Any, nodes: Sequence[Any], values: dict[Any, Any]) -> None:
    """Put the results of the nodes, and of what they are computed from, beside those that are known."""
    import torch

    waiting, needed = list(nodes), set()
    while waiting:
        node = waiting.pop()
        if node not in values and node not in needed:
            needed.add(node)
            waiting += node.all_input_nodes
    for node in graph.nodes:
        if node in needed:
            args, named = torch.fx.node.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = node.target(*args, **named)
