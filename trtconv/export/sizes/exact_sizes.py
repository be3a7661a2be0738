"""Sizes that Python computes in floats, exact in a file: in whole numbers, with what no formula gives apart.

`math.ceil(w * 1.1)` of 50 is 56 in Python, whose product is 55.00000000000001, and 55 in FP32. What the program
computes is known for every size of the range, so it is written as `(11 * w + 9) // 10`, and as 56 where w is 50.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.shape_space.space import DimRange
from trtconv.export.exporters.trace import Trace

if TYPE_CHECKING:
    import onnx
    import torch

MOST_SIZES = 4096
# TensorRT computes sizes from vectors of up to 64 numbers.
MOST_EXCEPTIONS = 60
MOST_DIVISOR = 512
ROUNDS = ("ceil", "floor", "trunc", "sym_int", "round")
OPERATORS: Mapping[str, Callable[..., Any]] = {
    "mul": operator.mul,
    "add": operator.add,
    "sub": operator.sub,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "neg": operator.neg,
    "pow": operator.pow,
    # NumPy keeps FP32.
    "_sym_sqrt": lambda v: v**0.5,
    # NumPy's FP32 knows no math.trunc.
    "ceil": lambda v: math.ceil(float(v)),
    "floor": lambda v: math.floor(float(v)),
    "trunc": lambda v: math.trunc(float(v)),
    "sym_int": lambda v: int(float(v)),
    "round": lambda v: round(float(v)),
    "sym_max": max,
    "sym_min": min,
}


@dataclass(frozen=True)
class Exact:
    """A whole number for each size of one dim: `(factor * size + shift) // divisor`, but for the exceptions.

    `steps` are sizes from which on it is more by a number.
    """

    name: str
    dim: str
    factor: int
    shift: int
    divisor: int
    exceptions: tuple[tuple[int, int], ...] = ()
    steps: tuple[tuple[int, int], ...] = ()


class _UnreadableError(Exception):
    """The program computes this size by something else than arithmetic on one dim."""


def inexact_sizes(program: torch.export.ExportedProgram, trace: Trace) -> tuple[Exact, ...]:
    """The sizes of a program that FP32 rounds to another whole number somewhere in the space, as whole numbers."""
    symbols = _symbols(program, trace)
    exact_sizes = []
    for node in program.graph.nodes:
        if node.op != "call_function" or getattr(node.target, "__name__", "") not in ROUNDS:
            continue
        try:
            dims = {symbols[s] for s in _sizes_in(node)}
            if len(dims) != 1:
                continue
            dim = dims.pop()
            sizes = trace.space[dim].values()
            if len(sizes) > MOST_SIZES:
                continue
            exact_values = [_value(node, symbols, n, float) for n in sizes]
            if any(w != _value(node, symbols, n, _narrow) for w, n in zip(exact_values, sizes, strict=True)):
                fitted = fit(node.name, dim, trace.space[dim], exact_values)
                exact_sizes += [fitted] if fitted else []
        except (_UnreadableError, KeyError, ArithmeticError, ValueError, TypeError):
            continue
    return tuple(exact_sizes)


def _narrow(value: float) -> Any:
    import numpy as np

    return np.float32(value)


def _symbols(program: torch.export.ExportedProgram, trace: Trace) -> dict[Any, str]:
    """Which dim each symbol of the program is, for inputs whose axis is the symbol itself."""
    user_inputs = set(program.graph_signature.user_inputs)
    inputs = [n for n in program.graph.nodes if n.op == "placeholder" and n.name in user_inputs]
    dim_of_symbol: dict[Any, str] = {}
    for node, spec in zip(inputs, trace.specs, strict=True):
        for size, dim in zip(node.meta["val"].shape, spec.dims, strict=True):
            expression = getattr(getattr(size, "node", None), "expr", None)
            if isinstance(dim, str) and expression is not None and expression.is_Symbol:
                dim_of_symbol[expression] = dim
    return dim_of_symbol


def _sizes_in(node: Any) -> set[Any]:
    """The symbols that a size is computed from. Raises _UnreadableError for anything but arithmetic on sizes."""
    if not hasattr(node, "target"):
        return set()
    if _is_size(node):
        return set(_expression(node).free_symbols)
    if getattr(node.target, "__name__", "") not in (*OPERATORS, "sym_float"):
        raise _UnreadableError
    return set().union(*(_sizes_in(a) for a in node.args))


def _is_size(node: Any) -> bool:
    return "sym_size" in str(node.target)


def _expression(node: Any) -> Any:
    """The expression of a size that is read from a tensor; one that rounds floats itself is not followed."""
    expression = getattr(getattr(node.meta.get("val"), "node", None), "expr", None)
    if expression is None or any(getattr(a, "is_Float", False) for a in expression.atoms()):
        raise _UnreadableError
    return expression


def _value(node: Any, symbols: Mapping[Any, str], size: int, number: Callable[[float], Any]) -> Any:
    """What a node of the program comes to at one size, with floats made by `number`."""
    if isinstance(node, float):
        return number(node)
    if not hasattr(node, "target"):
        return node
    if _is_size(node):
        return int(_expression(node).subs(dict.fromkeys(symbols, size)))
    name = node.target.__name__
    arguments = [_value(a, symbols, size, number) for a in node.args]
    if name == "sym_float":
        return number(arguments[0])
    if name == "truediv":
        arguments = [number(a) for a in arguments]
    return OPERATORS[name](*arguments)


def fit(name: str, dim: str, rng: DimRange, exact_values: list[int]) -> Exact | None:
    """Whole numbers for the exact values of each size in the range: a line with exceptions, or stairs with few steps.

    None where there are too many of both.
    """
    import numpy as np

    sizes, values = np.array(rng.values()), np.array(exact_values)
    if len(sizes) < 2 or values.min() < 0:
        return None
    slope = (exact_values[-1] - exact_values[0]) / int(sizes[-1] - sizes[0])
    best: tuple[int, int, int, int] | None = None
    for divisor in range(1, MOST_DIVISOR + 1):
        for factor in {math.floor(slope * divisor), math.ceil(slope * divisor)}:
            # A pair asks for a shift from `low` to `low + divisor - 1`; the best one suits the most pairs.
            lows = np.sort(values * divisor - factor * sizes)
            # ONNX's division of a negative number rounds towards zero.
            shifts = np.maximum(lows, -min(factor * int(sizes[0]), factor * int(sizes[-1])))
            suited = np.searchsorted(lows, shifts, "right") - np.searchsorted(lows, shifts - divisor + 1, "left")
            best_index = int(suited.argmax())
            if best is None or len(sizes) - int(suited[best_index]) < best[0]:
                best = len(sizes) - int(suited[best_index]), factor, int(shifts[best_index]), divisor
        if best is not None and best[0] == 0:
            break
    assert best is not None
    _, factor, shift, divisor = best
    others = (factor * sizes + shift) // divisor != values
    exceptions = tuple((int(n), int(v)) for n, v in zip(sizes[others], values[others], strict=True))
    if len(exceptions) <= MOST_EXCEPTIONS:
        return Exact(name, dim, factor, shift, divisor, exceptions)
    changes = np.flatnonzero(np.diff(values)) + 1
    steps = tuple((int(sizes[i]), int(values[i] - values[i - 1])) for i in changes)
    return Exact(name, dim, 0, int(values[0]), 1, steps=steps) if len(steps) <= MOST_EXCEPTIONS else None


def write_exact(graph: onnx.GraphProto, sizes: tuple[Exact, ...], trace: Trace) -> int:
    """Compute these values in whole numbers, in a graph whose inputs have their names; returns how many were found."""
    replaced = 0
    for exact in sizes:
        index, node = next(((i, n) for i, n in enumerate(graph.node) if exact.name in n.output), (-1, None))
        if node is None:
            continue
        nodes = _nodes(graph, exact, trace)
        for part in nodes:
            part.metadata_props.extend(node.metadata_props)
        del graph.node[index]
        for offset, part in enumerate(nodes):
            graph.node.insert(index + offset, part)
        replaced += 1
    return replaced


def _nodes(graph: onnx.GraphProto, exact: Exact, trace: Trace) -> list[onnx.NodeProto]:
    """The nodes of one value, a scalar; the last one makes it."""
    import onnx

    spec = next(s for s in trace.specs if exact.dim in s.dims)
    nodes: list[onnx.NodeProto] = []

    def constant(values: list[int], shape: tuple[int, ...] = ()) -> str:
        name = "trtconv_exact_" + "_".join(map(str, values)).replace("-", "minus_")
        if all(t.name != name for t in graph.initializer):
            graph.initializer.append(onnx.helper.make_tensor(name, onnx.TensorProto.INT64, shape, values))
        return name

    def op(kind: str, *inputs: str, **attributes: int) -> str:
        output = f"{exact.name}/exact_{len(nodes)}"
        nodes.append(onnx.helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output

    size = op("Gather", op("Shape", spec.name), constant([spec.dims.index(exact.dim)]))
    line = op("Add", op("Mul", size, constant([exact.factor])), constant([exact.shift]))
    value = op("Div", line, constant([exact.divisor]))
    if exact.exceptions:
        count = (len(exact.exceptions),)
        special = constant([n for n, _ in exact.exceptions], count)
        more = constant([v - (exact.factor * n + exact.shift) // exact.divisor for n, v in exact.exceptions], count)
        chosen = op("Mul", op("Cast", op("Equal", size, special), to=onnx.TensorProto.INT64), more)
        value = op("Add", value, op("ReduceSum", chosen, keepdims=0))
    if exact.steps:
        below = op("Less", size, constant([n for n, _ in exact.steps], (len(exact.steps),)))
        jumps = constant([jump for _, jump in exact.steps], (len(exact.steps),))
        climbed = op("Mul", op("Cast", op("Not", below), to=onnx.TensorProto.INT64), jumps)
        value = op("Add", value, op("ReduceSum", climbed, keepdims=0))
    nodes[-1].output[0] = exact.name
    return nodes
