"""Padded sizes as multiples: what is rewritten, that it is equal, and a network of windows that is exported by it."""

import onnx
import pytest
import sympy
from torch.utils._sympy.functions import CeilToInt, FloorDiv, FloorToInt, IntTrueDiv, Mod, PythonMod
from torch.utils._sympy.value_ranges import ValueRanges

from tests.export.exporters.test_unit_sizes import Windows, trace
from trtconv.export.exporters.tracing.program import program_of
from trtconv.export.exporters.unit_sizes import sizes_in_units
from trtconv.export.symbolic.rounded_sizes import as_multiple, as_quotient, multiples_as_such, quotients_of_unknowns

H, W = (sympy.Symbol(name, integer=True, positive=True) for name in "HW")
ROUNDED = {
    "up": H + Mod(7 - Mod(H, 7), 7),
    "up, of a sum": 8 * H + W + 3 + Mod(7 - Mod(8 * H + W, 7), 7),
    "up, from further": H + Mod(14 - Mod(H, 7), 7),
    "up, of Python's remainder": H + PythonMod(7 - PythonMod(H, 7), 7),
    "up, by a negative size": H + PythonMod(-H, 32),
    "up, times channels": 24 * H + 24 * Mod(7 - Mod(H, 7), 7) + W,
    "down": H - Mod(H, 8),
    "down, of a quotient": FloorDiv(H, 2) - Mod(FloorDiv(H, 2), 3),
    "both dims": H + Mod(7 - Mod(H, 7), 7) + W + PythonMod(-W, 4),
}
OTHERS = {
    "the remainder alone": Mod(7 - Mod(H, 7), 7),
    "what is lacking of another size": W + Mod(7 - Mod(H, 7), 7),
    "a whole step at a multiple": H + 7 - Mod(H, 7) + W * Mod(H, 7),
    "another step outside": H + Mod(7 - Mod(H, 7), 5),
    "no multiple of the step": H + Mod(6 - Mod(H, 7), 7),
    "a half of what is lacking": H + FloorDiv(Mod(7 - Mod(H, 7), 7), 2),
    "a step that moves": H + PythonMod(-H, W),
}


def values(expression):
    return [int(expression.subs({H: h, W: w})) for h in range(1, 40) for w in (1, 6, 32)]


@pytest.mark.parametrize("total", ROUNDED.values(), ids=ROUNDED)
def test_a_rounded_size_is_the_multiple_at_every_size(total):
    multiple = as_multiple(total)
    assert not multiple.has(Mod, PythonMod)
    assert values(multiple) == values(total)


@pytest.mark.parametrize("total", OTHERS.values(), ids=OTHERS)
def test_what_only_looks_like_one_stays(total):
    multiple = as_multiple(total)
    assert multiple is None or values(multiple) == values(total)
    assert multiple is None or total is OTHERS["a whole step at a multiple"]


def test_a_quotient_that_is_one_number_in_the_range_is_that_number():
    total = H + Mod(7 - Mod(H, 7), 7)
    assert as_multiple(total, {H: ValueRanges(8, 14)}) == 14
    assert as_multiple(total, {H: ValueRanges(8, 15)}) == 7 * FloorDiv(H + 6, 7)
    # torch's range begins at 2 where the size may be 1.
    assert as_multiple(H - Mod(H, 2), {H: ValueRanges(2, 3)}) == 2 * FloorDiv(H, 2)


@pytest.mark.parametrize("rounding", [CeilToInt, FloorToInt])
@pytest.mark.parametrize("size", [H, 8 * H + 3, H - 5 * W], ids=str)
@pytest.mark.parametrize("step", [1, 2, 7])
def test_a_rounded_quotient_is_one_of_whole_numbers(rounding, size, step):
    quotient = as_quotient(rounding(IntTrueDiv(size, step)))
    exact = sympy.ceiling if rounding is CeilToInt else sympy.floor
    assert values(quotient) == values(exact(size / sympy.Integer(step)))


@pytest.mark.parametrize("value", [IntTrueDiv(H, 2), CeilToInt(IntTrueDiv(H, W)), CeilToInt(1.1 * H)], ids=str)
def test_what_is_no_whole_quotient_stays(value):
    assert as_quotient(value) is None


def test_half_of_a_multiple_is_a_multiple():
    assert as_quotient(CeilToInt(IntTrueDiv(32 * H, 2))) == 16 * H
    assert as_quotient(CeilToInt(IntTrueDiv(H, 4)), {H: ValueRanges(5, 8)}) == 2


SAME = """
import math
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv2d(3, 3, 3, 2) for _ in range(3))

    def forward(self, x):
        for convolution in self.convolutions:
            height, width = (max((math.ceil(n / 2) - 1) * 2 + 3 - n, 0) for n in x.shape[-2:])
            x = convolution(F.pad(x, (width // 2, width - width // 2, height // 2, height - height // 2)))
        return x
"""


@pytest.mark.parametrize(
    ("step", "operators"),
    [("%32", {"Pad", "Conv"}), pytest.param("", None, marks=pytest.mark.slow)],
    ids=["multiples", "any"],
)
def test_same_padding_of_multiples_is_constant(step, operators, export, write_module, tmp_path):
    """As TensorFlow's networks are padded in timm; TensorRT-RTX refuses paddings that are computed in floats."""
    write_module(SAME)
    space = f"H=64:96:160{step} W=64:96:160{step}"
    export("net.py:Net", ["x:float32[1,3,H,W]"], space, exporter="dynamo")
    nodes = onnx.load(tmp_path / "out" / "model.onnx").graph.node
    assert operators is None or {n.op_type for n in nodes} == operators


@pytest.mark.slow
def test_torch_asks_less_of_windows():
    def conditions():
        asked = []
        task = trace(Windows())
        task.flat.register_forward_hook(lambda _, i, o: asked.extend(i[0][0].shape[2].node.shape_env.guards))
        with sizes_in_units(task):
            program_of(task)
        return len(asked)

    before = conditions()
    with multiples_as_such():
        assert conditions() * 3 < before


SHIFTED = """
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.ModuleList(nn.Linear(4, 12) for _ in range(2))
        self.embed = nn.Conv2d(3, 4, 16, 16)

    def forward(self, x):
        x = self.embed(x).permute(0, 2, 3, 1)
        for shift, qkv in zip((0, 3), self.qkv):
            x = x + self.attend(x, [shift, shift], qkv)
        return x.mean((1, 2))

    def attend(self, x, shift, qkv):
        n, h, w, c = x.shape
        x = F.pad(x, (0, 0, 0, (7 - w % 7) % 7, 0, (7 - h % 7) % 7))
        rows, columns = x.shape[1:3]
        # One window needs no shift.
        if rows <= 7:
            shift[0] = 0
        if columns <= 7:
            shift[1] = 0
        if sum(shift) > 0:
            x = torch.roll(x, (-shift[0], -shift[1]), (1, 2))
        windows = (rows // 7) * (columns // 7)
        t = x.view(n, rows // 7, 7, columns // 7, 7, c).permute(0, 1, 3, 2, 4, 5).reshape(n * windows, 49, c)
        q, k, v = qkv(t).reshape(t.size(0), 49, 3, 2, c // 2).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1)
        if sum(shift) > 0:
            zones = x.new_zeros((rows, columns))
            zones[-7 : -shift[0], :] += 1
            zones[:, -7 : -shift[1]] += 2
            zones = zones.view(rows // 7, 7, columns // 7, 7).permute(0, 2, 1, 3).reshape(windows, 49)
            mask = (zones.unsqueeze(1) != zones.unsqueeze(2)).float() * -100
            scores = scores.view(t.size(0) // windows, windows, 2, 49, 49) + mask.unsqueeze(1).unsqueeze(0)
            scores = scores.view(-1, 2, 49, 49)
        t = (scores.softmax(-1) @ v).transpose(1, 2).reshape(t.size(0), 49, c)
        x = t.view(n, rows // 7, columns // 7, 7, 7, c).permute(0, 1, 3, 2, 4, 5).reshape(n, rows, columns, c)
        if sum(shift) > 0:
            x = torch.roll(x, (shift[0], shift[1]), (1, 2))
        return x[:, :h, :w]
"""


@pytest.mark.slow
def test_windows_that_are_shifted_at_some_sizes_are_exported_for_all(export, write_module):
    write_module(SHIFTED)
    result = export("net.py:Net", ["x:float32[N,3,H,W]"], "N=1:2:3 H=64:96:160%32 W=64:128:160%32", exporter="dynamo")
    # Four parts: either dim fits into one window up to 112.
    assert str(result.sizes).startswith("sizes tried: 48 of 48")


def test_quotients_by_common_factors():
    height, width = (FloorDiv(CeilToInt(IntTrueDiv(s, 32)) * 32 - 1, 8) + 1 for s in (H, W))
    total = 9 * height * width + 3 * height * FloorDiv(width, 2)
    cases = [(total, height), (total, 3 * height), (9 * height, height), (36 * height + 18, 6), (total + H, height)]
    plain = [FloorDiv(base, divisor) for base, divisor in cases]
    with quotients_of_unknowns():
        quotients = [FloorDiv(base, divisor) for base, divisor in cases]
    assert quotients[2] == 9
    for size in ({H: 33, W: 64}, {H: 100, W: 1}, {H: 7, W: 257}):
        for (base, divisor), before, quotient in zip(cases, plain, quotients, strict=True):
            expected = sympy.sympify(base).subs(size) // sympy.sympify(divisor).subs(size)
            assert sympy.sympify(quotient).subs(size) == sympy.sympify(before).subs(size) == expected
