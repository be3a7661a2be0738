"""`F.interpolate(x, scale_factor=2.0)` by the operator that it calls: a script of it tries all ranks."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

# By mode: the operator, its axes, and whether it is told about corners. Of `nearest` the rank of images is taken; a
# script that gets another one raises.
OPERATORS: Mapping[str, tuple[str, int, bool]] = {
    "nearest": ("upsample_nearest2d", 2, False),
    "linear": ("upsample_linear1d", 1, True),
    "bilinear": ("upsample_bilinear2d", 2, True),
    "bicubic": ("upsample_bicubic2d", 2, True),
    "trilinear": ("upsample_trilinear3d", 3, True),
}
_PARAMETERS = ("input", "size", "scale_factor", "mode", "align_corners")


def write_resizes(function: ast.FunctionDef, namespace: Mapping[str, Any]) -> ast.FunctionDef:
    """The function with the operators of torch in place of calls by a scale that is a literal; changed in place."""
    import torch

    if namespace.get("torch") is not torch:
        return function
    result: ast.FunctionDef = _Resizing(namespace).visit(function)
    return result


class _Resizing(ast.NodeTransformer):
    def __init__(self, namespace: Mapping[str, Any]) -> None:
        self._namespace = namespace

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not _is_interpolate(node.func, self._namespace) or any(k.arg not in _PARAMETERS for k in node.keywords):
            return node
        arguments: dict[str | None, ast.expr] = dict(zip(_PARAMETERS, node.args, strict=False))
        arguments |= {k.arg: k.value for k in node.keywords}
        literals = {name: _literal(arguments.get(name)) for name in _PARAMETERS[1:]}
        operator = OPERATORS.get(literals["mode"] or "nearest") if isinstance(literals["mode"], str | None) else None
        scale, corners = literals["scale_factor"], literals["align_corners"]
        if operator is None or "input" not in arguments or not isinstance(scale, (int, float)) or scale <= 0:
            return node
        if literals["size"] is not None or not isinstance(corners, bool | None):
            return node
        name, axes, takes_corners = operator
        scales = ast.List([ast.Constant(float(scale)) for _ in range(axes)], ast.Load())
        flags = [ast.Constant(bool(corners))] if takes_corners else []
        # The parser of scripts looks for an attribute in the source behind its object.
        called: ast.expr = ast.copy_location(ast.Name("torch", ast.Load()), node)
        for part in ("_C", "_nn", name):
            called = ast.copy_location(ast.Attribute(called, part, ast.Load()), node)
        call = ast.Call(called, [arguments["input"], ast.Constant(None), *flags, scales], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))


def _is_interpolate(called: ast.expr, namespace: Mapping[str, Any]) -> bool:
    import torch

    names: list[str] = []
    while isinstance(called, ast.Attribute):
        names.insert(0, called.attr)
        called = called.value
    value = namespace.get(called.id) if isinstance(called, ast.Name) else None
    for name in names:
        value = getattr(value, name, None)
    return value is torch.nn.functional.interpolate


def _literal(expression: ast.expr | None) -> Any:
    """The value of a literal, None where there is none; the expression itself where it is something else."""
    if expression is None:
        return None
    return expression.value if isinstance(expression, ast.Constant) else expression
