"""Loops whose first step is written apart compute what they computed, and no variable is None in them."""

from __future__ import annotations

import ast
import textwrap

import pytest

from trtconv.export.exporters.scripted.forms.folding import folded
from trtconv.export.exporters.scripted.forms.peeling import peel_loops

PEELED = {
    "a sum": """
        def f(x):
            total, scaled = 0, 0
            total = 0
            scaled = 0.5
            for t in range(len(x)):
                total = total + x[t]
                scaled = scaled * 2 + total + t
            return total, scaled
    """,
    "a state that is None": """
        def f(x):
            last, out = None, []
            for row in x:
                out.append(row if last is None else row - last)
                last = row
            return out
    """,
    "by a branch": """
        def f(x):
            h = None
            for t in range(len(x)):
                if h is None:
                    h = x[t]
                else:
                    h = 2 * h + x[t]
            return h
    """,
    "by the absence of None, with more": """
        def f(x):
            best, count = None, 0
            for t in range(0, len(x), 2):
                if best is not None and x[t] > 3:
                    count += t
                if not (best is None) and best > x[t]:
                    continue
                best = x[t]
            return best, count
    """,
    "by what is computed from the number of the step": """
        def f(x):
            h, out = None, []
            for t in range(len(x)):
                if t % 2 == 1 or t // 2 > 1:
                    out.append(h * 2)
                    continue
                h = x[t] if h is None else h + x[t]
            return out, h
    """,
    "a flag": """
        def f(x):
            first, out = True, []
            for i, row in enumerate(x, 3):
                if first:
                    h, first = row, False
                else:
                    h = h * 2 + row * i
                out.append(h)
            return out, first
    """,
    "the number of the step": """
        def f(x):
            out = []
            for t in range(len(x)):
                if t > 0:
                    h = h + x[t]
                if t == 0:
                    h = x[t]
                out.append(h)
            return out
    """,
    "two at once": """
        def f(x):
            h: object = None
            for i, (a, b) in enumerate(zip(x, x[::-1])):
                h = a * b if h is None else h + a * b - i
            return h, i, a
    """,
    "one None for two": """
        def f(x):
            low = high = None
            for row in x:
                low = row if low is None else min(low, row)
                high = row if high is None else max(high, row)
            return low, high
    """,
    "one in another": """
        def f(x):
            total, rows = None, []
            for a in x:
                inner = None
                for b in x:
                    inner = a + b if inner is None else max(inner, a * b)
                total = inner if total is None else total + inner
                rows.append(total)
            return rows
    """,
    "two loops": """
        def f(x):
            h = None
            for row in x:
                h = row if h is None else h + row
            h = None
            for t in range(len(x)):
                h = x[t] if h is None else h * 3 + x[t]
            return h
    """,
    "downwards": """
        def f(x):
            h, out = None, []
            for t in range(len(x) - 1, -1, -1):
                h = x[t] if h is None else h * 0.5 + x[t]
                out.append((t, h))
            return out
    """,
    "a comprehension with the same name": """
        def f(x):
            h, out = None, []
            for row in x:
                pairs = [h for h in x if h is not None]
                h = row if h is None else h + len(pairs)
                out.append((h, pairs))
            return out
    """,
    "another name of None": """
        def f(x):
            a = None
            b = a
            for row in x:
                b = row if b is None else b + row
                a = b
            return a, b
    """,
    "a number in the first step alone": """
        def f(x):
            out = []
            for t in range(len(x)):
                out.append(x[t] * t + (out[t - 1] if t else 0) + (0 if not t else out[-1]))
            return out
    """,
    "the end is changed on the way": """
        def f(x):
            n, h = len(x), None
            for t in range(n):
                h = x[t] if h is None else h + x[t]
                n = n - 1
            return h, n
    """,
}  # fmt: skip
LEFT = {
    "numbers": """
        def f(x):
            h, n = 0, 1.5
            h = 0
            for t, row in enumerate(x):
                h = max(h, t) * 2 + len(x)
                h += t if h > 3 else 1
            return h
    """,
    "an end before the last": """
        def f(x):
            h = None
            for row in x:
                h = row if h is None else h + row
                if h > 9:
                    break
            return h
    """,
    "None again": """
        def f(x):
            h = None
            for row in x:
                h = row if h is None else h + row
                if row == 2:
                    h = None
            return h
    """,
    "None in every second step": """
        def f(x):
            h, out = None, []
            for row in x:
                out.append(h)
                h = row if h is None else None
            return out
    """,
    "a test behind it": """
        def f(x):
            h = None
            for t in range(len(x) - 3):
                h = x[t]
            return 0 if h is None else h
    """,
    "set in some steps": """
        def f(x):
            h, out = None, []
            for row in x:
                if row > 2:
                    h = row
                out.append(0 if h is None else h)
            return out
    """,
    "its own variable is written": """
        def f(x):
            h = None
            for t in range(len(x)):
                h = t if h is None else h + t
                t = 0
            return h
    """,
    "a number in every third step": """
        def f(x):
            out = []
            for t in range(len(x)):
                out.append(x[t] if t % 3 else 0)
            return out
    """,
    "a flag that values turn": """
        def f(x):
            high, out = False, []
            for row in x:
                if row > 2:
                    high = True
                out.append(high)
            return out
    """,
}
LISTS = [[5], [1, 2], [3, 1, 2], [2, 2, 4, 1, 7, 3, 0]]


def function_of(source):
    return ast.parse(textwrap.dedent(source)).body[0]


def run(function, x):
    module = ast.Module([function], [])
    space: dict[str, object] = {}
    exec(compile(module, "peeled", "exec"), space)
    return space["f"](x)


@pytest.mark.parametrize("source", PEELED.values(), ids=PEELED)
def test_a_loop_in_two_parts_is_the_same(source):
    function = function_of(source)
    peeled = peel_loops(function)
    assert peeled is not function
    text = ast.unparse(peeled)
    assert "is None" not in text.replace("if h is not None]", ""), text
    for x in LISTS:
        assert run(peeled, list(x)) == run(function_of(source), list(x)), text


@pytest.mark.parametrize("source", LEFT.values(), ids=LEFT)
def test_what_is_not_settled_after_the_first_step_stays(source):
    function = function_of(source)
    before = ast.dump(function)
    assert peel_loops(function) is function
    assert ast.dump(function) == before


def test_a_parameter_that_is_never_given_is_none():
    function = function_of("""
        def f(x, h=None):
            for row in x:
                h = row if h is None else h + row
            return h
    """)
    assert peel_loops(function) is function
    peeled = peel_loops(function, ["h"])
    assert run(peeled, [1, 2, 3]) == 6
    assert "is None" not in ast.unparse(peeled)


@pytest.mark.parametrize(
    ("text", "expected"),
    {
        "h is None": "True", "h is not None": "False", "g is None": "False", "k is None": "k is None",
        "h is None or k": "True", "k and h is None": "k", "g is not None and (k or flag)": "k or True",
        "not flag": "False", "k if flag else g": "k", "f(h, g)": "f(None, g)", "lambda h: h": "lambda h: h",
        "[h for h in x if h is None]": "[h for h in x if h is None]", "t == 0": "False", "t > 0": "True",
        "t >= 1": "True", "t > 1": "t > 1", "t != 0": "True", "t < 1": "False", "t <= 1": "t <= 1", "n == 3": "True",
        "1 if t else 2": "1", "not n": "False", "t and 1": "t and 1",
    }.items(),
)  # fmt: skip
def test_what_holds_decides(text, expected):
    from trtconv.export.exporters.scripted.forms.folding import AtLeast, Unknown

    facts = {"h": None, "g": Unknown.VALUE, "k": Unknown.ANYTHING, "flag": True, "t": AtLeast(1), "n": 3}
    assert ast.unparse(folded(ast.parse(text, mode="eval").body, facts)) == expected
