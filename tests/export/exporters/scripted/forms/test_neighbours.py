"""Parts of lists that are looped over and queues compute in new forms what they computed."""

from __future__ import annotations

import ast
import collections
import itertools
import textwrap
from copy import deepcopy

import pytest

from trtconv.export.exporters.scripted.forms.deques import write_deques
from trtconv.export.exporters.scripted.forms.neighbours import count_neighbours

NAMESPACE = {
    "itertools": itertools, "pairwise": itertools.pairwise, "collections": collections, "deque": collections.deque,
    "stack": tuple,
}  # fmt: skip
WRITTEN = {
    "pairs": """
        def f(x):
            rows = [v * 2 for v in x]
            out = [b - a for a, b in itertools.pairwise(rows)]
            for a, b in pairwise(rows):
                out.append(a * b)
            return out, sum(a * b for a, b in zip(rows, rows[1:]) if a > 2)
    """,
    "parts": """
        def f(x):
            out, number = [], 7
            for i, (a, b, c) in enumerate(zip(x[:-2], x[1:-1], x[2:])):
                out.append(a - 2 * b + c * i + number)
            for v in x[2:]:
                out.append(v)
            return out, [v * number for v in x[:-1]]
    """,
    "a window that fills": """
        def f(x):
            last, out = deque(maxlen=3), []
            for v in x:
                last.append(v)
                out.append((sum(last), len(last), last[0], stack(list(last))))
            return out
    """,
    "a full window": """
        def f(x):
            last = collections.deque([x[0], 0], maxlen=2)
            other = deque([0 for _ in range(2)], 2)
            out = []
            for v in x:
                last.append(v)
                other.appendleft(v)
                out.append(last[0] - last[1] * 3 + other[0] * 5 + other[-1] * 7)
            return out
    """,
    "a queue": """
        def f(x):
            waiting, out = deque(), []
            for v in x:
                waiting.append(v)
                if len(waiting) > 2:
                    old = waiting.popleft()
                    out.append(old - v)
            return out, len(waiting)
    """,
    "a window to the left": """
        def f(x):
            last, out = deque(maxlen=2), []
            for v in x:
                last.appendleft(v)
                out.append([w * 2 for w in last])
            return out
    """,
}
KEPT = {
    "a list that its loop changes": """
        def f(x):
            rows = list(x)
            for a in rows[1:]:
                rows.append(a)
            return rows
    """,
    "a part by a size": "def f(x):\n    return [v for v in x[len(x) - 2:]]",
    "a part of another step": "def f(x):\n    return [v for v in x[::2]]",
    "a whole list": "def f(x):\n    return [a + b for a, b in zip(x, x)]",
    "a queue with a second name": "def f(x):\n    a = deque(maxlen=2)\n    b = a\n    a.append(1)\n    return len(b)",
    "a queue that is handed on": "def f(x):\n    a = deque(x, maxlen=2)\n    return len(a)",
    "a queue that is turned": "def f(x):\n    a = deque()\n    a.append(x)\n    a.rotate(1)\n    return len(a)",
    "a queue half full": "def f(x):\n    a = deque([1], maxlen=2)\n    a.append(2)\n    return a[0]",
}


def _function(source: str) -> ast.FunctionDef:
    function = ast.parse(textwrap.dedent(source)).body[0]
    assert isinstance(function, ast.FunctionDef)
    return function


def _written(source: str) -> ast.FunctionDef:
    return count_neighbours(write_deques(_function(source), NAMESPACE), NAMESPACE)


def _run(function: ast.FunctionDef, x: list[int]) -> object:
    names = dict(NAMESPACE)
    exec(compile(ast.fix_missing_locations(ast.Module([function], [])), "<test>", "exec"), names)
    return names["f"](deepcopy(x))


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("x", [[4], [4, 7], [5, 0, 3], [5, 0, 3, 8, 1, 2]])
def test_it_computes_what_it_computed(name, x):
    function = _written(WRITTEN[name])
    assert "[1:]" not in (text := ast.unparse(function)) or "last[1:] + [" in text
    assert "deque" not in text
    assert "pairwise" not in text
    assert _run(function, x) == _run(_function(WRITTEN[name]), x)


@pytest.mark.parametrize("name", KEPT)
def test_it_stays(name):
    assert ast.unparse(_written(KEPT[name])) == ast.unparse(_function(KEPT[name]))


def test_another_pairwise_is_another():
    source = "def f(x):\n    return [a for a, b in pairwise(x)]"
    assert ast.unparse(count_neighbours(_function(source), {"pairwise": zip})) == ast.unparse(_function(source))
