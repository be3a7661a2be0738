"""Where values leave torch for Python: a recorded run keeps what they were, and nothing in the file says so.

A bool is only one way out. A number (`item`, `float`, `int`, an index), a list, a NumPy array, a text, the length of
what `nonzero` found, the answer of `equal`: Python may decide by any of them, or compute with it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from unittest import mock

from trtconv.core.errors import TrtconvError
from trtconv.core.text.listing import list_first
from trtconv.export.branches.caught_errors import is_caught, raises_by_value
from trtconv.export.branches.value_sizes import ValueSizes, gives_sizes_of_values
from trtconv.export.module.noise.other_paths import are_close
from trtconv.export.module.runner import ModuleRunner
from trtconv.export.module.user_code import Frame, calling_frames, innermost_user_frame, is_library, quote_frame
from trtconv.export.sizes.work import watching_mode
from trtconv.export.threads import call_in_thread, in_threads

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# What makes a Python bool of a tensor. In an ordinary run sizes are ints, so that only values come here.
DECIDING = ("__bool__", "equal", "allclose", "is_nonzero", "__contains__")
# What a tensor without values answers as well, so that torch.export does not see anything leave.
SHOWING = (
    "__format__", "__repr__", "__str__", "data_ptr", "__dlpack__", "__reduce_ex__", "storage", "untyped_storage",
    "apply_", "map_", "map2_",
)  # fmt: skip
READING = (
    "item", "tolist", "numpy", "__array__", "__float__", "__int__", "__index__", "__complex__", "__reversed__",
    *SHOWING,
)  # fmt: skip
# Python gets numbers and texts of a tensor by these, and none is a value; by any other it is taken for one. By the last
# nn.TransformerEncoder chooses its own kernel.
DESCRIBING = frozenset(
    ("__dir__", "__get__", "__hash__", "__len__", "__sizeof__", "can_cast", "cudnn_is_acceptable", "dense_dim", "dim",
     "dim_order", "element_size", "get_device", "has_names", "is_coalesced", "is_complex", "is_conj", "is_contiguous",
     "is_distributed", "is_floating_point", "is_inference", "is_neg", "is_pinned", "is_same_size", "is_set_to",
     "is_shared", "is_signed", "nelement", "ndimension", "numel", "q_per_channel_axis", "size", "sparse_dim",
     "storage_offset", "stride", "type", "_is_view", "_is_zerotensor", "_nested_tensor_from_mask_left_aligned")
)  # fmt: skip
ASKING_SIZE = (
    "__len__", "size", "numel", "nelement", "__get__", "dim", "stride", "__iter__", "unbind", "split", "chunk",
    "tensor_split", "hsplit", "vsplit", "dsplit",
)  # fmt: skip
# What the operations below those functions are called, in case one is reached in another way.
LEAVING = ("aten::_local_scalar_dense", "aten::equal", "aten::is_nonzero", "aten::item")
MOST_SHOWN = 3


@dataclass
class Exit:
    """A line at which values leave. `decides` says that a bool was asked for; low and high bound the numbers read.

    `shown` is true when a text or an address left, which torch.export passes over.
    """

    decides: bool = False
    shown: bool = False
    low: float = math.inf
    high: float = -math.inf

    @property
    def numbers(self) -> bool:
        """True when what left were numbers, or bools."""
        return self.low <= self.high

    def add(self, value: Any) -> None:
        """Widen the range by the numbers that left; other things leave it as it is."""
        for number in _ends(value):
            self.low, self.high = min(self.low, number), max(self.high, number)

    def is_alike(self, other: Exit) -> bool:
        """Whether another run read the same bools, and numbers that differ by little."""
        return self.numbers == other.numbers and (
            not self.numbers
            or (are_close(self.low, other.low) and are_close(self.high, other.high))
        )


def _ends(value: Any) -> list[float]:
    """The least and the largest finite number of a value that is one, or an array or a list of them; else nothing."""
    import numpy as np

    if isinstance(value, (int, float)):
        return [value] if math.isfinite(value) else []
    try:
        numbers = np.asarray(value) if isinstance(value, (np.ndarray, list)) else np.empty(0)
    except ValueError:
        # Rows of several lengths, of nested tensors.
        return []
    finite = numbers[np.isfinite(numbers)] if numbers.dtype.kind in "biuf" else np.empty(0)
    return [float(finite.min()), float(finite.max())] if finite.size else []


@dataclass
class Exits:
    """The user's lines at which values left during some runs, in the order of their first use."""

    lines: dict[Frame, Exit] = field(default_factory=dict)
    sizes: ValueSizes = field(default_factory=ValueSizes)

    def note(self, decides: bool, value: Any = None, *, shown: bool = False) -> None:
        """Something left at the user's line that is being run."""
        frame = innermost_user_frame(_frames())
        if frame is None:
            return
        leaving = self.lines.setdefault(frame, Exit())
        leaving.decides, leaving.shown = leaving.decides or decides, leaving.shown or shown
        leaving.add(value)


def value_exits(runner: ModuleRunner, inputs: Iterable[Mapping[str, Array]]) -> dict[Frame, Exit]:
    """The user's lines at which values leave in eager runs with these inputs."""
    exits = Exits()
    for feed in inputs:
        try:
            with runner.caches.emptied(), _watched(exits):
                runner(feed)
        except TrtconvError:
            continue
        finally:
            exits.sizes.clear()
    return exits.lines


@contextmanager
def _watched(exits: Exits) -> Iterator[None]:
    from torch.overrides import TorchFunctionMode

    class Functions(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = getattr(func, "__name__", "")
            try:
                result = func(*args, **(kwargs or {}))
            except Exception:
                # What a module catches decides (a matrix that has no Cholesky factor), and an exporter sees no error.
                exits.note(True, shown=True)
                raise
            if name in DECIDING or name in READING:
                exits.note(name in DECIDING, result, shown=name in SHOWING)
            elif name in ASKING_SIZE and args and args[0] in exits.sizes:
                exits.note(False, result)
            elif name not in DESCRIBING and _is_plain(result):
                exits.note(isinstance(result, bool), result)
            exits.sizes.follow(name, (args, kwargs), result)
            return result

    class Operations(watching_mode()):  # type: ignore[misc]
        def watch(self, func: Any, args: Any, kwargs: Any) -> Any:
            name = func.overloadpacket.__name__
            if raises_by_value(func, args) and is_caught(_frames()):
                # Before it runs: the values of this run may be some for which it does not raise.
                exits.note(True, shown=True)
            result = func(*args, **kwargs)
            if getattr(func, "name", lambda: "")().split(".")[0] in LEAVING:
                exits.note(False, result)
            if gives_sizes_of_values(func, args):
                exits.sizes.add(args, result)
            if any(_is_in_python(tensor) for tensor in _written(func, args, kwargs)):
                # torch.export passes over it as well: what Python reads there is no tensor.
                exits.note(False, shown=True)
            exits.sizes.follow(name, (args, kwargs), result)
            return result

    def watch() -> ExitStack:
        stack = ExitStack()
        stack.enter_context(Functions())
        stack.enter_context(Operations())
        return stack

    with watch(), in_threads(watch), _of_capsules(exits):
        yield


@contextmanager
def _of_capsules(exits: Exits) -> Iterator[None]:
    """The C functions that make a DLPack capsule of a tensor, which no mode sees, wherever the module has them from."""
    import torch

    makers = (torch._C._to_dlpack, torch._C._to_dlpack_versioned)

    def watched(maker: Callable[..., Any]) -> Callable[..., Any]:
        def make_capsule(*args: Any, **kwargs: Any) -> Any:
            exits.note(False, shown=True)
            return maker(*args, **kwargs)

        return make_capsule

    modules = [module for module in sys.modules.values() if isinstance(module, ModuleType)]
    of_user = [m for m in modules if (file := getattr(m, "__file__", None)) and not is_library(file)]
    with ExitStack() as stack:
        for owner in (torch._C, torch, torch.utils.dlpack, *of_user):
            for name, value in tuple(vars(owner).items()):
                if any(value is maker for maker in makers):
                    stack.enter_context(mock.patch.object(owner, name, watched(value)))
        yield


def _written(operator: Any, args: Any, kwargs: Mapping[str, Any]) -> Iterator[Any]:
    """The tensors into which an operator of aten writes."""
    import torch

    schema = operator._schema
    if schema.is_mutable:
        for index, argument in enumerate(schema.arguments):
            value = args[index] if index < len(args) else kwargs.get(argument.name)
            if argument.alias_info is not None and argument.alias_info.is_write and isinstance(value, torch.Tensor):
                yield value


def _is_in_python(tensor: Any) -> bool:
    """True for memory that Python holds as an array too, which torch therefore does not resize."""
    import torch

    return bool(tensor.layout == torch.strided) and not tensor.untyped_storage().resizable()


def _is_plain(result: Any) -> bool:
    """True for a number or a text, and for a row of them."""
    values = result if isinstance(result, (tuple, list)) else (result,)
    return any(isinstance(v, (int, float, complex, str)) for v in values)


def _frames() -> list[Frame]:
    """The frames of this call inside the module's forward, outermost first; empty outside of it."""
    frames: list[Frame] = []
    for code, frame in calling_frames():
        if code in (ModuleRunner._run.__code__, call_in_thread.__code__):
            return frames[::-1]
        frames.append(frame)
    return []


def exits_in_words(exits: Mapping[Frame, Exit], base: Path) -> tuple[str, ...]:
    """Notes for a file that holds one way only: on decisions by value, and on numbers that Python reads."""
    deciding = [_describe(f, e, base) for f, e in exits.items() if e.decides]
    reading = [_describe(f, e, base) for f, e in exits.items() if not e.decides]
    notes = []
    if deciding:
        notes.append(
            f"the module decides by values: {list_first(deciding, MOST_SHOWN)}; the file goes the way that every "
            "sample point takes, whatever the values are"
        )
    if reading:
        notes.append(
            f"the module reads values: {list_first(reading, MOST_SHOWN)}; the file equals it at the points compared, "
            "what the module does for other values is not shown"
        )
    return tuple(notes)


def _describe(frame: Frame, leaving: Exit, base: Path) -> str:
    shown = leaving.numbers and not leaving.decides
    span = f" ({leaving.low:.4g} to {leaving.high:.4g} at the points compared)" if shown else ""
    return f"{quote_frame(frame, base)}{span}"
