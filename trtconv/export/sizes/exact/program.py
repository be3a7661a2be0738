"""Reading from a program how Python computes a whole number of sizes in floats: at one size, or at all joint ones."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from trtconv.core.shape_space.derived import is_name
from trtconv.export.sizes.evaluate import UnreadableError

if TYPE_CHECKING:
    import numpy as np
    import torch

    from trtconv.export.exporters.trace import Trace

    Array = np.ndarray[Any, np.dtype[Any]]

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
# Of these NumPy gives for arrays what Python gives for numbers, to the last bit; a power may be another one.
ALIKE = ("mul", "add", "sub", "truediv", "floordiv", "mod", "neg")


def rounded_nodes(program: torch.export.ExportedProgram) -> Iterator[Any]:
    """The nodes that make whole numbers of floats, in the order of the program."""
    for node in program.graph.nodes:
        if node.op == "call_function" and operator_name(node) in ROUNDS:
            yield node


def operator_name(node: Any) -> str:
    """The name of the function that a node calls."""
    return str(getattr(node.target, "__name__", ""))


def symbols_of(program: torch.export.ExportedProgram, trace: Trace) -> dict[Any, str]:
    """Which dim each symbol of the program is, for inputs whose axis is the symbol itself."""
    user_inputs = set(program.graph_signature.user_inputs)
    inputs = [n for n in program.graph.nodes if n.op == "placeholder" and n.name in user_inputs]
    dim_of_symbol: dict[Any, str] = {}
    for node, spec in zip(inputs, trace.specs, strict=True):
        for size, dim in zip(node.meta["val"].shape, spec.dims, strict=True):
            expression = getattr(getattr(size, "node", None), "expr", None)
            if is_name(dim) and expression is not None and expression.is_Symbol:
                dim_of_symbol[expression] = dim
    return dim_of_symbol


def sizes_in(node: Any) -> set[Any]:
    """The symbols that a size is computed from. Raises UnreadableError for anything but arithmetic on sizes."""
    if not hasattr(node, "target"):
        return set()
    if is_size(node):
        return set(expression_of(node).free_symbols)
    if operator_name(node) not in (*OPERATORS, "sym_float"):
        raise UnreadableError
    return set().union(*(sizes_in(a) for a in node.args))


def is_size(node: Any) -> bool:
    """True for a size that is read from a tensor."""
    return "sym_size" in str(node.target)


def expression_of(node: Any) -> Any:
    """The expression of a size that is read from a tensor; one that rounds floats itself is not followed."""
    expression = getattr(getattr(node.meta.get("val"), "node", None), "expr", None)
    if expression is None or any(getattr(a, "is_Float", False) for a in expression.atoms()):
        raise UnreadableError
    return expression


def value_at(node: Any, symbols: Mapping[Any, str], size: int, number: Callable[[float], Any]) -> Any:
    """What a node of the program comes to at one size, with floats made by `number`."""
    if isinstance(node, float):
        return number(node)
    if not hasattr(node, "target"):
        return node
    if is_size(node):
        return int(expression_of(node).subs(dict.fromkeys(symbols, size)))
    name = operator_name(node)
    arguments = [value_at(a, symbols, size, number) for a in node.args]
    if name == "sym_float":
        return number(arguments[0])
    if name == "truediv":
        arguments = [number(a) for a in arguments]
    return OPERATORS[name](*arguments)


def values_over(node: Any, sizes: Mapping[Any, Array], kind: Any) -> Array:
    """What a node comes to at all joint sizes, with floats of `kind`, np.float64 or np.float32.

    `sizes` are the sizes of each symbol along an axis of their own.
    """
    import numpy as np

    if not hasattr(node, "target"):
        return np.asarray(node, kind if isinstance(node, float) else np.int64)
    if is_size(node):
        return sizes[symbol_of(node)]
    name = operator_name(node)
    arguments = [values_over(a, sizes, kind) for a in node.args]
    if name == "sym_float":
        return arguments[0].astype(kind)
    if name in ROUNDS:
        rounding = {"ceil": np.ceil, "floor": np.floor, "round": np.rint}.get(name, np.trunc)
        return np.asarray(rounding(arguments[0].astype(np.float64))).astype(np.int64)
    if name == "truediv" or any(a.dtype.kind == "f" for a in arguments):
        arguments = [a.astype(kind) for a in arguments]
    if name in ("sym_min", "sym_max"):
        return np.asarray((np.minimum if name == "sym_min" else np.maximum)(*arguments))
    if name not in ALIKE:
        raise UnreadableError
    return np.asarray(OPERATORS[name](*arguments))


def symbol_of(node: Any) -> Any:
    """The symbol that a size is. Raises UnreadableError for a size that is computed of one."""
    expression = expression_of(node)
    if not expression.is_Symbol:
        raise UnreadableError
    return expression
