"""The line of the user's code that calls an operator, found while the module runs."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import TrtconvError
from trtconv.export.module.runner import ModuleRunner
from trtconv.export.module.user_code import Frame, format_frame, innermost_user_frame

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

_OPERATOR = re.compile(r"\b(?:aten|prims)(?:::|\.)_?(\w+)")
# The files of torch.autograd.grad, and of grad, jacrev, jvp and their like.
_DERIVATIVES = (("torch", "autograd", "__init__.py"), ("torch", "_functorch", "eager_transforms.py"))
# How torch.onnx says that it has no form of an operator.
_LACKING = tuple(
    re.compile(pattern)
    for pattern in (
        r"No ONNX function found for <OpOverload\(op='(?:aten|prims|\w+)\.(\w+)'",
        r"No ONNX function found for <built-in function (\w+)>",
        r"Exporting the operator 'aten::(\w+)'",
        r"Error when calling function 'TracedOnnxFunction\(<function aten_(\w+) at",
    )
)


def lacking_operator(text: str) -> str | None:
    """The operator of which an exporter's error says that it has no form; None where it says something else."""
    return next((match[1] for pattern in _LACKING if (match := pattern.search(text))), None)


def random_line(runner: ModuleRunner, inputs: Mapping[str, Array]) -> str | None:
    """`net.py:12`: the first line that draws random numbers; None where none does so in torch."""
    import torch

    return _first_line(runner, inputs, lambda operator: torch.Tag.nondeterministic_seeded in operator.tags)


def named_line(runner: ModuleRunner, inputs: Mapping[str, Array], texts: Iterable[str]) -> str | None:
    """`net.py:12`: the first line that calls an operator of which a text speaks, as `aten::linalg_svd`."""
    names = {match[1] for text in texts for match in _OPERATOR.finditer(text)}

    def spoken_of(operator: Any) -> bool:
        name = operator.overloadpacket.__name__.removeprefix("_")
        return any(name == n or name.rstrip("_") == n for n in names)

    return _first_line(runner, inputs, spoken_of) if names else None


def empty_line(runner: ModuleRunner, inputs: Mapping[str, Array]) -> str | None:
    """`net.py:12`: the first line at which an operator gives a tensor without elements; None where none does."""
    import torch

    def is_empty(result: Any) -> bool:
        return isinstance(result, torch.Tensor) and result.numel() == 0

    return _first_line(runner, inputs, lambda _: True, is_empty)


def derivative_line(runner: ModuleRunner, inputs: Mapping[str, Array]) -> str | None:
    """`net.py:12`: the first line that takes a derivative, by torch.autograd or by a transform of torch.func."""
    return _first_line(runner, inputs, lambda _: True, within=_DERIVATIVES)


def _first_line(
    runner: ModuleRunner,
    inputs: Mapping[str, Array],
    matches: Callable[[Any], bool],
    gives: Callable[[Any], bool] | None = None,
    within: Collection[tuple[str, ...]] = (),
) -> str | None:
    """The first line at which an operator that `matches` is called, or gives such a result.

    With `within` the line that calls into one of these files, from which the operator is called.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    lines: list[Frame] = []

    class Watch(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            frame = innermost_user_frame(_frames(within)) if not lines and matches(func) else None
            if frame is not None and gives is None:
                lines.append(frame)
            result = func(*args, **(kwargs or {}))
            if frame is not None and gives is not None and gives(result):
                lines.append(frame)
            return result

    # A run that fails has told what it came by.
    with suppress(TrtconvError), Watch():
        runner(inputs)
    return format_frame(lines[0], runner.base) if lines else None


def _frames(within: Collection[tuple[str, ...]] = ()) -> list[Frame]:
    """The frames from the outermost on; those before the first in one of the files `within`, none without such."""
    frames: list[Frame] = []
    frame = sys._getframe(1)
    while frame is not None:
        frames.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back  # type: ignore[assignment]
    frames.reverse()
    if not within:
        return frames
    return frames[: next((i for i, (file, _) in enumerate(frames) if PurePath(file).parts[-3:] in within), 0)]
