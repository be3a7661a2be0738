"""Methods that are handed lists of states are written out where they are called, and compute what they computed."""

from __future__ import annotations

import ast
import inspect
import textwrap

import pytest
import torch
from torch import nn

from trtconv.export.exporters.scripted.forms.elements.inlining import inline_local_functions, inline_methods
from trtconv.export.exporters.scripted.forms.elements.separation import separate_elements


class Net:
    """Methods of every kind, and functions that call them."""

    def __init__(self):
        self.cells = nn.ModuleList([nn.Identity(), nn.Identity()])
        self.replaced = lambda states: states

    def start(self, x):
        return {"h": [x[0], x[0] * 2], "n": 1}

    def step(self, y, states, scale=3):
        """A new list."""
        out = [s * scale for s in states]
        for i, cell in enumerate(self.cells):
            out[i] = cell(out[i]) + y
            y = out[i]
        return y, out

    def change(self, states, *, by):
        states[0] = states[0] + by
        return states[0]

    def outer(self, y, states):
        y = self.change(states, by=y)
        return self.change(states, by=y)

    def early(self, states):
        if states[0] > 3:
            return states[0]
        return states[1]

    def replaced(self, states):
        return states[0]

    def squared(self, q, states):
        return [s * q for s in states]

    def a_new_list(self, x):
        states = [0, 1]
        total = 0
        for row in x:
            y, states = self.step(row, states)
            total = total + y
        return total, states

    def a_changed_list(self, x):
        states = [0, 1]
        y = 0
        for row in x:
            y = self.change(states, by=row) + y
            row = self.outer(row, states)
            y = y * 2 + row
        return y, states

    def a_dictionary(self, x):
        state = self.start(x)
        for row in x:
            y, state["h"] = self.step(row, state["h"], scale=2)
            state["n"] = state["n"] + y
        return state["h"], state["n"]

    def a_name_of_the_callers(self, x):
        states, s = [1, 2], 7
        states = self.squared(s, states)
        return states, s

    def a_return_amid(self, x):
        states = [x[0], 9]
        y = self.early(states)
        return y + 1

    def replaced_on_the_instance(self, x):
        states = [1, 2]
        y = self.replaced(states)
        return y, states


    def run(self, cell, y, rows=1):
        y = cell(y) * rows
        return y + 1

    def handed_a_part(self, x):
        total = self.run(self.cells[1], x[0]) * 2
        for i, cell in enumerate(self.cells):
            total = total + self.run(cell, x[0], rows=i) - self.run(cell, i)
        return total if total > 5 else self.run(self.cells[0], total)


NAMES = ("a_new_list", "a_changed_list", "a_dictionary", "a_name_of_the_callers")
AS_THEY_ARE = ("a_return_amid", "replaced_on_the_instance")


def results(name, x):
    function = ast.parse(textwrap.dedent(inspect.getsource(getattr(Net, name)))).body[0]
    inlined = inline_methods(function, Net(), lists=True)
    separated = separate_elements(inlined, Net(), {"torch": torch})
    values = []
    for tree in (function, inlined, separated):
        scope = {"torch": torch}
        exec(compile(ast.fix_missing_locations(ast.Module([tree], [])), "f", "exec"), scope)
        values.append(scope[name](Net(), list(x)))
    return inlined is not function, separated is not inlined, values


@pytest.mark.parametrize("x", [(1,), (1, 5, 2, 4)])
@pytest.mark.parametrize("name", [*NAMES, *AS_THEY_ARE])
def test_it_computes_the_same(name, x):
    _, _, values = results(name, x)
    assert values[0] == values[1] == values[2]


@pytest.mark.parametrize("name", NAMES)
def test_methods_with_one_return_are_written_out(name):
    is_inlined, _, _ = results(name, (1, 2))
    assert is_inlined


@pytest.mark.parametrize("name", AS_THEY_ARE)
def test_others_are_called(name):
    is_inlined, _, _ = results(name, (1, 2))
    assert not is_inlined


@pytest.mark.parametrize("name", ["a_new_list", "a_dictionary", "a_name_of_the_callers"])
def test_their_lists_are_variables_then(name):
    _, is_separated, _ = results(name, (1, 2))
    assert is_separated


@pytest.mark.parametrize("x", [(1,), (9, 2)])
def test_a_method_that_is_handed_a_part_is_written_out(x):
    function = ast.parse(textwrap.dedent(inspect.getsource(Net.handed_a_part))).body[0]
    inlined = inline_methods(function, Net(), lists=False)
    # What is computed at times alone is called.
    assert ast.unparse(inlined).count("self.run(") == 1
    scope = {}
    exec(compile(ast.fix_missing_locations(ast.Module([inlined], [])), "f", "exec"), scope)
    assert scope["handed_a_part"](Net(), list(x)) == Net().handed_a_part(list(x))


LOCAL = {
    "two lines": ("def half(q):\n        q = q + 1\n        return q / 2", "y = half(a) * half(a * b)"),
    "a default and a name": ("def f(q, by=2, *, unused=1):\n        r = q * by\n        return r", "y = a"),
    "variables around it": (
        "def f(q, by=2):\n        r = q * by + a\n        return r",
        "a = a + 1\n    y = f(q=a, by=b) + f(b)",
    ),
    "several results": ("def f(q):\n        s = q + 1\n        return s, s * q", "b, y = f(a)\n    y = y + b"),
    "in a loop": (
        "def f(q):\n        s = q + a\n        return s",
        "y = b\n    for _ in range(3):\n        y = f(y) + f(a)",
    ),
    "one in another": (
        "def f(q):\n        s = q + 1\n        return s\n    def g(q):\n        s = f(q)\n        return s * f(s)",
        "y = g(a) + f(b)",
    ),
}
LOCAL_STAYS = {
    "passed on": "def f(q):\n        q = q + 1\n        return q\n    return list(map(f, [a, b]))",
    "two ends": "def f(q):\n        if q > 2:\n            return q\n        return q + 1\n    return f(a)",
    "itself": "def f(q):\n        r = 0 if q < 1 else f(q - 1)\n        return r\n    return f(a)",
    "behind a condition": "def f(q):\n        q = q + 1\n        return q\n    return a if a > b else f(b)",
    "set again": "def f(q):\n        q = q + 1\n        return q\n    f = abs\n    return f(a)",
    "writes what is read before it": (
        "def f(q):\n        q.append(1)\n        return q\n    c = [a]\n    return len(c) + len(f(c))"
    ),
}


def local(body: str) -> tuple[ast.FunctionDef, ast.FunctionDef]:
    [function] = ast.parse(f"def whole(a, b):\n    {body}").body
    assert isinstance(function, ast.FunctionDef)
    return function, inline_local_functions(function)


@pytest.mark.parametrize(("definition", "use"), LOCAL.values(), ids=list(LOCAL))
def test_a_local_function_stands_where_it_is_called(definition, use):
    function, inlined = local(f"{definition}\n    {use}\n    return y")
    results = []
    for tree in (function, inlined):
        namespace: dict = {}
        exec(compile(ast.Module([tree], []), "whole", "exec"), namespace)
        results.append(namespace["whole"](3, 5))
    assert results[0] == results[1]
    if "unused" not in definition:
        assert not any(isinstance(n, ast.FunctionDef) for s in inlined.body for n in ast.walk(s))


@pytest.mark.parametrize("body", LOCAL_STAYS.values(), ids=list(LOCAL_STAYS))
def test_a_local_function_that_goes_elsewhere_stays(body):
    function, inlined = local(body)
    assert ast.unparse(function) == ast.unparse(inlined)
