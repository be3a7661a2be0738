"""`rewritten_by_node`: in place of torch.onnx's decomposition of a program, where every node has a known form."""

from __future__ import annotations

import copy
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

from trtconv.export.exporters.functional.forms import FORMS, UnknownFormError
from trtconv.export.exporters.functional.in_place import write_out_of_place
from trtconv.export.exporters.functional.registry import remembered_forms
from trtconv.export.exporters.functional.weights import fold_weights

if TYPE_CHECKING:
    import torch


@contextmanager
def rewritten_by_node() -> Iterator[None]:
    """In the block, torch.onnx.export has a program rewritten node by node; as a whole where a node has no form."""
    from torch.export import _unlift
    from torch.onnx._internal.exporter import _core, _decomp

    prepare = _core._prepare_exported_program_for_export

    def by_node(program: Any, *, registry: Any) -> Any:
        try:
            return _prepared(program, registry)
        except Exception:  # noqa: BLE001 - torch raises whatever an operator makes it raise; its own way is the other one
            # torch would run the conditions on sizes again, and fix these: Python's `min` asks which is less.
            with mock.patch.object(_unlift, "_ok_to_generate_guards_fn", return_value=False):
                decomposed = prepare(program, registry=registry)
            return fold_weights(decomposed, set(_decomp.get_onnx_implemented_overloads(registry)))

    with remembered_forms(), mock.patch.object(_core, "_prepare_exported_program_for_export", by_node):
        yield


def _prepared(program: torch.export.ExportedProgram, registry: Any) -> torch.export.ExportedProgram:
    import torch

    from trtconv.export.exporters.functional.promotion import promote_types

    functional = functional_program(program, registry)
    # As in torch.onnx: sizes of 0 and 1 are no special cases.
    with torch.fx.experimental._config.patch(backed_size_oblivious=True):
        promote_types(functional.graph_module)
    _name_outputs(functional)
    return functional


def _name_outputs(program: torch.export.ExportedProgram) -> None:
    """Give the outputs of the signature, by which torch.onnx takes them, the names of what the graph returns now.

    A sum of halves is one of FP32 and its conversion then, and the sum would be the output.
    """
    import torch

    returned = next(n for n in program.graph.nodes if n.op == "output").args[0]
    signature = copy.deepcopy(program.graph_signature)
    for spec, node in zip(signature.output_specs, returned, strict=True):
        if isinstance(spec.arg, torch.export.graph_signature.TensorArgument) and isinstance(node, torch.fx.Node):
            spec.arg.name = node.name
    program._graph_signature = signature


def functional_program(program: torch.export.ExportedProgram, registry: Any) -> torch.export.ExportedProgram:
    """The program without writes in place, of operators that the registry has.

    Raises UnknownFormError for an operator that is none of them and has no form in FORMS, and for a write in place
    into what another node may share.
    """
    import torch
    from torch.onnx._internal.exporter import _decomp, _fx_passes

    registered = set(_decomp.get_onnx_implemented_overloads(registry))
    graph = copy.deepcopy(program.graph)
    for node in list(graph.nodes):
        if node.op == "call_function":
            write_out_of_place(node)
            _give_form(graph, node, registered)
        elif node.op not in ("placeholder", "output"):
            raise UnknownFormError(f"a node '{node.op}'")
    module = _fx_passes.remove_assertion_nodes(torch.fx.GraphModule(program.graph_module, graph))
    module.graph.eliminate_dead_code()
    module.recompile()
    functional = copy.copy(program)
    functional._graph_module = module
    return functional


def _give_form(graph: Any, node: Any, registered: set[Any]) -> None:
    import torch
    from torch._export.utils import _is_preservable_cia_op

    target = node.target
    form = FORMS.get(str(target)) if isinstance(target, torch._ops.OpOverload) else None
    if form is not None:
        with graph.inserting_before(node):
            form(node)
        target = node.target
    if target is operator.getitem or _is_assertion(target) or not node.users:
        return
    # As torch itself decides: of operators that it defines by others it keeps those that never share memory.
    if target not in registered or (_is_composite(target) and not _is_preservable_cia_op(target) and form is None):
        raise UnknownFormError(str(target))


def _is_composite(target: Any) -> bool:
    import torch
    from torch._export.utils import _is_cia_op

    return isinstance(target, torch._ops.OpOverload) and _is_cia_op(target)


def _is_assertion(target: Any) -> bool:
    """True for a check of sizes or types, which no file has."""
    name = str(target)
    return name.startswith("aten._assert_") or name == "aten.sym_constrain_range_for_size.default"
