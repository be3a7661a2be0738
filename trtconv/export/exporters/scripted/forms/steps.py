"""What the first step of a loop and the others run over: `range(n)` is 0, and `range(1, n)`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from trtconv.export.exporters.scripted.forms.folding import AtLeast, Facts


@dataclass(frozen=True)
class Steps:
    """A loop in two parts.

    `before` computes once what the loop runs over, `first` sets its variables for the first step. The others loop over
    `others` with `target`, and `later` sets the variables in each.
    """

    before: list[ast.stmt]
    first: list[ast.stmt]
    target: ast.expr
    others: ast.expr
    later: list[ast.stmt]
    first_facts: Facts
    later_facts: Facts


def steps_of(target: ast.expr, iterable: ast.expr, names: set[str]) -> Steps | None:
    """The two parts of `for target in iterable`; None where that has no numbered elements.

    `names` are those that the function uses, to which new ones are added.
    """
    arguments = _call(iterable, "range")
    if arguments is not None:
        return _of_range(target, arguments, names)
    before: list[ast.stmt] = []
    elements = _elements(iterable, names, before)
    if elements is None or not _fits(target, elements):
        return None
    number = _new_name("step", names)
    lengths: list[ast.expr] = [ast.Call(_load("len"), [_load(n)], []) for n in _lists(elements)]
    count = lengths[0] if len(lengths) == 1 else ast.Call(_load("min"), lengths, [])
    later = _sets(target, elements, _load(number))
    first = _sets(target, elements, ast.Constant(0))
    counted = elements.counted(target)
    return Steps(
        before, first, ast.Name(number, ast.Store()), _range(ast.Constant(1), count), later,
        dict(counted), {n: AtLeast(start + 1) for n, start in counted.items()},
    )  # fmt: skip


def _of_range(target: ast.expr, arguments: list[ast.expr], names: set[str]) -> Steps | None:
    if not isinstance(target, ast.Name) or not 1 <= len(arguments) <= 3:
        return None
    step = whole_number(arguments[2]) if len(arguments) == 3 else 1
    if step is None or step == 0:
        return None
    start: ast.expr = arguments[0] if len(arguments) > 1 else ast.Constant(0)
    stop = arguments[1] if len(arguments) > 1 else arguments[0]
    variable, low = target.id, whole_number(start)
    before: list[ast.stmt] = []
    if low is None:
        name = _new_name("start", names)
        before.append(_set(ast.Name(name, ast.Store()), start))
        start = _load(name)
    # The body may change what the end is computed from.
    if not isinstance(stop, ast.Constant):
        name = _new_name("stop", names)
        before.append(_set(ast.Name(name, ast.Store()), stop))
        stop = _load(name)
    second: ast.expr = ast.Constant(low + step) if low is not None else ast.BinOp(start, ast.Add(), ast.Constant(step))
    others = _range(second, stop, *([] if step == 1 else [ast.Constant(step)]))
    counts = low is not None and step > 0
    return Steps(
        before, [_set(target, start)], target, others, [],
        {variable: low} if counts else {}, {variable: AtLeast((low or 0) + step)} if counts else {},
    )  # fmt: skip


@dataclass(frozen=True)
class _Elements:
    """What each step takes: an element of a list, of several at once, or with its number before it."""

    name: str = ""
    parts: tuple[_Elements, ...] = ()
    start: int | None = None

    def counted(self, target: ast.expr) -> dict[str, int]:
        """The variable that `enumerate` counts in, with its first number."""
        if self.start is not None and isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name):
            return {target.elts[0].id: self.start}
        return {}


def _elements(iterable: ast.expr, names: set[str], before: list[ast.stmt]) -> _Elements | None:
    numbered, together = _call(iterable, "enumerate"), _call(iterable, "zip")
    if numbered is not None:
        start = whole_number(numbered[1]) if len(numbered) == 2 else 0
        inner = _elements(numbered[0], names, before) if start is not None and 1 <= len(numbered) <= 2 else None
        return None if inner is None else _Elements(parts=(inner,), start=start)
    if together is not None:
        parts = [_elements(part, names, before) for part in together]
        return None if not parts or None in parts else _Elements(parts=tuple(p for p in parts if p is not None))
    if any(_call(iterable, other) is not None for other in ("range", "reversed", "map", "filter", "iter")):
        return None
    name = _new_name("rows", names)
    before.append(_set(ast.Name(name, ast.Store()), iterable))
    return _Elements(name)


def _lists(elements: _Elements) -> list[str]:
    return [elements.name] if elements.name else [name for part in elements.parts for name in _lists(part)]


def _fits(target: ast.expr, elements: _Elements) -> bool:
    if elements.name:
        return True
    parts = elements.parts if elements.start is None else (None, *elements.parts)
    if not isinstance(target, ast.Tuple) or len(target.elts) != len(parts):
        return False
    return all(part is None or _fits(t, part) for t, part in zip(target.elts, parts, strict=True))


def _sets(target: ast.expr, elements: _Elements, number: ast.expr) -> list[ast.stmt]:
    if elements.name:
        return [_set(target, ast.Subscript(_load(elements.name), number, ast.Load()))]
    assert isinstance(target, ast.Tuple)
    targets, statements = list(target.elts), []
    if elements.start is not None:
        counted = number if elements.start == 0 else ast.BinOp(number, ast.Add(), ast.Constant(elements.start))
        statements.append(_set(targets.pop(0), counted))
    for part_target, part in zip(targets, elements.parts, strict=True):
        statements += _sets(part_target, part, number)
    return statements


def _call(expression: ast.expr, name: str) -> list[ast.expr] | None:
    """The arguments of a call of this builtin, where it is one."""
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Name) and expression.func.id == name:
        return None if expression.keywords else list(expression.args)
    return None


def whole_number(expression: ast.expr) -> int | None:
    """The number that is written there, below zero too; None for what is computed."""
    if isinstance(expression, ast.UnaryOp) and isinstance(expression.op, ast.USub):
        number = whole_number(expression.operand)
        return None if number is None else -number
    literal = isinstance(expression, ast.Constant) and type(expression.value) is int
    return expression.value if literal else None  # type: ignore[attr-defined]


def _new_name(name: str, names: set[str]) -> str:
    number = 0
    while f"{name}_{number}" in names:
        number += 1
    names.add(f"{name}_{number}")
    return f"{name}_{number}"


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _set(target: ast.expr, value: ast.expr) -> ast.stmt:
    return ast.Assign([target], value)


def _range(*arguments: ast.expr) -> ast.expr:
    return ast.Call(_load("range"), list(arguments), [])
