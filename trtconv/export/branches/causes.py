"""Causes that an exporter's own error does not name."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from pathlib import PurePath
from typing import NamedTuple

from trtconv.export.branches.by_size.size_run import UNHASHABLE
from trtconv.export.module.user_code import is_own


class Cause(NamedTuple):
    """What the message says, and what to do."""

    message: str
    hint: str


SIZE_AS_KEY = Cause(
    "the module looks its size up in a dictionary or a set, and a file holds one entry",
    "hold the entries in a list or a tensor and index it by the size, or give ranges with --dynamic for which one "
    "entry holds",
)
SIZE_LEAVES_TORCH = Cause(
    "a size is handed to code that takes plain numbers only, and a file holds what it gave for one size",
    "compute it with + - * // % on x.shape or with tensor operations, or fix the size with --dynamic",
)
PACKED = Cause(
    "a recurrent layer gets a packed sequence, whose number of rows no file can hold",
    "give the layer the padded sequence and hide what is behind the lengths: its outputs with a mask, its last state "
    "with y.gather(1, (lengths - 1)[:, None, None].expand(-1, 1, y.shape[2]))",
)


def unnamed_cause(errors: Iterable[BaseException | None]) -> Cause | None:
    """The cause of the first of the errors that has one of these; None for others."""
    for error in errors:
        if UNHASHABLE in str(error):
            return SIZE_AS_KEY
        if error is not None and _in_packed_layer(error):
            return PACKED
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


def _in_packed_layer(error: BaseException) -> bool:
    """True for an error of the zeros that a recurrent layer makes for `batch_sizes[0]` rows, a value under tracing."""
    frames = traceback.extract_tb(error.__traceback__)
    layer = any(PurePath(f.filename).parts[-3:] == ("nn", "modules", "rnn.py") for f in frames)
    return layer and "argument 'size' failed to unpack" in str(error) and "FakeTensor" in str(error)
