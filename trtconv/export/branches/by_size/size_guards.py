"""What a run by sizes decided: conditions on the named dims, evaluated at all their joint sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.shape_space.space import ShapeSpace
from trtconv.export.sizes.evaluate import evaluate_symbolic

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# sympy's and torch's classes of exact arithmetic on whole numbers, of which torch knows bounds.
_WHOLE = {
    *("Symbol", "Integer", "Zero", "One", "NegativeOne", "Add", "Mul", "Max", "Min", "FloorDiv", "CleanDiv"),
    *("Mod", "PythonMod", "Equality", "Unequality", "GreaterThan", "LessThan", "StrictGreaterThan"),
    *("StrictLessThan", "And", "Or", "Not", "BooleanTrue", "BooleanFalse"),
}


@dataclass(frozen=True)
class SymbolicDim:
    """A named dim in a run: `multiple` times a symbol, so that torch's algebra sees what its sizes divide by."""

    symbol: Any
    name: str
    multiple: int


@dataclass(frozen=True)
class SizeGuard:
    """An expression of the named dims that had `value` in a run.

    `definitions` are the symbols in it that stand for other expressions, those that others need first.
    """

    expression: Any
    value: bool | int | float
    dims: tuple[SymbolicDim, ...]
    definitions: tuple[tuple[Any, Any], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The dims in it, each once."""
        return tuple(dict.fromkeys(dim.name for dim in self.dims))

    @property
    def is_of_dims(self) -> bool:
        """False where a size is in it that is computed from values."""
        parts = (self.expression, *(meaning for _, meaning in self.definitions))
        symbols = {dim.symbol for dim in self.dims}.union(symbol for symbol, _ in self.definitions)
        return all(part.free_symbols <= symbols for part in parts)

    def holds(self, grids: Mapping[str, Array]) -> Array:
        """Where it holds among joint sizes, int64 arrays by dim that broadcast; raises UnreadableError."""
        import numpy as np

        values = {dim.symbol: grids[dim.name] // dim.multiple for dim in self.dims}
        for symbol, meaning in self.definitions:
            values[symbol] = evaluate_symbolic(meaning, values)
        return np.asarray(evaluate_symbolic(self.expression, values) == self.value)

    def follows_from_bounds(self, space: ShapeSpace) -> bool:
        """True when the lowest and highest size of each dim alone make it hold everywhere, as `N*H*W != 0` does.

        False says nothing. The bounds are those of torch's own `bound_sympy`.
        """
        import sympy  # type: ignore[import-untyped]
        from torch.utils._sympy.value_ranges import ValueRangeError, ValueRanges, bound_sympy

        parts = (*(meaning for _, meaning in self.definitions), self.expression)
        if not all(_is_whole(p) for part in parts for p in sympy.preorder_traversal(part)):
            return False
        bounds = {
            d.symbol: ValueRanges(space[d.name].min // d.multiple, space[d.name].max // d.multiple) for d in self.dims
        }
        try:
            for symbol, meaning in self.definitions:
                bounds[symbol] = bound_sympy(meaning, bounds)
            result = bound_sympy(self.expression, bounds)
        except (ValueRangeError, ArithmeticError, AttributeError, TypeError):
            return False
        return bool(result.is_singleton() and result.lower == self.value)


def _is_whole(part: Any) -> bool:
    name = type(part).__name__
    return name in _WHOLE or (name == "Pow" and bool(part.exp.is_Integer and part.exp > 0))


def guard_of(
    expression: Any, value: bool | int | float, symbols: Mapping[Any, SymbolicDim], definitions: Mapping[Any, Any]
) -> SizeGuard:
    """The guard of an answer, with the dims and the definitions that it needs."""
    dependencies = _definitions_of(expression, definitions)
    free = expression.free_symbols.union(*(meaning.free_symbols for _, meaning in dependencies))
    return SizeGuard(expression, value, tuple(symbols[s] for s in sorted(free, key=str) if s in symbols), dependencies)


def _definitions_of(expression: Any, definitions: Mapping[Any, Any]) -> tuple[tuple[Any, Any], ...]:
    """The definitions that an expression needs, those that others need first."""
    dependencies: dict[Any, Any] = {}

    def add(part: Any) -> None:
        for symbol in sorted(part.free_symbols, key=str):
            if symbol in definitions and symbol not in dependencies:
                add(definitions[symbol])
                dependencies[symbol] = definitions[symbol]

    add(expression)
    return tuple(dependencies.items())
