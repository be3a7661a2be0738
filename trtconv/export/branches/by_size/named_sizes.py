"""Sizes that a run computes, each under a name of its own: expressions of expressions stay as short as the first.

Behind four strided layers a height is a floor of a floor of a floor of a floor, and torch's algebra on it takes tenths
of a second for every operator. Conditions are evaluated at all joint sizes anyway, so the algebra has nothing to find
out: what is longer than a few terms becomes a symbol, whose definition is evaluated first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

# Terms of an expression that keeps its form: one strided layer, (h - 1) // 2 + 1, has seven.
MOST_TERMS = 8


@dataclass
class NamedSizes:
    """The symbols of all runs of a search that stand for expressions; each has the same name in every run."""

    definitions: dict[Any, Any] = field(default_factory=dict)
    _bounds: dict[Any, Any] = field(default_factory=dict)
    _short: dict[Any, Any] = field(default_factory=dict)

    def shorten(self, expression: Any, env: Any) -> Any:
        """The expression itself when it is short, or a product of short ones; else the symbol that stands for it.

        Each symbol in it is known to the `ShapeEnv` afterwards.
        """
        short = self._short.get(expression)
        if short is None:
            short = self._short[expression] = self._shorten(expression, env)
        if short is not expression:
            for symbol in short.free_symbols:
                self._introduce(symbol, env)
        return short

    def _shorten(self, expression: Any, env: Any) -> Any:
        if expression.is_Symbol or expression.is_number or _terms(expression, MOST_TERMS) <= MOST_TERMS:
            return expression
        if expression.is_Mul:
            product = expression.func(*(self.shorten(factor, env) for factor in expression.args))
            if _terms(product, 2 * MOST_TERMS) <= 2 * MOST_TERMS:
                return product
        return self._name(expression, env)

    def _name(self, expression: Any, env: Any) -> Any:
        import sympy  # type: ignore[import-untyped]
        from torch.utils._sympy.value_ranges import bound_sympy

        bounds = bound_sympy(expression, env.var_to_range)
        # torch tells a symbol's kind by its first letter; sympy asks for signs all the time.
        digest = hashlib.sha256(str(expression).encode()).hexdigest()
        positive = True if bounds.lower >= 1 else None
        symbol = sympy.Symbol(f"s{int(digest[:12], 16)}", integer=True, positive=positive)
        self.definitions[symbol], self._bounds[symbol] = expression, bounds
        return symbol

    def _introduce(self, symbol: Any, env: Any) -> None:
        import sympy

        if symbol in env.backed_var_to_val or symbol not in self.definitions:
            return
        definition = self.definitions[symbol]
        for part in definition.free_symbols:
            self._introduce(part, env)
        env.backed_var_to_val[symbol] = sympy.Integer(definition.xreplace(env.backed_var_to_val))
        env.var_to_range[symbol] = self._bounds[symbol]
        env.var_to_sources[symbol] = []


@contextmanager
def named_sizes(env: Any, names: NamedSizes) -> Iterator[None]:
    """Within, whole numbers that are computed from the sizes of this `ShapeEnv` are named where they get long."""
    from torch.fx.experimental.sym_node import SymNode

    original = SymNode.__init__
    shortened: dict[Any, Any] = {}

    def init(node: Any, expr: Any, shape_env: Any, pytype: type, hint: Any, *rest: Any, **options: Any) -> None:
        if shape_env is env and pytype is int and type(hint) is int:
            short = shortened.get(expr)
            if short is None:
                short = shortened[expr] = names.shorten(expr, env)
            if short is not expr:
                expr = short
                # What torch notes of a sum of symbols does not hold of its name.
                rest, options = rest[:2], {k: v for k, v in options.items() if k != "optimized_summation"}
        original(node, expr, shape_env, pytype, hint, *rest, **options)

    with mock.patch.object(SymNode, "__init__", init):
        yield


def _terms(expression: Any, most: int) -> int:
    """How many nodes its tree has; anything over `most` once it has more."""
    count, waiting = 0, [expression]
    while waiting and count <= most:
        count += 1
        waiting += waiting.pop().args
    return count
