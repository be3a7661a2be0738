"""One run of a module with symbolic sizes: every decision that it takes by its sizes, as an expression, with its line.

The run is on fake tensors of torch, which have shapes and no values. torch asks its `ShapeEnv` about every condition
on a size, whoever asks (the user's `if`, `range(h)`, an operator's own case for a size of 1), and records the answer as
a guard. The guards of a run are what has to hold for another size to take the same path.
"""

from __future__ import annotations

import copy
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any
from unittest import mock

from trtconv.core.effort import Effort
from trtconv.core.tensors import TensorSpec
from trtconv.export.branches.by_size.size_shortcuts import shortened
from trtconv.export.branches.lookups import Key, table_keys
from trtconv.export.module.runner import ModuleRunner, uncompiled
from trtconv.export.module.user_code import Frame, is_library
from trtconv.export.recurrent.steps import empty_result, is_recurrent
from trtconv.export.symbolic.builtins import symbolic_builtins
from trtconv.export.symbolic.mode import creation_handlers, handled

if TYPE_CHECKING:
    from torch import nn

# What torch says where a size is the key of a dictionary.
UNHASHABLE = "unhashable type: non-nested SymInt"
OUT_OF_TIME = "the time ran out"


@dataclass(frozen=True)
class SizeGuard:
    """A condition that held in a run, by named dims, and the user's line that asked (None: a library did)."""

    condition: Any
    dims: tuple[tuple[Any, str], ...]
    line: Frame | None

    @property
    def names(self) -> tuple[str, ...]:
        """The dims in it, each once."""
        return tuple(dict.fromkeys(name for _, name in self.dims))


@dataclass(frozen=True)
class SizeRun:
    """What one run came to. `lookup` is the traceback frame that used a size as a key; `obstacle` another end.

    `text_keys` are the keys within reach of lines that put a size into a text.
    """

    sizes: tuple[tuple[str, int], ...]
    decisions: tuple[SizeGuard, ...]
    lookup: Any = None
    obstacle: str = ""
    text_keys: tuple[Key, ...] = ()


def copy_structure(module: nn.Module) -> nn.Module:
    """A copy of the module whose tensors are the module's own, so that what a run keeps in it is forgotten.

    The module itself when it cannot be copied.
    """
    shared = {id(t): t for t in (*module.parameters(), *module.buffers())}
    try:
        copied: nn.Module = copy.deepcopy(module, shared)
    except Exception:  # noqa: BLE001 - a user's __deepcopy__ may raise anything
        return module
    return copied


def run_symbolic(
    module: nn.Module, runner: ModuleRunner, specs: Sequence[TensorSpec], sizes: Mapping[str, int], effort: Effort
) -> SizeRun:
    """Run the module on fake tensors of these sizes, its dynamic dims symbolic, until the effort is spent.

    Each call into torch is a step of it. A run that ends early is made again without results that share an argument's
    tensor: such a tensor has the argument's strides, and is given another shape where the argument is.
    """
    run = _run_symbolic(copy_structure(module), runner, specs, sizes, effort, shared=True)
    if not run.obstacle or run.obstacle == OUT_OF_TIME:
        return run
    return _run_symbolic(module, runner, specs, sizes, effort, shared=False)


def _run_symbolic(
    module: nn.Module,
    runner: ModuleRunner,
    specs: Sequence[TensorSpec],
    sizes: Mapping[str, int],
    effort: Effort,
    *,
    shared: bool,
) -> SizeRun:
    import torch
    from torch._dispatch.python import enable_python_dispatcher
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext

    env = _recording_env()
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
    symbols: dict[Any, str] = {}
    tensors = []
    for spec in specs:
        kinds = [DimDynamic.DYNAMIC if isinstance(d, str) else DimDynamic.STATIC for d in spec.dims]
        # A fake tensor costs no memory, whatever its sizes.
        with FakeTensorMode():
            plain = torch.empty(spec.shape(sizes), dtype=_dtype(spec))
        fake = mode.from_tensor(
            plain, symbolic_context=StatelessSymbolicContext(dynamic_sizes=kinds), static_shapes=False
        )
        for size, dim in zip(fake.shape, spec.dims, strict=True):
            expression = getattr(getattr(size, "node", None), "expr", None)
            if isinstance(dim, str) and expression is not None and expression.is_Symbol:
                symbols[expression] = dim
        tensors.append(fake)
    lookup, obstacle = None, ""
    text_keys: dict[Key, None] = {}
    try:
        with (
            uncompiled(),
            symbolic_builtins(module),
            sizes_in_text(text_keys),
            mode,
            torch.no_grad(),
            # Operators that C++ takes apart (pad, upsample) would want numbers for sizes.
            enable_python_dispatcher(),
            one_convolution(),
            _watched(effort, shared),
            redirect_stdout(StringIO()),
        ):
            positional, keywords = runner.binding.arguments(tensors)
            module(*positional, **keywords)
    except Exception as error:  # noqa: BLE001 - a module raises whatever it likes
        if UNHASHABLE in str(error):
            lookup = _user_frame(error)
        if lookup is None:
            obstacle = _obstacle(error)
    return SizeRun(tuple(sizes.items()), _decisions(env, symbols), lookup, obstacle, tuple(text_keys))


@contextmanager
def sizes_in_text(keys: dict[Key, None]) -> Iterator[None]:
    """Sizes that the user's code writes into a text are numbers there, and each number is a path of its own.

    torch writes the name of a symbol and records nothing, so that `TABLE[f"{h}x{w}"]` would look up `s12xs34`. The keys
    within reach of such a line are put into `keys`.
    """
    import torch

    def writing(original: Any) -> Any:
        def write(size: Any, *specification: str) -> str:
            frame = sys._getframe(1)
            if is_library(frame.f_code.co_filename):
                return str(original(size, *specification))
            keys.update(dict.fromkeys(table_keys(frame, text=True)))
            return format(int(size), *specification)

        return write

    with ExitStack() as stack:
        for name in ("__repr__", "__str__", "__format__"):
            stack.enter_context(mock.patch.object(torch.SymInt, name, writing(getattr(torch.SymInt, name))))
        yield


def _decisions(env: Any, symbols: Mapping[Any, str]) -> tuple[SizeGuard, ...]:
    lines = env.lines
    decisions: dict[str, SizeGuard] = {}
    for index, guard in enumerate(env.guards):
        used = tuple((s, symbols[s]) for s in sorted(guard.expr.free_symbols, key=str) if s in symbols)
        decisions.setdefault(str(guard.expr), SizeGuard(guard.expr, used, lines.get(index)))
    return tuple(decisions.values())


def _recording_env() -> Any:
    """A ShapeEnv that takes 0 and 1 for sizes like others, and notes the user's line of every guard."""
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    class RecordingEnv(ShapeEnv):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(duck_shape=False, specialize_zero_one=False)
            self.lines: dict[int, Frame | None] = {}

        def evaluate_expr(self, *args: Any, **kwargs: Any) -> Any:
            before = len(self.guards)
            answer = super().evaluate_expr(*args, **kwargs)
            if len(self.guards) > before:
                self.lines[before] = _asking_line()
            return answer

    return RecordingEnv()


class OutOfTimeError(Exception):
    """The run was ended, its effort spent."""


def _watched(effort: Effort, shared: bool = True) -> Any:
    """A mode in which every call into torch is counted: a loop over a large size would not end.

    A recurrent layer has no decision in it, and is not taken apart into its steps; a window or a ramp of a moving
    length has none either, and torch would take a number for it.
    """
    from torch.overrides import TorchFunctionMode

    creation = creation_handlers()

    class Watched(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if not effort.step():
                raise OutOfTimeError
            created = handled(creation, getattr(func, "__name__", ""), func, args, kwargs or {})
            if created is not NotImplemented:
                return created
            short = shortened(func, args, kwargs or {}, shared)
            if short is not NotImplemented:
                return short
            if not kwargs and is_recurrent(func, args):
                return empty_result(args)
            return func(*args, **(kwargs or {}))

    return Watched()


@contextmanager
def one_convolution() -> Iterator[None]:
    """Which of its kernels torch takes for a convolution is no decision of the module.

    On a CPU it goes by `N > 1` and by the number of elements, for one image layer by layer; all kernels compute the
    same, and neither the file nor an engine has them.
    """
    import torch

    backend = torch._C._ConvBackend.Slow2d
    with mock.patch.object(torch._C, "_select_conv_backend", return_value=backend):
        yield


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


def _user_frame(error: BaseException) -> Any:
    """The innermost traceback entry in the user's code."""
    entries, last = error.__traceback__, None
    while entries is not None:
        if not is_library(entries.tb_frame.f_code.co_filename):
            last = entries
        entries = entries.tb_next
    return last


def _obstacle(error: BaseException) -> str:
    """In a few words why a run without values ended."""
    if isinstance(error, OutOfTimeError):
        return OUT_OF_TIME
    name = type(error).__name__
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not is_library(f.filename)]
    at = f" at line {frames[-1].lineno}" if frames else ""
    if name in ("DataDependentOutputException", "GuardOnDataDependentSymNode", "DynamicOutputShapeException"):
        return f"it reads values{at}"
    return f"{name}{at}"


def _dtype(spec: TensorSpec) -> Any:
    import torch

    return getattr(torch, spec.dtype.name)
