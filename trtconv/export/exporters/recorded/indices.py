"""Indices of several axes, and sums where indices meet, in recorded files and in parts that torch.jit.script made.

Torch's own forms make one index of several by multiplication, of negative ones too, and write sums without a reduction.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from trtconv.export.exporters.recorded import values

Form = Callable[..., Any]
# The first opset in which ONNX's scatters add up.
SUMS_SINCE = 16


def forms(opset: int) -> dict[str, Form]:
    """The forms by aten's names."""
    table = {"index": _index(values.plain_form("index", opset))}
    table |= {name: _sorted(values.plain_form(name, opset)) for name in ("sort", "argsort")}
    if opset >= SUMS_SINCE:
        table["index_add"] = _index_add(values.plain_form("index_add", opset))
        table |= dict.fromkeys(("index_put", "index_put_"), _index_put(values.plain_form("index_put", opset)))
    return table


def _index(plain: Form) -> Form:
    def form(graph: Any, x: Any, indices: Any) -> Any:
        """x[i, j]: where two or more are whole numbers, each is counted from the start of its axis."""
        parts = _whole_parts(indices)
        if parts is None or len(parts) < 2:
            return plain(graph, x, indices)
        shape = graph.op("Shape", x)
        counted = [_from_the_start(graph, part, shape, axis) for axis, part in enumerate(parts)]
        return plain(graph, x, graph.op("prim::ListConstruct", *counted))

    return form


def _sorted(plain: Form) -> Form:
    def form(graph: Any, x: Any, *rest: Any) -> Any:
        """A sort that says whether it is stable, as ONNX's TopK always is; torch's own form takes that for the axis."""
        return plain(graph, x, *(rest[1:] if len(rest) == 3 else rest))

    return form


def _index_add(plain: Form) -> Form:
    def form(graph: Any, x: Any, dim: Any, index: Any, source: Any, alpha: Any = None) -> Any:
        """Slices added at an index along one axis, all of those that meet."""
        from torch.onnx import symbolic_helper

        rank, axis = x.type().dim(), symbolic_helper._maybe_get_const(dim, "i")
        if not rank or not isinstance(axis, int):
            return plain(graph, x, dim, index, source, alpha)
        kind = values.kind_of(x)
        scale = 1.0 if alpha is None else values.number_of(alpha)
        addend = source if scale == 1 else graph.op("Mul", source, values.cast(graph, alpha, values.kind_of(source)))
        axis %= rank
        lengths = _whole(graph, [-1 if i == axis else 1 for i in range(rank)])
        spread = graph.op("Expand", graph.op("Reshape", index, lengths), graph.op("Shape", source))
        return graph.op("ScatterElements", x, spread, values.cast(graph, addend, kind), axis_i=axis, reduction_s="add")

    return form


def _index_put(plain: Form) -> Form:
    def form(graph: Any, x: Any, indices: Any, source: Any, accumulate: Any = None) -> Any:
        """Elements or rows added at indices of the first axes, all of those that meet."""
        from torch.onnx import symbolic_helper

        parts = _whole_parts(indices)
        adds = accumulate is not None and bool(symbolic_helper._maybe_get_const(accumulate, "b"))
        if parts is None or not adds:
            return plain(graph, x, indices, source, accumulate)
        shape = graph.op("Shape", reduce(lambda a, b: graph.op("Add", a, b), parts))
        last = _whole(graph, [-1])
        columns = [graph.op("Unsqueeze", graph.op("Expand", part, shape), last) for part in parts]
        rows = graph.op(
            "Slice", graph.op("Shape", x), _whole(graph, [len(parts)]), _whole(graph, [1 << 31]), _whole(graph, [0])
        )
        addend = values.cast(graph, source, values.kind_of(x))
        spread = graph.op("Expand", addend, graph.op("Concat", shape, rows, axis_i=0))
        return graph.op("ScatterND", x, graph.op("Concat", *columns, axis_i=-1), spread, reduction_s="add")

    return form


def _whole_parts(indices: Any) -> list[Any] | None:
    """The tensors of an index, where all are int64; None for masks, slices and other types among them."""
    import torch
    from torch.onnx import symbolic_helper

    if not symbolic_helper._is_packed_list(indices):
        return None
    parts = symbolic_helper._unpack_list(indices)
    whole = [not symbolic_helper._is_none(p) and values.dtype_of(values.kind_of(p)) == torch.int64 for p in parts]
    return list(parts) if parts and all(whole) else None


def _from_the_start(graph: Any, index: Any, shape: Any, axis: int) -> Any:
    size = graph.op("Gather", shape, _whole(graph, axis), axis_i=0)
    negative = graph.op("Less", index, _whole(graph, 0))
    return graph.op("Where", negative, graph.op("Add", index, size), index)


def _whole(graph: Any, numbers: Any) -> Any:
    import torch

    return graph.op("Constant", value_t=torch.tensor(numbers, dtype=torch.int64))
