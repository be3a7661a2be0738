"""`torch.cdist(a, b, p=1)` as `torch.cdist(a, b, p=1.0)`: a script hands no whole number on as a decimal."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache


def write_decimals(call: ast.Call) -> None:
    """Make decimals of the whole numbers that a call of torch's functions or of a tensor's methods takes as such.

    The tree is changed in place. A parameter counts when each form of the function declares it as a float: of an
    operator in torch's schema, of a function of `torch.nn.functional` in its annotations.
    """
    match call.func:
        case ast.Attribute(value=ast.Name(id="F" | "functional") | ast.Attribute(attr="functional"), attr=name):
            decimal, offset = _of_function(name), 0
        case ast.Attribute(value=ast.Name(id="torch"), attr=name):
            decimal, offset = _of_operator(name), 0
        case ast.Attribute(attr=name):
            decimal, offset = _of_operator(name), 1
        case _:
            return
    for position, argument in enumerate(call.args, offset):
        if position in decimal:
            make_decimal(argument)
    for keyword in call.keywords:
        if keyword.arg in decimal:
            make_decimal(keyword.value)


def make_decimal(node: ast.expr) -> None:
    """A decimal of a whole number that stands in the code, with or without a sign; others stay as they are."""
    literal = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd) else node
    if isinstance(literal, ast.Constant) and type(literal.value) is int:
        literal.value = float(literal.value)


@cache
def _of_operator(name: str) -> frozenset[int | str]:
    """The positions and names of an operator's parameters that are floats in all its forms."""
    import torch

    packet = getattr(torch.ops.aten, name, None)
    schemas = [getattr(packet, form)._schema for form in packet.overloads()] if packet is not None else []
    parameters = [list(_declared(schema)) for schema in schemas if not any(a.is_out for a in schema.arguments)]
    common = set.intersection(*map(set, parameters)) if parameters else set()
    return frozenset(key for pair in common for key in pair)


def _declared(schema: object) -> Iterator[tuple[int, str]]:
    for position, argument in enumerate(schema.arguments):  # type: ignore[attr-defined]
        kind = str(argument.type)
        if kind in ("float", "Optional[float]"):
            yield position, argument.name


@cache
def _of_function(name: str) -> frozenset[int | str]:
    from torch.nn import functional

    function = getattr(functional, name, None)
    if not inspect.isfunction(function):
        return _of_operator(name)
    parameters = inspect.signature(function).parameters.values()
    floats = [(i, p.name) for i, p in enumerate(parameters) if p.annotation in (float, float | None)]
    return frozenset(key for pair in floats for key in pair)
