"""The same finish for every exporter's file: the user's dim names, where each node comes from, the shape space."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv import __version__
from trtconv.core.errors import TrtconvError
from trtconv.core.model.bodies import bodies_of, graphs_of, walk_nodes
from trtconv.core.model.file import load_model, set_metadata
from trtconv.core.model.provenance import INPUTS_KEY, MODULE_KEY, SOURCE_KEY, SPACE_KEY
from trtconv.core.shape_space.derived import derived_from
from trtconv.core.tensors import TensorSpec
from trtconv.export.exporters.floor_division import floor_size_divisions
from trtconv.export.exporters.one_sided_clip import write_one_sided_clips
from trtconv.export.exporters.trace import Trace
from trtconv.export.half_sums import reduce_in_float32
from trtconv.export.leading_axes import count_axes_from_front
from trtconv.export.module.creation import created_at
from trtconv.export.module.flat_module import PREFIX
from trtconv.export.sizes.exact.whole import ExactSize, write_exact
from trtconv.export.sizes.integer_powers import write_powers_as_products

if TYPE_CHECKING:
    import onnx

Origins = dict[str, tuple[str, str]]
# torch/_export/passes/_node_metadata_hook.py: nodes that torch.export itself put in, such as the sizes of an input.
_NO_MODULE = "_empty_nn_module_stack_from_metadata_hook"
# An axis of multiples, as torch.onnx calls it: the symbol stands for how many.
UNITS = re.compile(r"dim_(?P<multiple>\d+)_(?P<symbol>s\d+)")


class StaticAxisError(TrtconvError):
    """The exporter made an axis static that the user wants dynamic."""


def finish(
    path: Path,
    trace: Trace,
    origins: Mapping[str, tuple[str, str]],
    floors: Collection[str] = (),
    exact: tuple[ExactSize, ...] = (),
) -> None:
    """Rewrite the file in place. Raises StaticAxisError when a dynamic axis of the space became a number.

    `floors` names the Divs that stand for Python's `//`. `exact` are sizes that the file computes in FP32, where Python
    has more bits.
    """
    model = load_model(path)
    _put_weights_in_one_file(model, path)
    renamed = name_dims(model, trace)
    _rename_symbols(model, renamed)
    _rename_initializers(model)
    last = ("", created_at(getattr(trace.flat, PREFIX), "", trace.base))
    for node in model.graph.node:
        last = _describe(node, _with_line(origins.get(node.name, ("", "")), trace), last)
    floor_size_divisions(model.graph, trace, floors)
    write_exact(model.graph, exact, trace)
    write_one_sided_clips(model)
    write_powers_as_products(model)
    reduce_in_float32(model)
    count_axes_from_front(model)
    set_metadata(model, SPACE_KEY, str(trace.space))
    set_metadata(model, INPUTS_KEY, "\n".join(str(s) for s in trace.specs))
    model.producer_name, model.producer_version = "trtconv", __version__
    model.graph.name = "main"
    path.write_bytes(model.SerializeToString(deterministic=True))


def _put_weights_in_one_file(model: onnx.ModelProto, path: Path) -> None:
    """TorchScript writes one file per large tensor; one file beside the model is what can be moved and mapped."""
    import os

    from trtconv.core.model.file import external_files, move_weights_out

    data_file = f"{path.name}.data"
    files = external_files(model)
    if not files or files == (data_file,):
        return
    import onnx

    onnx.load_external_data_for_model(model, str(path.parent))
    move_weights_out(model, path.with_name(data_file), data_file)
    for name in files:
        os.unlink(path.parent / name)


def name_dims(model: onnx.ModelProto, trace: Trace) -> dict[str, str]:
    """Give the inputs' axes the user's names; returns which symbol of the exporter is which name."""
    renamed: dict[str, str] = {}
    inputs = {v.name: v for v in model.graph.input}
    for spec in trace.specs:
        value = inputs.get(spec.name) or _put_back(model, spec)
        for axis, dim_name in enumerate(spec.dims):
            dim = value.type.tensor_type.shape.dim[axis]
            if not isinstance(dim_name, str) or not trace.dynamic(dim_name):
                continue
            if not dim.dim_param:
                raise StaticAxisError(
                    f"axis {axis} ('{dim_name}') of input '{spec.name}' became the constant {dim.dim_value}",
                    hint="some line of the module needs that very size; use --exporter torchscript, or fix the size",
                )
            if not derived_from(dim_name):
                renamed[dim.dim_param] = dim_name
            if (unit := UNITS.fullmatch(dim.dim_param)) is not None:
                renamed[unit["symbol"]] = f"({dim_name}//{unit['multiple']})"
            dim.dim_param = dim_name
    return renamed


def _put_back(model: onnx.ModelProto, spec: TensorSpec) -> onnx.ValueInfoProto:
    """An input that the module does not use is dropped by TorchScript; the caller still has to be able to give it."""
    import onnx

    model.graph.input.append(onnx.helper.make_tensor_value_info(spec.name, spec.dtype.onnx, list(spec.dims)))
    return model.graph.input[-1]


def _rename_symbols(model: onnx.ModelProto, renamed: Mapping[str, str]) -> None:
    def new_name(match: re.Match[str]) -> str:
        return renamed.get(match[0], match[0])

    for value in (*model.graph.output, *model.graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = renamed.get(dim.dim_param) or re.sub(r"[A-Za-z_]\w*", new_name, dim.dim_param)


def _rename_initializers(model: onnx.ModelProto) -> None:
    """Give parameters the names that they have in the user's module.

    What a node gives under such a name (`mean`, `val_0`) gets another one.
    """
    names = {t.name for t in model.graph.initializer}
    names |= {v.name for graph in graphs_of(model.graph) for v in (*graph.input, *graph.output)}
    shorter = {n: n.removeprefix(f"{PREFIX}.") for n in names if n.startswith(f"{PREFIX}.")}
    shorter = {old: new for old, new in shorter.items() if new not in names}
    if not shorter:
        return
    computed = {name for node in walk_nodes(model.graph.node) for name in node.output}
    others = {name: _unused(f"{name}_value", names | computed) for name in computed & {*shorter.values()}}
    for node in walk_nodes(model.graph.node):
        node.output[:] = [others.get(name, name) for name in node.output]
    for graph in graphs_of(model.graph):
        for info in graph.value_info:
            info.name = others.get(info.name, info.name)
    _rename_uses(model.graph, others)
    for tensor in model.graph.initializer:
        tensor.name = shorter.get(tensor.name, tensor.name)
    _rename_uses(model.graph, shorter)


def _unused(name: str, names: Collection[str]) -> str:
    while name in names:
        name += "_"
    return name


def _rename_uses(graph: onnx.GraphProto, shorter: Mapping[str, str]) -> None:
    for node in graph.node:
        for index, name in enumerate(node.input):
            if name in shorter:
                node.input[index] = shorter[name]
        for body in bodies_of(node):
            _rename_uses(body, shorter)


def _with_line(origin: tuple[str, str], trace: Trace) -> tuple[str, str]:
    """Where all of a layer's code is torch's, the line that created the layer."""
    module, source = origin
    if source or module == _NO_MODULE or not any(origin):
        return origin
    return module, created_at(getattr(trace.flat, PREFIX), module, trace.base)


def _describe(node: onnx.NodeProto, origin: tuple[str, str], last: tuple[str, str]) -> tuple[str, str]:
    """Write the origin; a node without one (a constant, a cast put in) takes that of the node before it."""
    if origin[0] == _NO_MODULE:
        origin = ("", origin[1])
    chosen = origin if any(origin) else last
    node.doc_string = ""
    del node.metadata_props[:]
    for key, value in ((MODULE_KEY, chosen[0]), (SOURCE_KEY, chosen[1])):
        if value:
            node.metadata_props.add(key=key, value=value)
    return chosen
