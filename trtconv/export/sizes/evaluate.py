"""Expressions of sizes, evaluated on arrays of joint sizes: torch's symbolic ones, and those of its messages."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


LARGEST_OF_FLOATS = 2**53


class UnreadableError(Exception):
    """An expression with something in it that is not arithmetic on sizes."""


def evaluate_symbolic(expression: Any, values: Mapping[Any, Array], floats: Any = None) -> Array:
    """A sympy expression of torch's with its symbols as int64 arrays that broadcast; bool for conditions.

    Its floats are FP64, as Python's, or of the NumPy type `floats`, each step rounded to it.

    Raises UnreadableError for a function that is not known, or a symbol without values.
    """
    import numpy as np
    from torch.utils._sympy.interp import sympy_interp

    if any(a.is_Integer and abs(int(a)) > LARGEST_OF_FLOATS for a in expression.atoms()):
        # Products with such numbers are beyond 64 bits; Python's integers are not.
        values = {symbol: np.asarray(v).astype(object) for symbol, v in values.items()}
    try:
        with np.errstate(all="ignore"):
            return np.asarray(sympy_interp(_analysis(floats or np.float64), dict(values), expression))
    except (AttributeError, KeyError, TypeError, ValueError, NotImplementedError, ArithmeticError) as error:
        raise UnreadableError(str(expression)) from error


@cache
def _analysis(floats: Any) -> Any:
    import numpy as np
    from torch.utils._sympy.reference import PythonReferenceAnalysis

    def whole(round_: Callable[[Any], Any]) -> Any:
        def apply(x: Any, dtype: Any = None) -> Any:
            return np.asarray(round_(x)).astype(np.int64)

        return staticmethod(apply)

    def to_float(x: Any, dtype: Any = None, src_dtype: Any = None) -> Any:
        return np.asarray(x).astype(floats)

    def divide(x: Any, y: Any) -> Any:
        return np.true_divide(to_float(x), to_float(y))

    functions: dict[str, Any] = {
        "and_": np.logical_and, "or_": np.logical_or, "not_": np.logical_not, "minimum": np.minimum,
        "maximum": np.maximum, "mod": operator.mod, "python_mod": operator.mod, "floordiv": operator.floordiv,
        "int_truediv": divide, "truediv": divide, "abs": np.abs, "sqrt": np.sqrt, "floor": np.floor,
        "ceil": np.ceil, "trunc": np.trunc, "where": np.where, "exp": np.exp, "log": np.log, "log2": np.log2,
        "pow": np.power, "pow_by_natural": np.power, "identity": lambda x: x, "eq": np.equal, "ne": np.not_equal,
    }  # fmt: skip
    members = {name: staticmethod(function) for name, function in functions.items()}
    members |= {
        "floor_to_int": whole(np.floor),
        "ceil_to_int": whole(np.ceil),
        "trunc_to_int": whole(np.trunc),
        "round_to_int": whole(np.rint),
        # NumPy's own multiplies by a power of ten and rounds that.
        "round_decimal": staticmethod(np.vectorize(lambda x, digits: round(float(x), int(digits)), otypes=[floats])),
        "sym_sum": staticmethod(_total),
        "to_dtype": staticmethod(to_float),
    }
    return type("NumpyAnalysis", (PythonReferenceAnalysis,), members)


def _total(parts: Any) -> Any:
    total: Any = 0
    for part in parts:
        total = total + part
    return total


_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.USub: operator.neg,
    ast.UAdd: operator.pos, ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip


def evaluate_text(text: str, values: Mapping[str, Array]) -> Array:
    """A Python expression on sizes, such as `Mod(H, 8) == 0`, with the names as int64 arrays that broadcast.

    Raises UnreadableError for anything but arithmetic, comparisons, and the functions of torch's messages.
    """
    import numpy as np

    try:
        tree = ast.parse(text.strip(), mode="eval").body
        # Where Python would raise, a condition says nothing.
        with np.errstate(divide="raise", invalid="raise"):
            return np.asarray(_value(tree, values))
    except (SyntaxError, RecursionError, ValueError, TypeError, ArithmeticError) as error:
        raise UnreadableError(text) from error


def _value(tree: ast.AST, values: Mapping[str, Array]) -> Any:
    import numpy as np

    if isinstance(tree, ast.Constant) and type(tree.value) in (int, float):
        return tree.value
    if isinstance(tree, ast.Name) and tree.id in values:
        return values[tree.id]
    if isinstance(tree, ast.UnaryOp) and type(tree.op) in _OPERATORS:
        return _OPERATORS[type(tree.op)](_value(tree.operand, values))
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        return np.logical_not(_value(tree.operand, values))
    if isinstance(tree, ast.BinOp) and type(tree.op) in _OPERATORS:
        return _OPERATORS[type(tree.op)](_value(tree.left, values), _value(tree.right, values))
    if isinstance(tree, ast.BoolOp):
        joined = np.logical_and if isinstance(tree.op, ast.And) else np.logical_or
        parts = [_value(v, values) for v in tree.values]
        result = parts[0]
        for part in parts[1:]:
            result = joined(result, part)
        return result
    if isinstance(tree, ast.Compare) and all(type(o) in _OPERATORS for o in tree.ops):
        sides = [_value(t, values) for t in (tree.left, *tree.comparators)]
        result = np.True_
        for index, compare in enumerate(tree.ops):
            result = np.logical_and(result, _OPERATORS[type(compare)](sides[index], sides[index + 1]))
        return result
    if isinstance(tree, ast.Call) and not tree.keywords and called_name(tree) in FUNCTIONS:
        return _call(called_name(tree), [_value(a, values) for a in tree.args])
    raise UnreadableError(ast.unparse(tree))


def called_name(tree: ast.AST) -> str:
    """The name of the function that is called, without its module; empty for anything but a call."""
    if not isinstance(tree, ast.Call):
        return ""
    return tree.func.attr if isinstance(tree.func, ast.Attribute) else getattr(tree.func, "id", "")


# The functions of torch's messages, by their names there.
FUNCTIONS: Mapping[str, str] = {
    "Mod": "mod", "PythonMod": "mod", "FloorDiv": "floor_divide", "CleanDiv": "floor_divide", "Max": "maximum",
    "Min": "minimum", "max": "maximum", "min": "minimum", "Eq": "equal", "Ne": "not_equal",
    "IntTrueDiv": "true_divide", "FloatTrueDiv": "true_divide", "Abs": "abs", "abs": "abs", "trunc": "trunc",
    "ceil": "ceil", "floor": "floor", "CeilDiv": "ceil", "sym_float": "asarray", "float": "asarray",
    "ToFloat": "asarray", "TruncToInt": "trunc", "CeilToInt": "ceil", "FloorToInt": "floor", "sym_int": "trunc",
    "int": "trunc", "sqrt": "sqrt", "_sym_sqrt": "sqrt", "OpaqueUnaryFn_sqrt": "sqrt", "_sym_log2": "log2",
    "OpaqueUnaryFn_log2": "log2",
}  # fmt: skip
# Those that make whole numbers of floats.
WHOLE_OF_FLOATS = ("trunc", "ceil", "floor", "TruncToInt", "CeilToInt", "FloorToInt", "sym_int", "int")


def _call(name: str, arguments: list[Any]) -> Any:
    import numpy as np

    if name == "CeilDiv":
        return -(-arguments[0] // arguments[1])
    if name in ("sym_float", "float", "ToFloat"):
        return np.asarray(arguments[0]).astype(np.float64)
    function = getattr(np, FUNCTIONS[name])
    result = arguments[0]
    if name in WHOLE_OF_FLOATS:
        return np.asarray(function(result)).astype(np.int64)
    if len(arguments) == 1:
        return function(result)
    for other in arguments[1:]:
        result = function(result, other)
    return result
