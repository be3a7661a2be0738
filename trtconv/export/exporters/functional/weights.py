"""Constants in place of what operators without an ONNX form compute from weights alone: `torch.matrix_exp(self.w)`."""

from __future__ import annotations

import copy
import operator
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

    graph = copy.deepcopy(program.graph)
    weights = _weights(program, graph)
    results: dict[Any, Any] = dict(weights)
    constants: dict[str, Any] = {}
    for node in list(graph.nodes):
        if node.op != "call_function" or not _is_pure(node) or not node.all_input_nodes:
            continue
        if not all(source in results for source in node.all_input_nodes):
            continue
        with unset_fake_temporarily(), torch.no_grad():
            args, named = torch.fx.node.map_arg((node.args, node.kwargs), results.__getitem__)
            results[node] = node.target(*args, **named)
        source = node.args[0] if node.target is operator.getitem else node
        if source.target in registered:
            continue
        if results[node] is None:
            # A check, such as that an inverse exists: it has held.
            graph.erase_node(node)
        elif isinstance(results[node], torch.Tensor):
            name = f"folded_{node.name}"
            constants[name] = results[node].detach().clone()
            with graph.inserting_before(node):
                read = graph.get_attr(name)
            read.meta = dict(node.meta)
            # It keeps its name, by which outputs are known.
            node.target, node.args, node.kwargs = torch.ops.aten.clone.default, (read,), {}
    if not constants:
        return program
    module = torch.fx.GraphModule({**_parts(program.graph_module), **constants}, graph)
    graph.eliminate_dead_code()
    signature = copy.deepcopy(program.graph_signature)
    lifted = lift_constants_pass(module, signature, ConstantAttrMap())
    module.recompile()
    folded = copy.copy(program)
    folded._graph_module, folded._graph_signature = module, signature
    folded._constants = {**program.constants, **lifted}
    return folded


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


def _parts(module: Any) -> dict[str, Any]:
    return {name: getattr(module, name) for name in module._modules}
