"""What is known of a function's variables at a line: that one is None, a flag or a number, or that it is not None.

A variable of a script has one type, so `h = None` before a loop that puts a tensor into h is no script. Where it is
known at each test (`h is None`, `if first`, `t == 0`), the test is decided and the variable is None nowhere.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Unknown(Enum):
    """What a variable is where its value is not known."""

    VALUE = "not None"
    ANYTHING = "None or not"


@dataclass(frozen=True)
class AtLeast:
    """A whole number that is not below `low`."""

    low: int


# None, a flag, a number, or less than that.
Known = Any
Facts = dict[str, Known]

COMPARED: Mapping[type[ast.AST], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
COMPUTED: Mapping[type[ast.AST], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def is_constant(value: Known) -> bool:
    """True for None and a flag, which may stand in place of the variable."""
    return value is None or isinstance(value, bool)


def common(first: Facts, second: Facts) -> Facts:
    """What holds behind two branches."""
    return {n: v if second[n] == v else Unknown.ANYTHING for n, v in first.items() if n in second}


def constant_of(node: ast.expr) -> Known:
    """What a literal is; that it is no None otherwise."""
    if isinstance(node, ast.Constant) and (is_constant(node.value) or type(node.value) in (int, float)):
        return node.value
    return Unknown.VALUE


def folded(expression: ast.expr, facts: Facts) -> ast.expr:
    """The expression with what is known of its variables; the expression given is left as it is."""
    result: ast.expr = _Folding(facts).visit(expression)
    return result


def folded_test(expression: ast.expr, facts: Facts) -> ast.expr:
    """`folded` of what a branch asks, where a whole number stands for whether it is not zero."""
    return _Folding(facts).test(expression)


def joined(node: ast.BoolOp, values: Sequence[ast.expr]) -> ast.expr:
    """`and` or `or` of what its operands are, without flags that decide nothing and what follows one that decides."""
    ends = isinstance(node.op, ast.Or)
    left: list[ast.expr] = []
    for value in values:
        is_flag = isinstance(value, ast.Constant) and isinstance(value.value, bool)
        decides = is_flag and value.value is ends  # type: ignore[attr-defined]
        if decides or not is_flag:
            left.append(value)
        if decides:
            break
    if not left:
        return ast.copy_location(ast.Constant(not ends), node)
    return left[0] if len(left) == 1 else ast.copy_location(ast.BoolOp(node.op, left), node)


class _Folding(ast.NodeTransformer):
    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def generic_visit(self, node: ast.AST) -> ast.AST:
        fields = {}
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.AST):
                fields[name] = self.visit(value)
            elif isinstance(value, list):
                fields[name] = [self.visit(v) if isinstance(v, ast.AST) else v for v in value]
            else:
                fields[name] = value
        return ast.copy_location(type(node)(**fields), node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        value = self._facts.get(node.id, Unknown.ANYTHING)
        if isinstance(node.ctx, ast.Load) and is_constant(value):
            return ast.copy_location(ast.Constant(value), node)
        return node

    def _in_own_scope(self, node: ast.AST) -> ast.AST:
        """A comprehension or lambda, whose own variables hide others."""
        own = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        own |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
        return _Folding({n: v for n, v in self._facts.items() if n not in own}).generic_visit(node)

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_Lambda = _in_own_scope

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        decided = self._decided(node)
        return self.generic_visit(node) if decided is None else ast.copy_location(ast.Constant(decided), node)

    def _decided(self, node: ast.Compare) -> bool | None:
        if len(node.ops) != 1:
            return None
        left, kind, right = self._known(node.left), type(node.ops[0]), self._known(node.comparators[0])
        if kind in (ast.Is, ast.IsNot, ast.Eq, ast.NotEq) and (left is None or right is None):
            other = right if left is None else left
            if other is Unknown.ANYTHING:
                return None
            return (other is None) == (kind in (ast.Is, ast.Eq))
        if kind not in COMPARED:
            return None
        compare = COMPARED[kind]
        if type(left) is int and type(right) is int:
            return compare(left, right)
        if isinstance(left, AtLeast) and type(right) is int:
            return _of_all_above(compare, left.low, right)
        return None

    def _known(self, node: ast.expr) -> Known:
        if isinstance(node, ast.Name):
            return self._facts.get(node.id, Unknown.ANYTHING)
        if isinstance(node, ast.BinOp) and type(node.op) in COMPUTED:
            left, right = self._known(node.left), self._known(node.right)
            divides = isinstance(node.op, (ast.FloorDiv, ast.Mod))
            if type(left) is not int or type(right) is not int or (divides and not right):
                return Unknown.ANYTHING
            return COMPUTED[type(node.op)](left, right)
        return constant_of(node) if isinstance(node, ast.Constant) else Unknown.ANYTHING

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        return joined(node, [self.visit(value) for value in node.values])

    def test(self, node: ast.expr) -> ast.expr:
        number = self._facts.get(node.id) if isinstance(node, ast.Name) else None
        if type(number) is int or (isinstance(number, AtLeast) and number.low > 0):
            return ast.copy_location(ast.Constant(number != 0), node)
        result: ast.expr = self.visit(node)
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        operand = self.test(node.operand) if isinstance(node.op, ast.Not) else self.visit(node.operand)
        if isinstance(node.op, ast.Not) and isinstance(operand, ast.Constant) and is_constant(operand.value):
            return ast.copy_location(ast.Constant(not operand.value), node)
        return ast.copy_location(ast.UnaryOp(node.op, operand), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        test = self.test(node.test)
        if isinstance(test, ast.Constant) and is_constant(test.value):
            branch: ast.AST = self.visit(node.body if test.value else node.orelse)
            return branch
        return ast.copy_location(ast.IfExp(test, self.visit(node.body), self.visit(node.orelse)), node)


def _of_all_above(compare: Callable[[int, int], bool], low: int, number: int) -> bool | None:
    """What a comparison with `number` says of all whole numbers from `low` on, where it is the same of all."""
    if number < low:
        return compare(low, number)
    return compare(low, number) if number == low and compare in (operator.ge, operator.lt) else None
