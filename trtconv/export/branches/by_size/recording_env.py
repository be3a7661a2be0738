"""torch's `ShapeEnv`, as one run by sizes needs it: every question about a size is answered by number and recorded.

torch's own looks first whether an answer holds for all sizes, by algebra, which is most of the time of a run with
symbols. Here the recorded conditions are evaluated at all joint sizes, so that the algebra would find nothing new.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from trtconv.core.shape_space.derived import names_of, size_of
from trtconv.export.branches.by_size.named_sizes import NamedSizes, named_sizes
from trtconv.export.branches.by_size.size_guards import SymbolicDim
from trtconv.export.module.user_code import Frame, is_library, is_own

# Files of torch that stand for sizes, and those that describe operators.
_OF_SIZES = ("/torch/fx/experimental/", "/torch/utils/_sympy/", "/contextlib.py")
_OF_OPERATORS = tuple(f"/torch/_{name}" for name in ("ops", "subclasses/", "refs/", "prims", "meta", "decomp/"))
# The comparisons of a SymNode by the name of their sympy class.
COMPARISONS = {"_eq": "Eq", "_ne": "Ne", "_lt": "Lt", "_le": "Le", "_gt": "Gt", "_ge": "Ge"}


def recording_env() -> Any:
    """A ShapeEnv that takes 0 and 1 for sizes like others, and keeps `answers`: {expression: (value, line)}."""
    import sympy  # type: ignore[import-untyped]
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    class RecordingEnv(ShapeEnv):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(duck_shape=False, specialize_zero_one=False)
            self.answers: dict[Any, tuple[bool | int | float, Frame | None]] = {}
            # The expressions that code asked about, whoever wrote it, and not an operator for a case of its own.
            self.by_code: set[Any] = set()

        def evaluate_expr(self, expression: Any, hint: Any = None, *args: Any, **options: Any) -> Any:
            if isinstance(expression, (bool, int, float)) or expression.is_number or not expression.free_symbols:
                return super().evaluate_expr(expression, hint, *args, **options)
            if type(hint) not in (bool, int, float):
                # A size that is computed from values.
                before = len(self.guards)
                answer = super().evaluate_expr(expression, hint, *args, **options)
                for guard in self.guards[before:]:
                    self.answers.setdefault(guard.expr, (True, _asking_line()))
                    self.by_code.add(guard.expr)
                return answer
            if not ShapeEnv._suppress_guards_tls():
                if expression not in self.answers:
                    self.answers[expression] = (hint, _asking_line())
                if expression not in self.by_code and _asked_by_code():
                    self.by_code.add(expression)
            return sympy.sympify(hint)

    return RecordingEnv()


@contextmanager
def without_algebra(env: Any, names: NamedSizes) -> Iterator[None]:
    """Within, comparisons of sizes of this env are not simplified, and long sizes are named."""
    import sympy
    from torch.fx.experimental.sym_node import SymNode

    def comparing(method: str, original: Any) -> Any:
        relation = getattr(sympy, COMPARISONS[method])

        def compare(node: Any, other: Any) -> Any:
            if node.shape_env is not env or type(node.hint) is not int or type(other.hint) is not int:
                return original(node, other)
            left, right = node.expr, other.expr
            if left == right or (left.is_number and right.is_number):
                return original(node, other)
            holds = getattr(node.hint, f"__{method[1:]}__")(other.hint)
            return SymNode(relation(left, right, evaluate=False), env, bool, holds)

        return compare

    with ExitStack() as stack:
        for method in COMPARISONS:
            stack.enter_context(mock.patch.object(SymNode, method, comparing(method, getattr(SymNode, method))))
        stack.enter_context(named_sizes(env, names))
        yield


def symbolic_dim(env: Any, name: str, sizes: Any, size: int) -> SymbolicDim:
    """A dim of a run at `size`, over its range (a DimRange)."""
    from torch._dynamo.source import ConstantSource
    from torch.fx.experimental.symbolic_shapes import DimDynamic
    from torch.utils._sympy.value_ranges import ValueRanges

    multiple = sizes.multiple
    source = ConstantSource(f"__dim_{name}")
    symbol = env.create_symbol(size // multiple, source, DimDynamic.DYNAMIC, do_not_specialize_zero_one=True)
    env.var_to_range[symbol] = ValueRanges(sizes.min // multiple, sizes.max // multiple)
    return SymbolicDim(symbol, name, multiple)


def symbolic_size(env: Any, dim: int | str, dims: Mapping[str, SymbolicDim]) -> Any:
    """The size of a dim of a spec: its number, or a SymInt."""
    values = {}
    for name in names_of(dim):
        symbol = dims[name].symbol
        values[name] = env.create_symintnode(symbol, hint=int(env.backed_var_to_val[symbol])) * dims[name].multiple
    return size_of(dim, values)


def _asked_by_code() -> bool:
    """False where an operator asks, in C++ or in torch's own description of it: for a case of its own, such as one row.

    Python asks a SymInt or SymBool, which are classes of torch/__init__.py; C++ asks the node in it.
    """
    frame, by_python = sys._getframe(2), False
    while frame is not None:
        name = frame.f_code.co_filename
        if name.endswith("/torch/__init__.py"):
            by_python = True
        elif not any(part in name for part in _OF_SIZES) and not is_own(name):
            return by_python and not any(part in name for part in _OF_OPERATORS)
        frame = frame.f_back  # type: ignore[assignment]
    return True


def _asking_line() -> Frame | None:
    """The user's line when it asks itself; None for a decision inside an operator, which every exporter knows."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if not is_library(name):
            return name, frame.f_lineno
        if "/torch/_ops" in name or "/torch/_subclasses/" in name or "/torch/_refs/" in name:
            return None
        frame = frame.f_back  # type: ignore[assignment]
    return None
