"""Conditions on sizes that follow from the bounds of the dims, however many joint sizes those have."""

from __future__ import annotations

import numpy as np
import pytest

from trtconv.core.shape_space.space import parse_space
from trtconv.export.branches.by_size.size_guards import SymbolicDim, guard_of
from trtconv.proof.joint_sizes import size_grids

CONDITIONS = (
    ("Ne(8*N*(1 + FloorDiv(H - 1, 2)), 0)", True),
    ("Lt(N*H*W, 3241)", True),
    ("Lt(N*H*W, 3240)", False),
    ("Ge(H, 2*W)", False),
    ("Eq(Mod(H, 2), 1)", False),
    ("Le(Mod(H, 3), 2)", True),
    ("Ge(Max(N, H), 5)", True),
    ("Gt(H**2, W)", True),
    # True of every size, but not by the bounds of each by itself.
    ("Ge(N*H, H)", False),
)


@pytest.mark.parametrize(("text", "follows"), CONDITIONS)
def test_what_follows_from_bounds_holds_everywhere(text: str, follows: bool) -> None:
    import sympy
    from torch.utils._sympy.functions import FloorDiv, Mod

    symbols = {name: sympy.Symbol(name, integer=True, positive=True) for name in "NHW"}
    names = {"FloorDiv": FloorDiv, "Mod": Mod, **symbols}
    space = parse_space(["N=1:2:3", "H=5:10:45", "W=1:4:24"])
    dims = {symbol: SymbolicDim(symbol, name, 1) for name, symbol in symbols.items()}
    guard = guard_of(sympy.sympify(text, locals=names), True, dims, {})
    assert guard.follows_from_bounds(space) is follows
    holds = all(guard.holds(grids).all() for grids in size_grids(space, guard.names))
    assert holds or not follows


def test_a_definition_and_a_multiple_are_bounded_too() -> None:
    import sympy

    half, size = sympy.Symbol("half", integer=True), sympy.Symbol("size", integer=True)
    space = parse_space(["H=16:32:64%8"])
    dims = {half: SymbolicDim(half, "H", 8)}
    assert guard_of(size < 65, True, dims, {size: 8 * half}).follows_from_bounds(space)
    assert not guard_of(size < 64, True, dims, {size: 8 * half}).follows_from_bounds(space)
    assert guard_of(sympy.Eq(size, 0), False, dims, {size: 8 * half}).follows_from_bounds(space)


def test_fractions_are_left_to_evaluation() -> None:
    import sympy

    size = sympy.Symbol("size", integer=True)
    guard = guard_of(size / 2 < 100, True, {size: SymbolicDim(size, "N", 1)}, {})
    assert not guard.follows_from_bounds(parse_space(["N=1:2:3"]))
    assert np.all(guard.holds({"N": np.arange(1, 4)}))
