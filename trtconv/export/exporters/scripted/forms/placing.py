"""New nodes of a syntax tree in the place of old ones."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping
from typing import TypeVar

_Node = TypeVar("_Node", bound=ast.AST)


def placed(new: _Node, old: ast.AST) -> _Node:
    """`new` with the place of the old node wherever it has none: the parser of scripts has the source."""
    for node in ast.walk(new):
        if not hasattr(node, "lineno"):
            ast.copy_location(node, old)
    return new


class Substituting(ast.NodeTransformer):
    """Puts expressions in place of variables."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """The value, of which a variable is written where the old one was."""
        if node.id not in self._values:
            return node
        value = copy.deepcopy(self._values[node.id])
        if isinstance(value, ast.Name):
            value.ctx = node.ctx
        return value
