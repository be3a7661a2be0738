"""In which order the parts of a statement are computed."""

from __future__ import annotations

import ast

# Statements without others in them.
SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.Return)
# Their parts may not be computed, or more than once.
EMBEDDED = (ast.Lambda, ast.IfExp, ast.BoolOp, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Methods of lists and dictionaries that change them.
CHANGES = frozenset(("append", "extend", "insert", "pop", "clear", "reverse", "update"))


def may_write(node: ast.AST) -> bool:
    """True for what may write in place, or give a variable another value, within an expression."""
    if isinstance(node, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
        return True
    return isinstance(node, ast.Attribute) and node.attr.endswith("_") and not node.attr.endswith("__")
