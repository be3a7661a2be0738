"""Loops over ranges and single numbers that are joined in a list, as tiles with a last one at the border are:

    for i in [*range(0, w - 8, 6), w - 8]:      count, last = max(0, -((0 - (w - 8)) // 6)), w - 8
        ...                                     for step in range(count + 1):
                                                    i = step * 6 if step < count else last
                                                    ...

A script takes a list of numbers for a sequence of ONNX, which has no such tensors.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class _Piece:
    """Numbers of the list: how many there are (an expression), and the one at `{step}`."""

    before: list[str]
    count: str
    number: str


def write_joined_ranges(loop: ast.For) -> list[ast.stmt]:
    """The loop over the numbers of its steps; itself where it is over something else than a list with a range in it."""
    elements = _elements(loop.iter)
    if elements is None or not isinstance(loop.target, ast.Name) or not any(map(_is_range, elements)):
        return [loop]
    suffix = f"{loop.lineno}_{loop.col_offset}"
    pieces = [_piece(element, f"{index}_{suffix}") for index, element in enumerate(elements)]
    step = f"step_{suffix}"
    starts = ["0"]
    for piece in pieces:
        starts.append(f"{starts[-1]} + {piece.count}")
    number = pieces[-1].number.format(step=f"({step} - ({starts[-2]}))")
    for piece, start, end in reversed(list(zip(pieces[:-1], starts[:-2], starts[1:-1], strict=True))):
        number = f"{piece.number.format(step=f'({step} - ({start}))')} if {step} < {end} else ({number})"
    before = [line for piece in pieces for line in piece.before]
    text = "\n".join((*before, f"for {step} in range({starts[-1]}):", f"    {loop.target.id} = {number}"))
    statements = [_at(statement, loop) for statement in ast.parse(text).body]
    counted = statements[-1]
    assert isinstance(counted, ast.For)
    counted.body += loop.body
    counted.orelse = loop.orelse
    return statements


def _at(statement: ast.stmt, loop: ast.For) -> ast.stmt:
    for node in ast.walk(statement):
        ast.copy_location(node, loop)
    return statement


def _elements(numbers: ast.expr) -> list[ast.expr] | None:
    """Ranges and numbers of a list display, of `list(range(n))`, and of the sum of such; None of anything else."""
    match numbers:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            inner = [e.value if isinstance(e, ast.Starred) else e for e in elements]
            starred = [isinstance(e, ast.Starred) for e in elements]
            return inner if all(s == _is_range(e) for s, e in zip(starred, inner, strict=True)) else None
        case ast.Call(func=ast.Name(id=("list" | "tuple")), args=[ast.expr() as whole], keywords=[]):
            return [whole] if _is_range(whole) else None
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _elements(left), _elements(right)
            return None if first is None or second is None else [*first, *second]
    return None


def _is_range(element: ast.expr) -> bool:
    match element:
        case ast.Call(func=ast.Name(id="range"), args=[_, *_], keywords=[]):
            return True
    return False


def _piece(element: ast.expr, suffix: str) -> _Piece:
    text = ast.unparse(element)
    if not isinstance(element, ast.Call) or not _is_range(element):
        return _Piece([f"number_{suffix} = {text}"], "1", f"number_{suffix}")
    bounds = [ast.unparse(bound) for bound in element.args]
    start, stop = bounds[:2] if len(bounds) > 1 else ("0", bounds[0])
    first, stride, count = (f"{name}_{suffix}" for name in ("first", "stride", "count"))
    before = [
        f"{first} = {start}",
        f"{stride} = {bounds[2] if len(bounds) > 2 else 1}",
        # The quotient rounded up, of either sign: a script knows no length of a range.
        f"{count} = max(0, -(({first} - ({stop})) // {stride}))",
    ]
    return _Piece(before, count, f"{first} + {{step}} * {stride}")
