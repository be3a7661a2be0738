"""`int`, `float`, `min`, `max`, `len`, `range`, `math` and `numpy` that keep sizes, in the user's files while tracing.

`int(x.shape[2] * 1.5)` with Python's own int ends in a number: the size at which the module happened to be traced.
"""

from __future__ import annotations

import builtins
import math
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from trtconv.export.module.user_code import Frame, is_library, is_machinery
from trtconv.export.sizes.comparisons import require_divisor
from trtconv.export.sizes.identity import truths_by_identity
from trtconv.export.symbolic.arithmetic import size_steps
from trtconv.export.symbolic.arithmetic.numpy_numbers import symbolic_numpy
from trtconv.export.symbolic.arithmetic.size_bits import bits_of_sizes
from trtconv.export.symbolic.ranges import SymbolicRange
from trtconv.export.symbolic.sizes import is_symbolic, maximum, minimum, stays

if TYPE_CHECKING:
    from torch import nn

OWN_PACKAGE = __name__.split(".")[0]


class _LikeBuiltin(type):
    """Makes `isinstance(x, int)`, `issubclass`, `{int: ...}[type(x)]` and `array.astype(int)` mean what they say."""

    @property
    def dtype(cls) -> Any:
        """What NumPy takes the class for."""
        return np.dtype(cls.__mro__[1])

    def __eq__(cls, other: object) -> bool:
        return other is cls or other is cls.__mro__[1]

    def __hash__(cls) -> int:
        return hash(cls.__mro__[1])

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.__mro__[1])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__mro__[1])


class SymbolicInt(int, metaclass=_LikeBuiltin):
    """`int` that truncates a symbolic number without fixing it."""

    def __new__(cls, value: Any = 0, *rest: Any) -> Any:
        """What int(value) would be."""
        import torch

        if not stays(value):
            return builtins.int(value, *rest)
        if size_steps.is_remembered(value) and (whole := size_steps.rounded(value, builtins.int)) is not None:
            return whole
        if isinstance(value, torch.Tensor):
            return value.to(torch.int64)
        return torch.sym_int(value) if isinstance(value, torch.SymFloat) else value


class SymbolicFloat(float, metaclass=_LikeBuiltin):
    """`float` of a symbolic number without fixing it."""

    def __new__(cls, value: Any = 0.0) -> Any:
        """What float(value) would be."""
        import torch

        if not stays(value):
            return builtins.float(value)
        if isinstance(value, torch.Tensor):
            return value.to(torch.float32)
        return torch.sym_float(value) if isinstance(value, torch.SymInt) else value


def _extreme(pick: Any, plain: Any, choices: dict[Frame, None] | None) -> Any:
    def extreme(*values: Any, **options: Any) -> Any:
        if options or not (items := _numbers(values)) or not any(stays(v) for v in items):
            return plain(*values, **options)
        if choices is not None:
            frame = sys._getframe(1)
            choices[frame.f_code.co_filename, frame.f_lineno] = None
        best = items[0]
        for item in items[1:]:
            best = pick(best, item)
        return best

    return extreme


def _numbers(values: tuple[Any, ...]) -> list[Any]:
    listed = list(values[0]) if len(values) == 1 and isinstance(values[0], (list, tuple)) else list(values)
    return listed if listed and all(isinstance(v, (int, float)) or stays(v) for v in listed) else []


def _divided(a: Any, b: Any) -> Any:
    if not (stays(a) or stays(b)):
        return divmod(a, b)
    require_divisor(b)
    return a // b, a % b


def _rounded(value: Any, digits: Any = None) -> Any:
    """round() of a symbolic number: to the nearest, and to the even one of two that are as near."""
    import torch

    if digits is not None or not stays(value):
        return round(value) if digits is None else round(value, digits)
    if size_steps.is_remembered(value) and (whole := size_steps.rounded(value, round)) is not None:
        return whole
    if isinstance(value, torch.Tensor):
        return torch.round(value).to(torch.int64) if value.dtype.is_floating_point else value
    if isinstance(value, torch.SymInt):
        return value
    above, below = math.floor(value + 0.5), math.ceil(value - 0.5)
    return above - (above - below) * (above % 2)


def _length(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor) and value.dim() > 0 and is_symbolic(value.shape[0]):
        return value.shape[0]
    return value.length() if type(value) is SymbolicRange else len(value)


def _symbolic_math() -> types.SimpleNamespace:
    import torch

    def rounded(plain: Any, of_tensor: Any) -> Any:
        def apply(value: Any) -> Any:
            if size_steps.is_remembered(value) and (whole := size_steps.rounded(value, plain)) is not None:
                return whole
            if isinstance(value, torch.Tensor) and stays(value):
                return of_tensor(value).to(torch.int64) if value.dtype.is_floating_point else value
            return plain(value)

        return apply

    def root(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and stays(value):
            return value.to(torch.float32).sqrt()
        return torch.sym_sqrt(value) if is_symbolic(value) else math.sqrt(value)

    def by_tensor(plain: Any, of_tensor: Any) -> Any:
        # torch.export knows no logarithm of a size; as a tensor of no dims it multiplies like a number.
        def apply(value: Any, *base: Any) -> Any:
            if not stays(value) or any(map(stays, base)):
                return plain(value, *base)
            is_tensor = isinstance(value, torch.Tensor)
            kind = torch.float32
            number = value.to(kind) if is_tensor else torch.full((), torch.sym_float(value), dtype=kind)
            # `math.log(n, 2)` is the quotient of two logarithms.
            result = of_tensor(number) / math.log(*base) if base else of_tensor(number)
            of_size = isinstance(value, torch.SymInt) or (is_tensor and not value.dtype.is_floating_point)
            # Of 0 there is no logarithm, and a range may start there.
            return size_steps.remember(result, value, lambda n: plain(max(n, 1), *base)) if of_size else result

        return apply

    replaced = {
        "log": by_tensor(math.log, torch.log),
        "log2": by_tensor(math.log2, torch.log2),
        "log10": by_tensor(math.log10, torch.log10),
        "exp": by_tensor(math.exp, torch.exp),
        "floor": rounded(math.floor, torch.floor),
        "ceil": rounded(math.ceil, torch.ceil),
        "trunc": lambda v: SymbolicInt(v),
        "isqrt": lambda v: SymbolicInt(root(v)) if stays(v) else math.isqrt(v),
        "sqrt": root,
        "gcd": lambda *v: size_steps.gcd(*v) if any(map(stays, v)) else math.gcd(*v),
    }
    return types.SimpleNamespace(**{**vars(math), **replaced})


def replacements(choices: dict[Frame, None] | None = None) -> dict[str, Any]:
    """What is put in, by name; a line that takes the smallest or largest of sizes is put into `choices`."""
    return {
        "int": SymbolicInt,
        "float": SymbolicFloat,
        "min": _extreme(minimum, builtins.min, choices),
        "max": _extreme(maximum, builtins.max, choices),
        "len": _length,
        "range": SymbolicRange,
        "round": _rounded,
        "divmod": _divided,
    }


@contextmanager
def symbolic_builtins(module: nn.Module, choices: dict[Frame, None] | None = None) -> Iterator[None]:
    """For the time of the block the modules of the user's code see the replacements as globals."""
    new = replacements(choices)
    imported = _of_imports(new)
    undo: list[tuple[dict[str, Any], str, Any]] = []
    spaces = _globals_of(module, imported)
    files = {str(s.names.get("__file__", "")) for s in spaces}
    try:
        for space in spaces:
            for name, value in new.items():
                if name not in space.names:
                    undo.append((space.names, name, None))
                    space.names[name] = value
            for name in space.imports:
                value = space.names.get(name)
                if id(value) in imported:
                    undo.append((space.names, name, value))
                    space.names[name] = imported[id(value)]
        with bits_of_sizes(), truths_by_identity(files):
            yield
    finally:
        for names, name, old in undo:
            if old is None:
                del names[name]
            else:
                names[name] = old


def _of_imports(new: Mapping[str, Any]) -> dict[int, Any]:
    """What stands for `math`, `numpy` and the functions that came by `from math import ...`, by their identity."""
    shim = _symbolic_math()
    functions = {id(f): getattr(shim, name) for name, f in vars(math).items() if getattr(shim, name) is not f}
    return {id(math): shim, id(np): symbolic_numpy(shim, new, stays), **functions}


@dataclass(frozen=True)
class _Globals:
    """The globals of a file, how many there were, and the names of those that came from `math` and `numpy`."""

    names: dict[str, Any]
    count: int
    imports: tuple[str, ...]


@dataclass(frozen=True)
class _Read:
    """The globals that were read last, for which parts, and the files that were loaded then."""

    parts: frozenset[str]
    loaded: list[types.ModuleType]
    spaces: list[_Globals]

    def holds(self, parts: frozenset[str]) -> bool:
        """Whether the same files are loaded, none of them anew, and no global came or went."""
        same = self.parts == parts and self.loaded == list(sys.modules.values())
        return same and [len(s.names) for s in self.spaces] == [s.count for s in self.spaces]


# The last one alone: a search by sizes runs thousands of copies of a module.
_READ: list[_Read] = []


def _globals_of(module: nn.Module, imported: Mapping[int, Any]) -> list[_Globals]:
    """The globals of the user's files, read anew when a file was loaded or a global came or went."""
    parts = frozenset(type(part).__module__ for part in module.modules())
    if not any(read.holds(parts) for read in _READ):
        # Of a run whose steps are followed this is no step, and a trace function would be called for each name.
        watching = sys.gettrace()
        sys.settrace(None)
        try:
            # A process that has loaded hundreds of files reads those again of which a global came or went.
            # What is typed into a session may have come in place of another.
            earlier = [s for read in _READ for s in read.spaces if s.names.get("__name__") != "__main__"]
            before = {id(s.names): s for s in earlier if s.count == len(s.names)}
            spaces = [before.get(id(names)) or _read_globals(names, imported) for names in user_namespaces(module)]
        finally:
            sys.settrace(watching)
        _READ[:] = [_Read(parts, list(sys.modules.values()), spaces)]
    return _READ[0].spaces


def _read_globals(names: dict[str, Any], imported: Mapping[int, Any]) -> _Globals:
    return _Globals(names, len(names), tuple([n for n, value in names.items() if id(value) in imported]))


def user_namespaces(module: nn.Module) -> list[dict[str, Any]]:
    """The globals of the files that define the module's parts, and of all files that are not libraries."""
    names = {type(part).__module__ for part in module.modules()}
    namespaces = []
    for name, loaded in list(sys.modules.items()):
        file = getattr(loaded, "__file__", None)
        if not file or name.split(".")[0] == OWN_PACKAGE or is_machinery(file):
            continue
        if name in names or not is_library(file):
            namespaces.append(vars(loaded))
    return namespaces
