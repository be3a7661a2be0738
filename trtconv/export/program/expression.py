"""The grammar of the symbolic sizes in an exported program.

torch hands these texts to `sympy.sympify`, which evaluates them as Python (torch/_export/serde/serialize.py,
`_parse_sym_expr`). torch writes them with sympy's `srepr`; older files hold plain arithmetic. Anything else is refused.
"""

from __future__ import annotations

import ast
import re

MOST_CHARACTERS = 20_000
MOST_NODES = 2_000
MOST_LEVELS = 60
MOST_DIGITS = 20
# A constant power is computed while the text is parsed.
MOST_BITS = 4_096

SYMBOL = re.compile(r"(s|u|zf|zuf|ps|i)[0-9]{1,5}", re.ASCII)
_NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{0,40})?(e[-+]?[0-9]{1,3})?", re.ASCII)
_CHARACTERS = re.compile(r"[A-Za-z0-9_ ()+\-*/%<>=!&|~.,']*", re.ASCII)

_CONSTANTS = {"true", "false", "oo", "int_oo", "nan"}
_POWERS = {"Pow", "PowByNatural", "FloatPow", "LShift"}
# torch.utils._sympy.functions.__all__ and the classes of sympy that torch's sizes are made of.
_FUNCTIONS = _POWERS | {
    "FloorDiv", "ModularIndexing", "Where", "PythonMod", "Mod", "CleanDiv", "CeilToInt", "FloorToInt", "CeilDiv",
    "IntTrueDiv", "FloatTrueDiv", "RShift", "IsNonOverlappingAndDenseIndicator", "TruncToFloat", "TruncToInt",
    "RoundToInt", "RoundDecimal", "ToFloat", "Identity", "Add", "Mul", "Max", "Min", "Abs", "floor", "ceiling", "sqrt",
    "Integer", "Rational", "Eq", "Ne", "Lt", "Le", "Gt", "Ge", "Equality", "Unequality", "StrictLessThan", "LessThan",
    "StrictGreaterThan", "GreaterThan", "And", "Or", "Not", "Piecewise", "ExprCondPair", "OpaqueUnaryFn_sqrt",
    "OpaqueUnaryFn_exp", "OpaqueUnaryFn_log", "OpaqueUnaryFn_log2", "BitwiseFn_bitwise_and", "BitwiseFn_bitwise_or",
    "BitwiseFn_bitwise_xor",
}  # fmt: skip
_ASSUMPTIONS = {"integer", "positive", "nonnegative", "negative", "nonpositive", "real", "zero"}
_OPERATORS = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.BitAnd, ast.BitOr, ast.USub, ast.UAdd,
    ast.Invert, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip


def require_expression(text: object) -> None:
    """Raise ValueError, saying why, unless `text` is a symbolic size, number or condition as torch writes them."""
    if not isinstance(text, str):
        raise ValueError("is not text")
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"has {len(text)} characters, at most {MOST_CHARACTERS} are read")
    if not _CHARACTERS.fullmatch(text):
        raise ValueError("has characters that no size has")
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ValueError("is not arithmetic") from error
    if sum(1 for _ in ast.walk(tree)) > MOST_NODES:
        raise ValueError(f"has more than {MOST_NODES} parts")
    _constant_bits(tree, 0)


def _constant_bits(node: ast.AST, level: int) -> int:
    """Bits that the constant part of the value can have. Raises ValueError for what the grammar lacks."""
    if level > MOST_LEVELS:
        raise ValueError(f"is nested more than {MOST_LEVELS} deep")
    bits = _by_kind(node, level + 1)
    if bits > MOST_BITS:
        raise ValueError("is a number beyond any size")
    return bits


def _by_kind(node: ast.AST, level: int) -> int:
    if isinstance(node, ast.Constant):
        return _number(node.value)
    if isinstance(node, ast.Name) and (SYMBOL.fullmatch(node.id) or node.id in _CONSTANTS):
        return 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, _OPERATORS):
        return _constant_bits(node.operand, level)
    if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS):
        if isinstance(node.op, ast.Pow):
            return _power(node.left, node.right, level)
        return 1 + _constant_bits(node.left, level) + _constant_bits(node.right, level)
    if isinstance(node, ast.Compare) and all(isinstance(o, _OPERATORS) for o in node.ops):
        return max(_constant_bits(n, level) for n in (node.left, *node.comparators))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _call(node, node.func.id, level)
    raise ValueError(f"holds {type(node).__name__}, which a size cannot have")


def _number(value: object) -> int:
    if isinstance(value, bool):
        return 1
    if isinstance(value, int) and value < 10**MOST_DIGITS:
        return max(1, value.bit_length())
    if isinstance(value, float):
        return 64
    raise ValueError(f"holds the constant {value!r:.40}, which a size cannot have")


def _call(node: ast.Call, name: str, level: int) -> int:
    if name in ("Symbol", "Float"):
        return _leaf(node, name)
    if name not in _FUNCTIONS:
        raise ValueError(f"calls '{name}', which a size cannot do")
    keywords = [k for k in node.keywords if k.arg != "evaluate" or not isinstance(k.value, ast.Constant)]
    if keywords:
        raise ValueError(f"calls '{name}' with keywords, which a size cannot do")
    if name in _POWERS and len(node.args) == 2:
        return _power(node.args[0], node.args[1], level)
    return 1 + sum(_constant_bits(a, level) for a in node.args)


def _leaf(node: ast.Call, name: str) -> int:
    """`Symbol('s0', positive=True, integer=True)` and `Float('0.5', precision=53)`: the only calls that take text."""
    text = node.args[0].value if len(node.args) == 1 and isinstance(node.args[0], ast.Constant) else None
    pattern = SYMBOL if name == "Symbol" else _NUMBER
    if not isinstance(text, str) or not pattern.fullmatch(text):
        raise ValueError(f"holds a {name} that no size has")
    for keyword in node.keywords:
        value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
        assumed = name == "Symbol" and keyword.arg in _ASSUMPTIONS and isinstance(value, bool)
        exact = name == "Float" and keyword.arg in ("precision", "dps") and type(value) is int and 0 < value <= 256
        if not (assumed or exact):
            raise ValueError(f"holds a {name} that no size has")
    return 1 if name == "Symbol" else 64


def _power(base: ast.AST, exponent: ast.AST, level: int) -> int:
    bits, _ = _constant_bits(base, level), _constant_bits(exponent, level)
    if isinstance(exponent, ast.UnaryOp):
        exponent = exponent.operand
    if isinstance(exponent, ast.Call) and isinstance(exponent.func, ast.Name):
        if exponent.func.id in ("Symbol", "Rational", "Float"):
            return 64 * bits
        if exponent.func.id == "Integer" and len(exponent.args) == 1:
            exponent = exponent.args[0]
            exponent = exponent.operand if isinstance(exponent, ast.UnaryOp) else exponent
    if isinstance(exponent, ast.Name):
        return 64 * bits
    value = exponent.value if isinstance(exponent, ast.Constant) else None
    if not isinstance(value, (int, float)) or value > 64:
        raise ValueError("raises to a power that no size has")
    # 2 ** n and 1 << n alike: a literal base of b bits has b * n bits or b + n.
    return max(1, int(value)) * (bits + 1)
