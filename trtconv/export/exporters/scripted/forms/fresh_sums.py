"""`total += x` as `total = total + x` for a tensor of which nobody else holds a part: a script adds in place.

Python adds in place too, so that another name of the tensor (in a list, as `previous`, a row of it) would see the sum.
"""

from __future__ import annotations

import ast

from trtconv.export.exporters.scripted.likeness import CREATING

# Beside operators.
NEW = CREATING | {"rand", "randn", "eye", "sum", "mean"}


def write_sums_out(function: ast.FunctionDef) -> ast.FunctionDef:
    """The function with sums (and products) in place written out; the tree is changed in place."""
    names = {n.target.id for n in ast.walk(function) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}
    own = {name for name in names if _is_own(function, name)}
    result: ast.FunctionDef = _WritingOut(own).visit(function)
    return result


def _is_own(function: ast.FunctionDef, name: str) -> bool:
    if any(a.arg == name for a in ast.walk(function.args) if isinstance(a, ast.arg)):
        return False
    # Behind a return nothing is written.
    returned = {id(n.value) for n in ast.walk(function) if isinstance(n, ast.Return)}
    return all(_leaves_alone(node, name) for node in ast.walk(function) if id(node) not in returned)


def _leaves_alone(node: ast.AST, name: str) -> bool:
    """False for a statement or expression that may give the tensor, or a part of it, another name."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(values):
            pairs = (ast.Assign([t], v) for t, v in zip(targets, values, strict=True))
            return all(_leaves_alone(pair, name) for pair in pairs)
        case ast.Assign(targets=targets, value=value):
            writes = any(isinstance(n, ast.Name) and n.id == name for t in targets for n in ast.walk(t))
            plain = len(targets) == 1 and isinstance(targets[0], ast.Name)
            return not _gives(value, name) and (not writes or (plain and _is_new(value)))
        case ast.AnnAssign(value=value):
            return value is None or not _gives(value, name)
        case ast.Call(func=ast.Attribute(attr="append" | "insert" | "extend" | "setdefault"), args=arguments):
            return not any(_gives(a, name) for a in arguments)
        case ast.Tuple(ctx=ast.Store()) | ast.List(ctx=ast.Store()):
            return True
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
            return not any(_gives(e, name) for e in elements)
        case ast.Dict(values=values):
            return not any(_gives(v, name) for v in values)
        case ast.For(target=target) | ast.comprehension(target=target):
            return not any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(target))
    return True


def _gives(value: ast.expr, name: str) -> bool:
    """True for the variable itself, a part or a view of it, or one of two of which it is one."""
    match value:
        case ast.Name(id=other):
            return other == name
        case ast.Subscript(value=inner) | ast.Attribute(value=inner) | ast.Starred(value=inner):
            return _gives(inner, name)
        case ast.Call(func=function, args=arguments):
            return _gives(function, name) or any(_gives(a, name) for a in arguments)
        case ast.IfExp(body=body, orelse=orelse):
            return _gives(body, name) or _gives(orelse, name)
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return any(_gives(e, name) for e in elements)
    return False


def _is_new(value: ast.expr) -> bool:
    match value:
        case ast.BinOp() | ast.Constant() | ast.UnaryOp():
            return True
        case ast.Call(func=ast.Attribute(attr=method)) | ast.Call(func=ast.Name(id=method)):
            return method in NEW
    return False


class _WritingOut(ast.NodeTransformer):
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        if not isinstance(node.target, ast.Name) or node.target.id not in self._names:
            return node
        before = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        result = ast.copy_location(ast.BinOp(before, node.op, node.value), node)
        return ast.copy_location(ast.Assign([node.target], result), node)
