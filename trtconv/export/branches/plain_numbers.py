"""Sizes that a recorded run takes for plain numbers: `math.log2(x.shape[1])` is 6.64 in the file, at every size.

In a recording a size is a tensor that knows where it comes from, until Python makes a float of it. Where the number
reaches an output, the comparison at other sizes shows it; where it only meets a value in a comparison, that may not.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from trtconv.core.text.listing import list_first, name_sizes
from trtconv.export.module.user_code import Frame, calling_frames, innermost_user_frame, quote_frame
from trtconv.export.sizes.comparisons import numbers_in_text

LEAVING = ("__float__", "item", "tolist")
MOST_SHOWN = 3
COMPARED = "the points compared"


@contextmanager
def plain_numbers() -> Iterator[dict[Frame, float]]:
    """The user's lines at which a float was made of a tensor while recording, each with the first number."""
    import torch
    from torch.overrides import TorchFunctionMode

    lines: dict[Frame, float] = {}

    class Watching(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if not torch.jit.is_tracing():
                return result
            numbers = _frozen_numbers(func, args, kwargs or {})
            if getattr(func, "__name__", "") in LEAVING and isinstance(result, (int, float)):
                numbers.append(float(result))
            callers = list(calling_frames()) if numbers else []
            # What a check of torch's reads goes nowhere.
            if numbers and not any(code is torch._check_tensor_all_with.__code__ for code, _ in callers):
                frame = innermost_user_frame([frame for _, frame in callers][::-1])
                if frame is not None:
                    lines.setdefault(frame, numbers[0])
            return result

    with Watching():
        yield lines


def _frozen_numbers(function: Any, args: Sequence[Any], named: Mapping[str, Any]) -> list[float]:
    """The 0-d tensors that a call takes for plain numbers, as the `eps` of a norm: torch records no other argument so.

    It records a `Scalar` and a size as what they come from, and of a `float` or a `bool` what it is.
    """
    import torch

    tensors = {k: v for k, v in (*enumerate(args), *named.items()) if isinstance(v, torch.Tensor) and not v.dim()}
    if not tensors or inspect.isfunction(function):
        return []
    plain = _plain_arguments(getattr(function, "__name__", ""))
    return [float(value) for key, value in tensors.items() if key in plain]


@cache
def _plain_arguments(name: str) -> frozenset[int | str]:
    """The positions and names of the arguments of an aten function that every overload takes for floats or flags."""
    import torch

    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name}")
    plain: set[int | str] = set()
    others: set[int | str] = set()
    for schema in schemas:
        for position, argument in enumerate(schema.arguments):
            kind = str(argument.type).removeprefix("Optional[").rstrip("]")
            keys = {argument.name} if argument.kwarg_only else {position, argument.name}
            (plain if kind in ("float", "bool") else others).update(keys)
    return frozenset(plain - others)


@contextmanager
def sizes_as_numbers() -> Iterator[None]:
    """While recording, sizes are found in dictionaries and sets, and stand in texts, as the numbers that they are.

    There a size is a tensor, of which each is another key: `{16: 2.5}.get(x.shape[1])` would find nothing at any size.
    Its text is another one, too: `tensor(16)`.
    """
    import torch

    by_identity = torch.Tensor.__hash__

    def by_number(tensor: Any) -> int:
        return hash(int(tensor)) if may_be_size(tensor) else int(by_identity(tensor))

    def may_be_size(tensor: Any, _: Any = None) -> bool:
        if not torch.jit.is_tracing() or tensor.dim() > 0:
            return False
        return not tensor.is_floating_point() and not tensor.is_complex()

    with mock.patch.object(torch.Tensor, "__hash__", by_number), numbers_in_text({torch.Tensor: int}, may_be_size):
        yield


@contextmanager
def fixed_sizes() -> Iterator[None]:
    """While recording, sizes are whole numbers of Python, of which NumPy and `round` take what they take in a run.

    What a number of a size does to a tensor is recorded at every size, where it is times 1 or plus 0, too.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    sizes = (torch.Tensor.shape.__get__, torch.Tensor.size, torch.Tensor.numel, torch.Tensor.nelement)

    class Fixed(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if func not in sizes or not torch.jit.is_tracing():
                return result
            return torch.Size(map(int, result)) if isinstance(result, tuple) else int(result)

    with Fixed(), mock.patch.object(torch._C, "_jit_pass_peephole", return_value=None):
        yield


def numbers_in_words(numbers: Mapping[Frame, float], sizes: tuple[tuple[str, int], ...], base: Path) -> str:
    """The note on a file that keeps numbers of the sizes at which it was recorded."""
    lines = [f"{quote_frame(frame, base)} ({number:.6g})" for frame, number in numbers.items()]
    return _note("makes a number of a size", lines, "what it was", sizes)


def unfollowed_in_words(
    frames: Sequence[Frame], sizes: tuple[tuple[str, int], ...], base: Path, tried: int, total: int
) -> str:
    """The note on a recorded file of a module whose decisions by size could not all be followed."""
    lines = [quote_frame(frame, base) for frame in frames]
    compared = f"the {tried:,} of {total:,} joint sizes compared"
    return _note("makes a number of a size", lines, "what comes of it", sizes, compared)


def choices_in_words(frames: Sequence[Frame], sizes: tuple[tuple[str, int], ...], base: Path) -> str:
    """The note on a file that keeps which of several sizes was the smallest or largest when it was recorded."""
    lines = [quote_frame(frame, base) for frame in frames]
    return _note("takes the smallest or largest of sizes", lines, "which it was", sizes)


def _note(
    does: str, lines: list[str], kept_fact: str, sizes: tuple[tuple[str, int], ...], compared: str = COMPARED
) -> str:
    return (
        f"the module {does}: {list_first(lines, MOST_SHOWN)}; the file keeps {kept_fact} at {name_sizes(dict(sizes))}, "
        f"and equals the module at {compared}"
    )
