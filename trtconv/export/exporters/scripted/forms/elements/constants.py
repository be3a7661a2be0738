"""Numbers and lengths that are the same in every run of a module: of literals, of its attributes, of its parts."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from trtconv.export.exporters.scripted.forms.folding import COMPARED, COMPUTED


class VariesError(Exception):
    """An expression that may come to something else in another run."""


_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    **COMPUTED,
    **COMPARED,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
}
PLAIN = (int, float, bool, str, type(None))


def constant_of(node: ast.expr, read: Callable[[ast.expr], Any]) -> Any:
    """What an expression comes to; `read` says it of names, attributes and calls. Raises VariesError."""
    try:
        return _evaluated(node, read)
    except (TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise VariesError(ast.unparse(node)) from error


def _evaluated(node: ast.expr, read: Callable[[ast.expr], Any]) -> Any:
    match node:
        case ast.Constant(value=value) if isinstance(value, PLAIN):
            return value
        case ast.UnaryOp(op=kind, operand=operand) if type(kind) in _OPERATORS:
            return _OPERATORS[type(kind)](_evaluated(operand, read))
        case ast.BinOp(left=left, op=kind, right=right) if type(kind) in _OPERATORS:
            return _OPERATORS[type(kind)](_evaluated(left, read), _evaluated(right, read))
        case ast.Compare(left=left, ops=[kind], comparators=[right]) if type(kind) in _OPERATORS:
            return _OPERATORS[type(kind)](_evaluated(left, read), _evaluated(right, read))
        case ast.Subscript(value=container, slice=key):
            return _evaluated(container, read)[_evaluated(key, read)]
        case ast.IfExp(test=test, body=body, orelse=other):
            return _evaluated(body if _evaluated(test, read) else other, read)
        case ast.BoolOp(op=kind, values=values):
            for operand in values[:-1]:
                result = _evaluated(operand, read)
                if bool(result) == isinstance(kind, ast.Or):
                    return result
            return _evaluated(values[-1], read)
    return read(node)


def attribute_of(owner: Any, node: ast.expr) -> Any:
    """What `self.block.cells` is in the module. Raises VariesError for what it does not hold itself."""
    match node:
        case ast.Name(id="self") if owner is not None:
            return owner
        case ast.Attribute(value=base, attr=name):
            holder = attribute_of(owner, base)
            if hasattr(holder, "__dict__"):
                held = (vars(holder), getattr(holder, "_modules", {}), *(vars(k) for k in type(holder).__mro__))
                for names in held:
                    if name in names:
                        return names[name]
    raise VariesError(ast.unparse(node))


def number_of_parts(value: Any) -> int:
    """How many parts a list of modules, a tuple or a list of an attribute has. Raises VariesError for others."""
    from torch import nn

    if isinstance(value, (nn.ModuleList, nn.Sequential, nn.ParameterList, tuple, list)):
        return len(value)
    raise VariesError(type(value).__name__)
