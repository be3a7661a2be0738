"""Python's floats beside FP64 tensors: torch.onnx rounds them to FP32 first, so `x.double() * 0.37` is off by 1e-8.

Its translation makes a FLOAT constant of each Python float whose operator binds no type to it, and a cast to DOUBLE
after it (torch/onnx/_internal/exporter/_building.py, `_determine_input_dtype`). What it was made of is remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock


@contextmanager
def python_floats() -> Iterator[list[tuple[Any, float]]]:
    """The FP32 constants (ir.Value) that torch.onnx makes of Python floats in the block, each with the float itself."""
    from onnx_ir import DataType
    from torch.onnx._internal.exporter import _building

    constants: list[tuple[Any, float]] = []
    create = _building._get_or_create_constant

    def noting(farm: Any, number: Any, dtype: Any, opset: Any) -> Any:
        constant = create(farm, number, dtype, opset)
        if isinstance(number, float) and dtype == DataType.FLOAT:
            constants.append((constant, number))
        return constant

    with mock.patch.object(_building, "_get_or_create_constant", noting):
        yield constants


def widen_exactly(constants: list[tuple[Any, float]]) -> int:
    """Replace each cast of such a constant to DOUBLE by the float as it was; returns how many. Works on an ir.Model."""
    import numpy as np
    import onnx_ir as ir

    changed = 0
    for constant, number in {id(c): (c, n) for c, n in constants}.values():
        for cast, position in list(constant.uses()):
            if position or not _is_to_double(cast) or float(np.float32(number)) == number:
                continue
            exact = ir.Node("", "Constant", [], [ir.AttrTensor("value", ir.tensor(np.float64(number)))])
            exact.metadata_props.update(cast.metadata_props)
            cast.graph.insert_before(cast, exact)
            exact.outputs[0].dtype, exact.outputs[0].shape = ir.DataType.DOUBLE, ir.Shape([])
            cast.outputs[0].replace_all_uses_with(exact.outputs[0], replace_graph_outputs=True)
            cast.graph.remove(cast, safe=True)
            changed += 1
    return changed


def _is_to_double(node: Any) -> bool:
    from onnx_ir import DataType

    if node.op_type == "Cast":
        return bool(node.attributes["to"].value == DataType.DOUBLE)
    return node.op_type == "CastLike" and node.inputs[1] is not None and node.inputs[1].dtype == DataType.DOUBLE
