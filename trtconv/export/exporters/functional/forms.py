"""Operators that torchlib lacks, or that may share memory, as the operators that torch defines them by.

Each form changes a node in place, so that it keeps its name; nodes that it inserts come before it. The sources are
torch's own definitions: `aten/src/ATen/native/TensorShape.cpp`, `Normalization.cpp`, `AdaptiveAveragePooling.cpp`,
`Dropout.cpp` and `torch/_decomp/decompositions.py`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

Form = Callable[[Any], None]


class UnknownFormError(Exception):
    """A node has no form here: the program has to be rewritten as a whole."""


def arguments_of(node: Any) -> dict[str, Any]:
    """The node's arguments by name, with the defaults of the operator's schema."""
    schema = node.target._schema.arguments
    by_name = {a.name: a.default_value for a in schema if a.has_default_value()}
    by_name.update(zip((a.name for a in schema), node.args, strict=False))
    by_name.update(node.kwargs)
    return by_name


def size_of(node: Any, axis: int) -> Any:
    """A size of a tensor: the number, or a node that reads it."""
    import torch

    size = node.meta["val"].shape[axis]
    if isinstance(size, int):
        return size
    read = node.graph.call_function(torch.ops.aten.sym_size.int, (node, axis))
    read.meta["val"] = size
    return read


def _sizes_of(node: Any) -> list[Any]:
    return [size_of(node, axis) for axis in range(node.meta["val"].dim())]


def _product(sizes: list[Any]) -> Any:
    total: Any = 1
    for size in sizes:
        if isinstance(total, int) and (isinstance(size, int) or total == 1):
            total = total * size if isinstance(size, int) else size
            continue
        values = [s if isinstance(s, int) else s.meta["val"] for s in (total, size)]
        graph = next(s.graph for s in (total, size) if not isinstance(s, int))
        total = graph.call_function(operator.mul, (total, size))
        total.meta["val"] = values[0] * values[1]
    return total


def become(node: Any, overload: Any, *args: Any, **kwargs: Any) -> None:
    """Another operator in the place of the node's, with the same result."""
    node.target, node.args, node.kwargs = overload, args, kwargs


def _copy(node: Any) -> None:
    import torch

    become(node, torch.ops.aten.clone.default, node.args[0])


def _as_it_is(node: Any) -> None:
    """An operator that torchlib has, and that torch would replace because it may share memory."""


def _identity(node: Any) -> None:
    """`dropout` in evaluation, `contiguous`: what goes in comes out."""
    arguments = arguments_of(node)
    if arguments.get("train"):
        raise UnknownFormError("dropout in training")
    _copy(node)


def _conversion(node: Any) -> None:
    import torch

    source, result = node.args[0].meta["val"], node.meta["val"]
    if source.device != result.device:
        raise UnknownFormError("a tensor of another device")
    if source.dtype == result.dtype:
        _copy(node)
    else:
        become(node, torch.ops.aten._to_copy.default, node.args[0], dtype=result.dtype)


def _flatten(node: Any) -> None:
    import torch

    arguments = arguments_of(node)
    tensor = arguments["self"]
    rank = len(tensor.meta["val"].shape)
    if rank == 0:
        raise UnknownFormError("a flattened number")
    first, last = arguments["start_dim"] % rank, arguments["end_dim"] % rank
    if first == last:
        _copy(node)
        return
    before = [size_of(tensor, axis) for axis in range(first)]
    joined = _product([size_of(tensor, axis) for axis in range(first, last + 1)])
    after = [size_of(tensor, axis) for axis in range(last + 1, rank)]
    become(node, torch.ops.aten.reshape.default, tensor, [*before, joined, *after])


def _expand_as(node: Any) -> None:
    import torch

    arguments = arguments_of(node)
    become(node, torch.ops.aten.expand.default, arguments["self"], _sizes_of(arguments["other"]))


def _viewed_as(node: Any) -> None:
    """A view by another tensor's sizes; of a tensor as itself (an eval dropout) what goes in comes out."""
    import torch

    tensor, other = (arguments_of(node)[name] for name in ("self", "other"))
    if tensor is other:
        _copy(node)
        return
    become(node, torch.ops.aten.reshape.default, tensor, _sizes_of(other))


def _chunk(node: Any) -> None:
    import torch

    arguments = arguments_of(node)
    tensor, chunks, axis = arguments["self"], arguments["chunks"], arguments["dim"]
    size = tensor.meta["val"].shape[axis]
    if not isinstance(size, int) or size == 0:
        raise UnknownFormError("chunks of a moving size")
    become(node, torch.ops.aten.split.Tensor, tensor, -(-size // chunks), axis)


def _batch_norm(node: Any) -> None:
    import torch

    arguments = arguments_of(node)
    if arguments["training"] or arguments["running_mean"] is None:
        raise UnknownFormError("a batch norm by the batch's own statistics")
    names = ("input", "weight", "bias", "running_mean", "running_var", "momentum", "eps")
    overload = torch.ops.aten._native_batch_norm_legit_no_training.default
    normed = node.graph.call_function(overload, tuple(arguments[n] for n in names))
    normed.meta = dict(node.meta)
    value = node.meta["val"]
    normed.meta["val"] = (value, value.new_empty(0), value.new_empty(0))
    become(node, operator.getitem, normed, 0)


def _pooled_to_one(node: Any) -> None:
    import torch

    arguments = arguments_of(node)
    sizes = arguments["output_size"]
    if any(not isinstance(size, int) or size != 1 for size in sizes):
        raise UnknownFormError("adaptive pooling to more than one")
    axes = list(range(-1, -1 - len(sizes), -1))
    become(node, torch.ops.aten.mean.dim, arguments["self"], axes, True)


def _resized_to_size(overload: str) -> Form:
    """A resize with antialiasing to a size that is given; the scales follow from it."""

    def form(node: Any) -> None:
        import torch

        arguments = arguments_of(node)
        size, scales = arguments["output_size"], arguments["scale_factors"]
        if size is None or scales is not None:
            raise UnknownFormError("a resize by a factor")
        target = getattr(torch.ops.aten, overload).default
        become(node, target, arguments["input"], size, arguments["align_corners"], None, None)

    return form


def _renamed(packet: str, variant: str) -> Form:
    """An operator of another name with the same arguments."""

    def form(node: Any) -> None:
        import torch

        become(node, getattr(getattr(torch.ops.aten, packet), variant), *node.args, **node.kwargs)

    return form


def _transposed_convolution(axes: int) -> Form:
    """`conv_transpose`: one of the uses of `convolution`."""

    def form(node: Any) -> None:
        import torch

        arguments = arguments_of(node)
        names = ("stride", "padding", "dilation", "output_padding")
        steps = {n: [*arguments[n]] * (axes if len(arguments[n]) == 1 else 1) for n in names}
        tensors = (arguments["input"], arguments["weight"], arguments["bias"])
        order = (steps["stride"], steps["padding"], steps["dilation"], True, steps["output_padding"])
        become(node, torch.ops.aten.convolution.default, *tensors, *order, arguments["groups"])

    return form


def _narrow(node: Any) -> None:
    import torch

    arguments = arguments_of(node)
    start, length = arguments["start"], arguments["length"]
    if not isinstance(start, int) or start < 0 or not isinstance(length, int):
        raise UnknownFormError("a part whose bounds move")
    become(node, torch.ops.aten.slice.Tensor, arguments["self"], arguments["dim"], start, start + length)


def _reversed_axes(node: Any) -> None:
    import torch

    rank = node.args[0].meta["val"].dim()
    become(node, torch.ops.aten.permute.default, node.args[0], list(range(rank))[::-1])


def _square(node: Any) -> None:
    import torch

    become(node, torch.ops.aten.pow.Tensor_Scalar, node.args[0], 2)


def _readers(node: Any) -> list[Any]:
    """The nodes that take the tensors of a list one by one. Raises UnknownFormError where another reads it."""
    if any(user.target is not operator.getitem for user in node.users):
        raise UnknownFormError(f"the list of {node.target} as a whole")
    return list(node.users)


def _indices(node: Any) -> None:
    """`where` of a condition alone: the columns of `nonzero`, read by the nodes that take them one by one."""
    import torch

    columns, readers = node.meta["val"], _readers(node)
    if not columns:
        raise UnknownFormError("the indices of a number")
    table = node.graph.call_function(torch.ops.aten.nonzero.default, (node.args[0],))
    table.meta["val"] = torch.stack(list(columns), 1)
    for user in readers:
        become(user, torch.ops.aten.select.int, table, 1, user.args[1])


def _grids(node: Any) -> None:
    """`meshgrid`: each vector as a row or column of the grid, read by the nodes that take the grids one by one."""
    import torch

    arguments = arguments_of(node)
    vectors = list(arguments["tensors"])
    order = list(range(len(vectors)))
    if arguments.get("indexing") == "xy" and len(vectors) > 1:
        order[:2] = [1, 0]
    sizes = [size_of(vectors[i], 0) if vectors[i].meta["val"].dim() else 1 for i in order]
    for user in _readers(node):
        index = user.args[1]
        shape = [-1 if i == index else 1 for i in order]
        line = node.graph.call_function(torch.ops.aten.view.default, (vectors[index], shape))
        line.meta["val"] = vectors[index].meta["val"].reshape(shape)
        become(user, torch.ops.aten.expand.default, line, sizes)


FORMS: dict[str, Form] = {
    "aten.dropout.default": _identity,
    "aten.feature_dropout.default": _identity,
    "aten.alpha_dropout.default": _identity,
    "aten.feature_alpha_dropout.default": _identity,
    "aten.contiguous.default": _identity,
    "aten.to.dtype": _conversion,
    "aten.to.dtype_layout": _conversion,
    "aten.to.device": _conversion,
    "aten.to.other": _conversion,
    "aten.type_as.default": _conversion,
    # Of a functional program it does not matter whether the result is a view.
    "aten.reshape.default": _as_it_is,
    "aten.min.other": _renamed("minimum", "default"),
    "aten.max.other": _renamed("maximum", "default"),
    "aten.square.default": _square,
    "aten.where.default": _indices,
    "aten.meshgrid.default": _grids,
    "aten.meshgrid.indexing": _grids,
    "aten.flatten.using_ints": _flatten,
    "aten.expand_as.default": _expand_as,
    "aten.view_as.default": _viewed_as,
    "aten.reshape_as.default": _viewed_as,
    "aten.chunk.default": _chunk,
    "aten.narrow.default": _narrow,
    "aten.numpy_T.default": _reversed_axes,
    "aten.conv_transpose1d.default": _transposed_convolution(1),
    "aten.conv_transpose2d.input": _transposed_convolution(2),
    "aten.conv_transpose3d.input": _transposed_convolution(3),
    "aten.batch_norm.default": _batch_norm,
    "aten.adaptive_avg_pool1d.default": _pooled_to_one,
    "aten.adaptive_avg_pool2d.default": _pooled_to_one,
    "aten.adaptive_avg_pool3d.default": _pooled_to_one,
    "aten._upsample_bicubic2d_aa.vec": _resized_to_size("_upsample_bicubic2d_aa"),
    "aten._upsample_bilinear2d_aa.vec": _resized_to_size("_upsample_bilinear2d_aa"),
    **{
        f"aten.__{name}__.{kind}": _renamed(f"bitwise_{name}", kind)
        for name in ("and", "or", "xor")
        for kind in ("Tensor", "Scalar")
    },
}
