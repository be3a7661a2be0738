from __future__ import annotations

import time

import pytest

from trtconv.export.program.expression import require_expression

S = "Symbol('s77', positive=True, integer=True)"


@pytest.mark.parametrize(
    "text",
    [
        S, "s0", "s0 + 2*s1", "(s0 - 1)//2 + 1", "Max(1, s0)", "Mod(s0, 3)", "u0 >= 2", "-int_oo", "s0**2", "2**s0",
        f"Add(Mul({S}, Add(FloorDiv({S}, Integer(2)), Integer(3))), Mod({S}, Integer(3)))",
        f"GreaterThan({S}, Integer(4))", f"Pow({S}, Integer(-1))", "Float('0.5', precision=53)",
        f"ToFloat({S})", f"PowByNatural({S}, Integer(2))", "And(Ne(s0, 3), s1 < 4)", f"Mul(Rational(1, 2), {S})",
        "Piecewise(ExprCondPair(s0, s0 > 3), ExprCondPair(1, true))",
    ],
)  # fmt: skip
def test_sizes_as_torch_writes_them_are_taken(text):
    require_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch x')", "exec('1')", "().__class__", "s0.func", "[s0 for s0 in (1,)]",
        "lambda: 1",
        "Symbol('__import__(1)')", "Symbol(s0)", "Symbol('s0', cls=Dummy)", "Float('__import__')", "sympify('1')",
        "parse_expr('1')", "Function('f')(s0)", "Lambda(s0, s0)", "S('1')", "s0 if s0 else 1", "s0 := 3", "f's0'",
        "s0\n", "s0 # x", "s0; s1", "\u017f0", "s0 @ s1", "(s0, s1)", "{s0}", "'s0'", "Max(*s0)", "Max(s0, key=s1)", "",
        "s0!", "Integer('1')", "print(s0)", "N", "open", None, 3, "x" * 30_000,
        "s0" + " + s0" * 3000, "(" * 300 + "s0" + ")" * 300,
        "-" * 150 + "1",
    ],
)  # fmt: skip
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError):
        require_expression(text)


@pytest.mark.parametrize(
    "text",
    ["9**9**9", "Pow(9, Pow(9, 9))", "Pow(9, Integer(999999999))", "1 << 4", "LShift(1, 999999999)",
     "((9**60)**60)**60",
     "Pow(2, 99999999999999 + s0 - s0)", "PowByNatural(7, Add(9, 999999999))", "9" * 40],
)  # fmt: skip
def test_numbers_that_would_take_long_to_compute_are_refused(text):
    started = time.monotonic()
    with pytest.raises(ValueError):
        require_expression(text)
    assert time.monotonic() - started < 60


def test_what_torch_writes_for_its_own_functions_is_in_the_grammar():
    """A function that a later torch adds to its sizes has to be looked at."""
    from torch.utils._sympy import functions

    for name in functions.__all__:
        require_expression(f"{name}(s0, 2)")
