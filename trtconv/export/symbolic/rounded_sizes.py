"""Sizes that are padded to a multiple, kept as that multiple while torch traces.

`H + (7 - H % 7) % 7` is `7 * ((H + 6) // 7)`, which torch does not know. A network that works on windows asks at every
view whether the first is a multiple of seven, how many sevens are in it, and whether those times seven are the whole;
torch can answer none of these, notes each as a condition, and puts ever longer sums into each other. Of the multiple it
answers them at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock


@contextmanager
def multiples_as_such() -> Iterator[None]:
    """In the block, a sum that is the next multiple of a number above or below a size is written as that multiple.

    A quotient that is one number in the whole range of its sizes is that number, and `ceil(H / 2)` is `(H + 1) // 2`:
    torch knows that of `32 * unit` a half is `16 * unit`, and of a float nothing.
    """
    from torch.fx.experimental.sym_node import SymNode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    rewrites = {
        **dict.fromkeys(("_add", "_sub"), as_multiple),
        **dict.fromkeys(("_ceil", "_floor"), as_quotient),
        "_int_floordiv": _as_constant,
    }
    patches = {name: _rewriting(getattr(SymNode, name), rewrite) for name, rewrite in rewrites.items()}
    # Where a float is rounded, torch notes of each whole quotient in it that it has no rest, which traces it for such
    # sizes alone, and fails where the dividend is negative. It stays right without.
    unguarded = mock.patch.object(ShapeEnv, "_simplify_floor_div", lambda env, expression: expression)
    with mock.patch.multiple(SymNode, **patches), quotients_of_unknowns(), unguarded:
        yield


@contextmanager
def quotients_of_unknowns() -> Iterator[None]:
    """In the block, what rounds or compares sizes is an unknown where torch has sympy simplify a quotient.

    torch simplifies what it divides by a common factor. sympy then tries every identity on every function inside, for
    a minute where the sizes of a detector's five feature maps are summed; the quotient needs none of them.
    """
    import sympy  # type: ignore[import-untyped]

    simplify = sympy.simplify

    def divide(expression: Any, *args: Any, **named: Any) -> Any:
        if args or named:
            return simplify(expression, *args, **named)
        unknowns: dict[Any, Any] = {}
        return sympy.cancel(_with_unknowns(expression, unknowns)).xreplace({u: e for e, u in unknowns.items()})

    with mock.patch.object(sympy, "simplify", divide):
        yield


def _with_unknowns(expression: Any, unknowns: dict[Any, Any]) -> Any:
    """The expression with a symbol for each part that is neither a sum, a product nor a power."""
    import sympy

    if isinstance(expression, sympy.Number | sympy.Symbol):
        return expression
    if isinstance(expression, sympy.Add | sympy.Mul) or (expression.is_Pow and expression.exp.is_Integer):
        return expression.func(*(_with_unknowns(part, unknowns) for part in expression.args))
    return unknowns.setdefault(expression, sympy.Dummy(integer=expression.is_integer))


def _rewriting(operation: Any, rewrite: Any) -> Any:
    """The operation of sizes, what it comes to written anew where it can be."""

    def operate(*operands: Any) -> Any:
        result = operation(*operands)
        # Where nodes are recorded torch calls it once more inside, and hands that result out, which may be a number.
        expression = getattr(result, "_expr", None)
        env = getattr(result, "shape_env", None)
        rewritten = None if expression is None or env is None else rewrite(expression, env.var_to_range)
        if rewritten is not None:
            result._expr = rewritten
            result._optimized_summation = False
        return result

    return operate


def as_multiple(total: Any, ranges: Any = None) -> Any:
    """The sum with each `X + (k - X % k) % k` and `X + -X % k` in it as `k * ((X + k - 1) // k)`, and each
    `X - X % k` as `k * (X // k)`; None where there are none.

    `ranges` are torch's of the symbols, by which a quotient may be a number.
    """
    import sympy
    from torch.utils._sympy.functions import FloorDiv, Mod, PythonMod

    if not total.is_Add:
        return None
    rewritten = total
    for term in total.args:
        factor, remainder = term.as_coeff_Mul()
        if not isinstance(remainder, Mod | PythonMod) or not remainder.args[1].is_Integer:
            continue
        size, step = remainder.args
        lacking = _size_that_lacks(size, step)
        if lacking is None:
            factor, lacking, above = -factor, size, 0
        else:
            above = step - 1
        others = rewritten - term - factor * lacking
        # Only where the size itself is in the sum, which then gets shorter.
        if len(sympy.Add.make_args(others)) < len(sympy.Add.make_args(rewritten)):
            quotient = FloorDiv(lacking + above, step)
            number = _as_constant(quotient, ranges or {})
            rewritten = others + factor * step * (quotient if number is None else number)
    return None if rewritten is total else rewritten


def as_quotient(rounded: Any, ranges: Any = None) -> Any:
    """`ceil(X / k)` as `(X + k - 1) // k` and `floor(X / k)` as `X // k` for whole X and k; None for anything else.

    Equal as Python computes them, in doubles, for all X below 2**53. `ranges` as for `as_multiple`.
    """
    from torch.utils._sympy.functions import CeilToInt, FloorDiv, FloorToInt, IntTrueDiv

    if not isinstance(rounded, CeilToInt | FloorToInt) or not isinstance(rounded.args[0], IntTrueDiv):
        return None
    size, step = rounded.args[0].args
    if not step.is_Integer or step <= 0:
        return None
    quotient = FloorDiv(size + (step - 1 if isinstance(rounded, CeilToInt) else 0), step)
    number = _as_constant(quotient, ranges or {})
    return quotient if number is None else number


def _size_that_lacks(inside: Any, step: Any) -> Any:
    """X, where what a remainder by `step` is taken of is `-X`, or a multiple of `step` less `X % step`; else None."""
    from torch.utils._sympy.functions import Mod, PythonMod

    constant, rest = inside.as_coeff_Add()
    if constant % step != 0 or not rest.could_extract_minus_sign():
        return None
    lacking = -rest
    if isinstance(lacking, Mod | PythonMod) and lacking.args[1] == step:
        return lacking.args[0]
    return lacking if constant == 0 else None


def _as_constant(expression: Any, ranges: Any) -> Any:
    """The one number that an expression is in the ranges of its symbols, else None."""
    from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

    symbols = expression.free_symbols
    if not symbols or not all(s in ranges for s in symbols):
        return None
    # torch starts at 2 where a size may be 1 as well.
    whole = {s: ValueRanges(1 if ranges[s].lower == 2 else ranges[s].lower, ranges[s].upper) for s in symbols}
    bounds = bound_sympy(expression, whole)
    return bounds.lower if bounds.lower == bounds.upper and bounds.lower.is_Integer else None
