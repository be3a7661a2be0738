"""Lists that grow, sums of generators and variables behind their loops compute in new forms what they computed."""

from __future__ import annotations

import ast
import random
import re
import textwrap
from copy import deepcopy

import pytest

from tests.export.exporters.scripted.programs import program
from trtconv.export.exporters.scripted.forms.variables_behind import keep_loop_variables
from trtconv.export.exporters.scripted.forms.written_lists import write_lists

WRITTEN = {
    "two rows a step": """
        def f(self, x):
            rows = [1]
            for row in x:
                rows += [row, row * 2]
                rows.extend([row + len(rows)])
            return rows
    """,
    "a list with more behind it": """
        def f(self, x):
            rows, others = [], [0]
            for row in x:
                rows = rows + [row]
                others = [*others, row, others[-1] + row]
            return len(rows), rows[-1], others[0]
    """,
    "sums": """
        def f(self, x):
            t = 5
            y = sum(x[t] * t for t in range(len(x))) + sum([v for v in x if v > 1 if v % 2], 10) * t
            if sum(v * t for v in x) > 3:
                return sum((v, y)[0] for v in x), t
            for v in x:
                y -= sum(v * w for w in x)
            return y, t
    """,
    "behind a loop": """
        def f(self, x):
            for t in range(len(x)):
                y = x[t]
            for i, row in enumerate(x):
                if row > 3:
                    y += t
            for k in range(2, 5):
                y += k * i
            while y > 9:
                y -= 7
            return y, t, i, row, k
    """,
    "behind an inner loop": """
        def f(self, x):
            total, t = 0, 9
            for row in x:
                for t in range(row % 3):
                    total += t
                total = total * 2 + t
            return total, row
    """,
}
KEPT = {
    "a list with a second name": "def f(self, x):\n    a = [0]\n    b = a\n    a = a + [1]\n    return b",
    "a sum that may not be computed": "def f(self, x):\n    return x and sum(v for v in x)",
    "a list that a later element reads": "def f(self, x):\n    a = [0]\n    a += [1, a[-1]]\n    return a",
    "a variable of the loop alone": "def f(self, x):\n    for t in range(3):\n        x = [t]\n    return x",
    "a variable of two loops": """
        def f(self, x):
            for t in range(3):
                x = [t + v for v in x]
            for t in range(len(x)):
                x[t] = t * x[t]
            return x
    """,
    "a sum of its own": "def f(self, x):\n    sum = max\n    return sum(v for v in x)",
}


def _function(source: str) -> ast.FunctionDef:
    function = ast.parse(textwrap.dedent(source)).body[0]
    assert isinstance(function, ast.FunctionDef)
    return function


def _written(source: str) -> ast.FunctionDef:
    return keep_loop_variables(write_lists(_function(source)))


def _run(function: ast.FunctionDef, x: list[int]) -> object:
    names: dict[str, object] = {}
    exec(compile(ast.fix_missing_locations(ast.Module([function], [])), "<test>", "exec"), names)
    f = names["f"]
    assert callable(f)
    try:
        return f(None, deepcopy(x))
    except (ArithmeticError, LookupError, NameError, ValueError, TypeError) as error:
        return type(error)


@pytest.mark.parametrize("name", WRITTEN)
def test_it_computes_what_it_computed(name):
    function = _written(WRITTEN[name])
    assert ast.unparse(function) != ast.unparse(_function(WRITTEN[name]))
    for x in ([1], [4, 7], [5, 0, 3, 8, 1]):
        assert _run(function, x) == _run(_function(WRITTEN[name]), x)


@pytest.mark.parametrize("name", KEPT)
def test_it_stays(name):
    assert ast.unparse(_written(KEPT[name])) == ast.unparse(_function(KEPT[name]))


@pytest.mark.slow
def test_random_functions_compute_what_they_computed():
    generator = random.Random(0)
    changed = 0
    for _ in range(400):
        source = re.sub(r"(\w)\.append\((.*)\)$", r"\1 += [\2, n]", program(generator), flags=re.MULTILINE)
        last = generator.choice(["i", "row", "sum(v * n for v in a if v)"])
        source = source.replace("return a, b, s, n", f"return a, b, s, n, {last}")
        function = _written(source)
        changed += ast.unparse(function) != ast.unparse(_function(source))
        for x in ([3], [1, 4, 2]):
            expected = _run(_function(source), x)
            # Behind a loop without a step the form has a number, and Python nothing.
            if expected not in (NameError, UnboundLocalError):
                assert _run(function, x) == expected, source
    assert changed > 200
