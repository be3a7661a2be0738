"""Causes that an exporter's own error does not name."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from trtconv.export.branches.by_size.size_run import UNHASHABLE
from trtconv.export.module.operator_lines import derivative_line
from trtconv.export.module.user_code import is_own

if TYPE_CHECKING:
    import numpy as np

    from trtconv.export.module.runner import ModuleRunner

    Array = np.ndarray[Any, np.dtype[Any]]


class Cause(NamedTuple):
    """What the message says, what to do, and the line where it is not that of the error."""

    message: str
    hint: str
    where: str | None = None


SIZE_AS_KEY = Cause(
    "the module looks its size up in a dictionary or a set, and a file holds one entry",
    "hold the entries in a list or a tensor and index it by the size, or give ranges with --dynamic for which one "
    "entry holds",
)
SIZE_LEAVES_TORCH = Cause(
    "a size is handed to code that takes plain numbers only, and a file holds what it gave for one size",
    "compute it with + - * // % on x.shape or with tensor operations, or fix the size with --dynamic",
)
DERIVATIVE_IN_FORWARD = Cause(
    "forward takes a derivative (torch.autograd.grad, torch.func), which the exporters follow through a few operators "
    "alone",
    "write the derivative out with tensor operations",
)
# What an exporter says of a tensor that autograd saved, which no recording has seen.
_SAVED_BY_AUTOGRAD = (
    "fake tensor in the exported program constant's list",
    "that requires grad as a constant",
    "object has no attribute 'constant'",
)


def unnamed_cause(
    errors: Iterable[BaseException | None], runner: ModuleRunner, inputs: Mapping[str, Array]
) -> Cause | None:
    """The cause of the first of the errors that has one of these; None for others."""
    for error in errors:
        if any(text in str(error) for text in _SAVED_BY_AUTOGRAD) and (line := derivative_line(runner, inputs)):
            return DERIVATIVE_IN_FORWARD._replace(where=line)
        if UNHASHABLE in str(error):
            return SIZE_AS_KEY
        if error is not None and _of_a_size(error):
            return SIZE_LEAVES_TORCH
    return None


def _of_a_size(error: BaseException) -> bool:
    """True for a TypeError raised by code outside of torch, which the module itself does not raise, at a symbolic size.

    It was raised by the user's line, or by a library other than torch that the line called with the size.
    """
    import torch

    if type(error) is not TypeError:
        return False
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if not frames:
        return False
    file = frames[-1].f_code.co_filename
    if is_own(file) or "torch" in PurePath(file).parts:
        return False
    return any(isinstance(v, (torch.SymInt, torch.SymFloat)) for v in frames[-1].f_locals.values())
