"""Loops over joined ranges visit the numbers that they visited."""

from __future__ import annotations

import ast
import itertools

import pytest

from trtconv.export.exporters.scripted.forms.joined_ranges import write_joined_ranges

LISTS = [
    "[*range(0, w - 8, 6), w - 8]",
    "[0, *range(2, w, 3), w, w + 1, *range(w, 0, -4)]",
    "list(range(w)) + [w * 2]",
    "[-1] + list(range(w, 1, -2)) + [w]",
    "(*range(w - 3), w)",
    "tuple(range(1, w))",
]


def _loop(numbers: str) -> ast.For:
    loop = ast.parse(f"for i in {numbers}:\n    if i == 100:\n        continue\n    visited.append(i)").body[0]
    assert isinstance(loop, ast.For)
    return loop


@pytest.mark.parametrize(("numbers", "w"), [*itertools.product(LISTS, (0, 1, 2, 8, 9, 14, 15, 20))])
def test_the_same_numbers_in_the_same_order(numbers: str, w: int) -> None:
    statements = write_joined_ranges(_loop(numbers))
    assert ast.unparse(statements[-1].iter) != numbers  # type: ignore[attr-defined]
    variables = {"w": w, "visited": []}
    exec(compile(ast.Module(statements, []), "loop", "exec"), variables)
    assert variables["visited"] == list(eval(numbers, {"w": w}))


@pytest.mark.parametrize(
    "numbers", ["range(w)", "[1, 2, w]", "rows", "[*rows, w]", "[range(3), w]", "list(rows)", "rows + [1]"]
)
def test_other_loops_stay(numbers: str) -> None:
    loop = _loop(numbers)
    assert write_joined_ranges(loop) == [loop]


def test_one_that_unpacks_stays() -> None:
    loop = ast.parse("for i, j in [*range(3), w]:\n    pass").body[0]
    assert isinstance(loop, ast.For)
    assert write_joined_ranges(loop) == [loop]
