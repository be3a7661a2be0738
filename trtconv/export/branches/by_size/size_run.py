"""One run of a module with symbolic sizes: every decision that it takes by its sizes, as an expression, with its line.

The run is on fake tensors of torch, which have shapes and no values. torch asks its `ShapeEnv` about every condition
on a size, whoever asks (the user's `if`, `range(h)`, an operator's own case for a size of 1), and records the answer as
a guard. The guards of a run are what has to hold for another size to take the same path.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from unittest import mock

from trtconv.core.effort import Effort
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.export.branches.by_size.named_sizes import NamedSizes
from trtconv.export.branches.by_size.recording_env import (
    recording_env,
    symbolic_dim,
    symbolic_size,
    without_algebra,
)
from trtconv.export.branches.by_size.size_guards import SymbolicDim
from trtconv.export.branches.by_size.size_shortcuts import shortened
from trtconv.export.branches.lookups import Key, table_keys
from trtconv.export.exporters.scripted.refused_scripts import scripts_without_data
from trtconv.export.module.noise.closures import deep_copy
from trtconv.export.module.runner import ModuleRunner, uncompiled
from trtconv.export.module.user_code import Frame, is_library
from trtconv.export.recurrent import packed
from trtconv.export.recurrent.steps import empty_result, is_recurrent
from trtconv.export.sizes.comparisons import arithmetic_of_python, numbers_in_text
from trtconv.export.sizes.whole_numbers import BeyondIntegersError, within_64_bits
from trtconv.export.symbolic.arithmetic import size_steps
from trtconv.export.symbolic.builtins import symbolic_builtins
from trtconv.export.symbolic.encoders import padded_encoders
from trtconv.export.symbolic.mode import creation_handlers, handled
from trtconv.export.symbolic.resampling.pooling import max_pool

if TYPE_CHECKING:
    from torch import nn

# What torch says where a size is the key of a dictionary.
UNHASHABLE = "unhashable type: non-nested SymInt"
Answer = bool | int | float
OUT_OF_TIME = "the time ran out"
FROM_VALUES_IN_WORDS = "it reads values, or a number that is no formula of the sizes,"
# torch's errors for numbers that come from values and decide something.
FROM_VALUES = ("DataDependentOutputException", "GuardOnDataDependentSymNode", "DynamicOutputShapeException")


@dataclass(frozen=True)
class SizeRun:
    """What one run came to. `lookup` is the traceback frame that used a size as a key; `obstacle` another end, which
    the user's line `ended_at` came to.

    `answers` are the expressions that torch asked about, with the value and the user's line (None: a library asked),
    `by_code` those that an operator did not ask about for a case of its own, `symbols` the dims in them. `text_keys`
    are the keys within reach of lines that put a size into a text, which `in_text` says that one does. `choices` are
    the lines that take the smallest or largest of several sizes.
    """

    sizes: tuple[tuple[str, int], ...]
    answers: tuple[tuple[Any, Answer, Frame | None], ...]
    symbols: Mapping[Any, SymbolicDim]
    lookup: Any = None
    obstacle: str = ""
    text_keys: tuple[Key, ...] = ()
    choices: tuple[Frame, ...] = ()
    by_code: frozenset[Any] = frozenset()
    in_text: bool = False
    ended_at: Frame | None = None


def copy_structure(module: nn.Module) -> nn.Module:
    """A copy of the module whose tensors are the module's own, so that what a run keeps in it is forgotten.

    The module itself when it cannot be copied.
    """
    shared: dict[int, Any] = {id(t): t for t in (*module.parameters(), *module.buffers())}
    try:
        return deep_copy(module, shared)
    except Exception:  # noqa: BLE001 - a user's __deepcopy__ may raise anything
        return module


def run_symbolic(
    fresh: Callable[[], nn.Module],
    runner: ModuleRunner,
    specs: Sequence[TensorSpec],
    space: ShapeSpace,
    sizes: Mapping[str, int],
    names: NamedSizes,
    effort: Effort,
) -> SizeRun:
    """Run a fresh copy of the module on fake tensors of these sizes, its dims symbolic, until the effort is spent.

    Each call into torch is a step of it. A run that ends early is made again without results that share an argument's
    tensor: such a tensor has the argument's strides, and is given another shape where the argument is. Raises
    BeyondIntegersError.
    """
    run = _run_symbolic(fresh(), runner, specs, space, sizes, names, effort, shared=True)
    if not run.obstacle or run.obstacle == OUT_OF_TIME:
        return run
    return _run_symbolic(fresh(), runner, specs, space, sizes, names, effort, shared=False)


def _run_symbolic(
    module: nn.Module,
    runner: ModuleRunner,
    specs: Sequence[TensorSpec],
    space: ShapeSpace,
    sizes: Mapping[str, int],
    names: NamedSizes,
    effort: Effort,
    *,
    shared: bool,
) -> SizeRun:
    import torch
    from torch._dispatch.python import enable_python_dispatcher
    from torch._subclasses.fake_tensor import FakeTensorMode

    env = recording_env()
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
    # Results of other operators at these sizes: with symbols a look costs more than the operator.
    mode.cache_enabled = False
    dims = {n: symbolic_dim(env, n, space[n], sizes[n]) for n in space}
    symbols = {dim.symbol: dim for dim in dims.values()}
    with mode:
        tensors = [torch.empty([symbolic_size(env, d, dims) for d in s.dims], dtype=_dtype(s)) for s in specs]
    lookup, obstacle, ended_at = None, "", None
    text_keys: dict[Key, None] = {}
    in_text: dict[Frame, None] = {}
    choices: dict[Frame, None] = {}
    try:
        with (
            uncompiled(),
            scripts_without_data(),
            symbolic_builtins(module, choices),
            arithmetic_of_python(),
            within_64_bits(),
            padded_encoders(),
            packed.sequences_counted(),
            sizes_in_text(text_keys, in_text),
            mode,
            torch.no_grad(),
            # Operators that C++ takes apart (pad, upsample) would want numbers for sizes.
            enable_python_dispatcher(),
            one_convolution(),
            without_algebra(env, names),
            _watched(effort, shared),
            redirect_stdout(StringIO()),
        ):
            positional, keywords = runner.binding.arguments(tensors)
            module(*positional, **keywords)
    except BeyondIntegersError:
        raise
    except Exception as error:  # noqa: BLE001 - a module raises whatever it likes
        if UNHASHABLE in str(error):
            lookup = _user_frame(error)
        if lookup is None:
            obstacle, ended_at = _obstacle(error)
    return SizeRun(
        tuple(sizes.items()),
        tuple((e, *answer) for e, answer in env.answers.items()),
        symbols,
        lookup,
        obstacle,
        tuple(text_keys),
        tuple(choices),
        frozenset(env.by_code),
        bool(in_text),
        ended_at,
    )


@contextmanager
def sizes_in_text(keys: dict[Key, None], lines: dict[Frame, None]) -> Iterator[None]:
    """Sizes that the user's code writes into a text are numbers there, and each number is a path of its own.

    torch writes the name of a symbol and records nothing, so that `TABLE[f"{h}x{w}"]` would look up `s12xs34`. The keys
    within reach of such a line are put into `keys`, the line into `lines`.
    """
    import torch

    def noted(size: Any, frame: FrameType) -> bool:
        keys.update(dict.fromkeys(table_keys(frame, text=True)))
        lines[frame.f_code.co_filename, frame.f_lineno] = None
        return True

    with numbers_in_text({torch.SymInt: int, torch.SymFloat: float, torch.SymBool: bool}, noted):
        yield


class OutOfTimeError(Exception):
    """The run was ended, its effort spent."""


def _watched(effort: Effort, shared: bool = True) -> Any:
    """A mode in which every call into torch is counted: a loop over a large size would not end.

    A recurrent layer has no decision in it, and is not taken apart into its steps; a window or a ramp of a moving
    length has none either, and torch would take a number for it.
    """
    from torch.overrides import TorchFunctionMode

    without_values = {**creation_handlers(), **packed.handlers_without_values(), "max_pool1d": max_pool(1)}

    class Watched(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if not effort.step():
                raise OutOfTimeError
            name = getattr(func, "__name__", "")
            condition = size_steps.compared(name, args)
            if condition is not NotImplemented:
                return condition
            result = handled(without_values, name, func, args, kwargs or {})
            if result is not NotImplemented:
                return result
            sequences = packed.packed_call(func, args)
            if sequences is not None:
                return sequences.result(empty_result(sequences.args))
            short = shortened(func, args, kwargs or {}, shared)
            if short is not NotImplemented:
                return short
            if not kwargs and is_recurrent(func, args):
                return empty_result(args)
            return size_steps.carry(name, args, kwargs or {}, func(*args, **(kwargs or {})))

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


def _user_frame(error: BaseException) -> Any:
    """The innermost traceback entry in the user's code."""
    entries, last = error.__traceback__, None
    while entries is not None:
        if not is_library(entries.tb_frame.f_code.co_filename):
            last = entries
        entries = entries.tb_next
    return last


def _obstacle(error: BaseException) -> tuple[str, Frame | None]:
    """In a few words why a run without values ended, and the user's line at which it did."""
    if isinstance(error, OutOfTimeError):
        return OUT_OF_TIME, None
    name = type(error).__name__
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not is_library(f.filename)]
    frame = (frames[-1].filename, frames[-1].lineno or 0) if frames else None
    at = f" at line {frame[1]} of {Path(frame[0]).name}" if frame else ""
    reason = FROM_VALUES_IN_WORDS if name in FROM_VALUES else name
    return f"{reason}{at}", frame


def _dtype(spec: TensorSpec) -> Any:
    import torch

    return getattr(torch, spec.dtype.name)
