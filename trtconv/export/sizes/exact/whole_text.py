"""Texts of sizes in whole numbers: `3*CeilToInt(IntTrueDiv(T - 3, 3) + 1.0)` is `3*((T + 2)//3)`.

Nodes compute those.
"""

from __future__ import annotations

import ast

from trtconv.core.shape_space.space import ShapeSpace
from trtconv.export.sizes.evaluate import WHOLE_OF_FLOATS, UnreadableError, called_name, evaluate_text
from trtconv.export.sizes.exact.lines import fit

MOST_SIZES = 1 << 16


def in_whole_numbers(text: str, space: ShapeSpace) -> str:
    """The text with a line in the place of each fraction of one dim that is rounded, where a line gives it exactly."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError:
        return text
    return ast.unparse(_Lines(space).visit(tree))


class _Lines(ast.NodeTransformer):
    def __init__(self, space: ShapeSpace) -> None:
        self.space = space

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """The line of what is rounded; anything else with those inside of it."""
        line = self._line(node) if called_name(node) in WHOLE_OF_FLOATS else None
        return self.generic_visit(node) if line is None else line

    def _line(self, node: ast.Call) -> ast.AST | None:
        import numpy as np

        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in self.space}
        if len(names) != 1:
            return None
        (name,) = names
        if len(self.space[name].values()) > MOST_SIZES:
            return None
        try:
            sizes = evaluate_text(ast.unparse(node), {name: np.array(self.space[name].values(), np.int64)})
        except UnreadableError:
            return None
        line = fit("", name, self.space[name], sizes.astype(np.int64).tolist())
        if line is None or line.exceptions or line.steps:
            return None
        text = f"({line.factor}*{name} + {line.shift})//{line.divisor}" + (f" + {line.base}" if line.base else "")
        return ast.parse(text, mode="eval").body
