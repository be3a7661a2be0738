"""Lambdas and local functions of one expression stand where they are called."""

import ast
import textwrap

import pytest

from trtconv.export.exporters.scripted.forms.elements.lambdas import write_lambdas_out


def written(source: str) -> str:
    [function] = ast.parse(textwrap.dedent(source)).body
    return ast.unparse(write_lambdas_out(function))


GOES = {
    "lambda": ("area = lambda q: q[0] * q[1]", "area(a) + area(b)", "a[0] * a[1] + b[0] * b[1]"),
    "computed once": ("half = lambda q: q / 2", "half(a + b)", "(a + b) / 2"),
    "function": ("def both(p, q): return p + q", "both(a, b * 2)", "a + b * 2"),
    "around": ("shift = lambda q: q + a", "[shift(v) for v in b]", "[v + a for v in b]"),
}


@pytest.mark.parametrize(("definition", "use", "expected"), GOES.values(), ids=GOES)
def test_a_call_becomes_its_expression(definition, use, expected):
    source = f"def f(a, b):\n    {definition}\n    return {use}"
    assert written(source) == f"def f(a, b):\n    return {expected}"


STAYS = {
    "computed twice": ("area = lambda q: q[0] * q[1]", "area(a + b)"),
    "writes": ("half = lambda q: q / 2", "half(a.add_(b))"),
    "is passed on": ("half = lambda q: q / 2", "map(half, a)"),
    "by name": ("half = lambda q: q / 2", "half(q=a)"),
    "default": ("half = lambda q, r=2: q / r", "half(a)"),
    "many": ("half = lambda *q: q[0]", "half(a)"),
    "spread": ("half = lambda q: q / 2", "half(*a)"),
    "recursive": ("half = lambda q: half(q)", "half(a)"),
    "hidden": ("shift = lambda q: q + a", "[shift(a) for a in b]"),
    "parameter of its name": ("half = lambda q: q / 2", "(lambda half: half(a))(b)"),
    "two lines": ("def half(q):\n        q = q + 1\n        return q", "half(a)"),
    "decorated": ("@b\n    def half(q): return q", "half(a)"),
}


@pytest.mark.parametrize(("definition", "use"), STAYS.values(), ids=STAYS)
def test_what_would_mean_another_thing_stays(definition, use):
    source = f"def f(a, b):\n    {definition}\n    return {use}"
    assert written(source) == ast.unparse(ast.parse(source))


def test_one_that_is_given_anew_stays():
    source = "def f(a, b):\n    half = lambda q: q / 2\n    if b:\n        half = lambda q: q / 3\n    return half(a)"
    assert written(source) == ast.unparse(ast.parse(source))


NMS = """
def overlaps(a, b, plus=0.0):
    area = lambda q: (q[:, 2] - q[:, 0] + plus) * (q[:, 3] - q[:, 1] + plus)
    def corner(p, q): return torch.maximum(p[:, None, :2], q[None, :, :2])
    size = (torch.minimum(a[:, None, 2:], b[None, :, 2:]) - corner(a, b)).clamp(min=0)
    shared = size[..., 0] * size[..., 1]
    return shared / (area(a)[:, None] + area(b)[None] - shared)


class Net(nn.Module):
    def forward(self, b, s):
        order = s.argsort(descending=True, stable=True)
        iou = overlaps(b[order], b[order])
        keep = torch.ones_like(s, dtype=torch.bool)
        place = torch.arange(s.shape[0])
        for i in range(s.shape[0]):
            keep = keep & ~((iou[i] > 0.5) & keep[i] & (place > i))
        return b[order] * keep[:, None], keep.sum()
"""


@pytest.mark.slow
def test_a_loop_behind_a_function_with_a_lambda_converts(write_module, export):
    """And with a parameter that is a number by its default."""
    result = export(f"{write_module(NMS)}:Net", ["b:float32[K,4]=0:20", "s:float32[K]=0:1"], "K=1:6:9")
    assert result.exporter == "torchscript"
