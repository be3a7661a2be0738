"""Functions whose lists and dictionaries are written as separate variables compute what they computed."""

from __future__ import annotations

import ast
import random
import textwrap

import pytest
import torch
from torch import nn

from tests.export.exporters.scripted.programs import program
from trtconv.export.exporters.scripted.forms.elements.separation import separate_elements


class Owner:
    """What a method's module holds."""

    def __init__(self):
        self.layers, self.scales, self.config = 2, (1, 3, 5), {"rate": 7}
        self.cells = nn.ModuleList([nn.Identity(), nn.Identity(), nn.Identity()])


SEPARATED = {
    "a list by layer": """
        def f(self, x):
            h = [0 for _ in range(self.layers)]
            for row in x:
                for i in range(self.layers):
                    h[i] = h[i] * 2 + row + i
                    row = h[i]
            return h, h[-1]
    """,
    "parts of the module": """
        def f(self, x):
            h = [None] * len(self.cells)
            for row in x:
                for i, cell in enumerate(self.cells):
                    h[i] = row if h[i] is None else cell(h[i]) * 2 + row
                    if i == 1 and row > 3:
                        continue
                    row = row + h[i]
            return h[0], h[1:], len(h)
    """,
    "a new list in each step": """
        def f(self, x):
            h = [1, 2]
            for row in x:
                new = []
                for cell, (i, s) in zip(self.cells, enumerate(h)):
                    s = cell(s) + row * i
                    new.append(s)
                h = new
            a, b = h
            return a, b
    """,
    "pairs, put together and taken apart": """
        def f(self, x):
            states = [(0, 1)] * self.layers
            for row in x:
                states = [(a + row, b * 2) for a, b in states]
            hs, cs = zip(*states)
            return list(hs), list(cs)
    """,
    "a window": """
        def f(self, x):
            window = [0] * 3
            out = []
            for row in x:
                last = window.pop()
                window.insert(0, row + last)
                out.append(sum(window) * 10 + len(window))
            window.reverse()
            window += [9]
            window.extend([8, 7])
            return out, window
    """,
    "elements that change their place": """
        def f(self, x):
            s = [1, 2, 3]
            for row in x:
                s[0], s[1], s[2] = s[2] + row, s[0], s[1]
            s = [s[-1]] + s[:-1]
            return s
    """,
    "a dictionary": """
        def f(self, x):
            state = {"fast": 0, "slow": 1}
            for row in x:
                state["fast"] = state["fast"] + row * self.config["rate"]
                state.update(slow=state["slow"] * 2)
            for key, value in state.items():
                state[key] = value + 1
            state["new"] = 5
            return state["fast"], state.get("slow"), state.get("none"), list(state.values()), "new" in ("new",)
    """,
    "lists in a dictionary": """
        def f(self, x):
            state = {"h": [0] * 2, "c": [1, 1]}
            for row in x:
                for i in range(2):
                    state["h"][i], state["c"][i] = state["c"][i] + row, state["h"][i]
            return state["h"], state["c"][1]
    """,
    "by a branch": """
        def f(self, x):
            h = [1, 2]
            for row in x:
                if row > 2:
                    h = [h[1], h[0]]
                else:
                    h[0] += row
            return h
    """,
    "a list of another length in each branch, replaced behind it": """
        def f(self, x):
            h = [1]
            if x[0] > 2:
                h = [1, 2]
            h = [3, 4]
            return h[1]
    """,
    "elements read while others are written": """
        def f(self, x):
            h = [1, 2]
            for row in x:
                new = []
                for i, s in enumerate(h):
                    h[1] = h[1] + row
                    new.append(s * 2)
                h = new
            return h[0], h[1]
    """,
    "numbers of an attribute": """
        def f(self, x):
            s = []
            for k in self.scales[1:]:
                s.append(k * x[0])
            for i, (k, name) in enumerate(zip(reversed(self.scales), ["a", "b"]), 2):
                s.append(k + i)
            return s[0], s[-1], s[1:3]
    """,
}
TOGETHER = {
    "two names of one list": """
        def f(self, x):
            a = [1, 2]
            b = a
            a[0] = 7
            return b[0]
    """,
    "a list that grows": """
        def f(self, x):
            out = []
            for row in x:
                out.append(row)
            return out
    """,
    "an index that moves": """
        def f(self, x):
            h = [1, 2]
            for t in range(len(x)):
                h[t % 2] = h[t % 2] + x[t]
            return h
    """,
    "a list handed to a function": """
        def f(self, x):
            h = [3, 1]
            change(h)
            return h[0]
    """,
    "one list in another": """
        def f(self, x):
            a = [1, 2]
            b = [a, [3]]
            a[0] = 9
            return b[0][0]
    """,
    "a list that is replaced while it is gone through": """
        def f(self, x):
            h = [1, 2]
            out = 0
            for v in h:
                h = [5, 6]
                out = out * 10 + v
            return out, h[0]
    """,
    "a list that a step leaves longer": """
        def f(self, x):
            h = [1]
            for row in x:
                h = h + [row] if row > 2 else h
            return len(h)
    """,
    "a function inside": """
        def f(self, x):
            h = [1, 2]
            def g():
                return h[0]
            h[0] = 5
            return g()
    """,
}


def change(values):
    values.sort()


def results(source, x):
    function = ast.parse(textwrap.dedent(source)).body[0]
    separated = separate_elements(function, Owner(), {"torch": torch})
    values = []
    for tree in (function, separated):
        scope = {"torch": torch, "change": change}
        exec(compile(ast.fix_missing_locations(ast.Module([tree], [])), "f", "exec"), scope)
        try:
            values.append(scope["f"](Owner(), list(x)))
        except LookupError as error:
            values.append(type(error))
    return separated is not function, values


@pytest.mark.parametrize("name", SEPARATED)
@pytest.mark.parametrize("x", [(1,), (1, 2, 3, 4, 5), (4, 4, 0)])
def test_separate_variables_compute_the_same(name, x):
    changed, values = results(SEPARATED[name], x)
    assert changed
    assert values[0] == values[1]


@pytest.mark.parametrize("name", TOGETHER)
def test_what_is_not_of_this_kind_computes_the_same(name):
    _, values = results(TOGETHER[name], (1, 2, 3, 4))
    assert values[0] == values[1]


@pytest.mark.parametrize("name", ["a list that grows", "an index that moves", "a list handed to a function"])
def test_such_lists_stay_as_they_are(name):
    assert not results(TOGETHER[name], (1, 2))[0]


@pytest.mark.parametrize("seed", [0, *(pytest.param(s, marks=pytest.mark.slow) for s in range(1, 10))])
def test_random_functions_compute_the_same(seed):
    """40 functions that make, change, rename and read lists in branches and loops; most are written apart."""
    generator = random.Random(seed)
    separated = 0
    for _ in range(40):
        source = program(generator)
        changed, values = results(source, [generator.randrange(5) for _ in range(generator.randrange(4))])
        assert values[0] == values[1], source
        separated += changed
    assert separated > 12
