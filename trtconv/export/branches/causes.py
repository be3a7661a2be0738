"""Causes that an exporter's own error does not name."""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from pathlib import PurePath
from typing import NamedTuple

from trtconv.export.branches.size_run import UNHASHABLE


class Cause(NamedTuple):
    """What the message says, and what to do."""

    message: str
    hint: str


SIZE_AS_KEY = Cause(
    "the module looks its size up in a dictionary or a set, and a file holds one entry",
    "hold the entries in a list or a tensor and index it by the size, or give ranges with --dynamic for which one "
    "entry holds",
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
    return None


def _in_packed_layer(error: BaseException) -> bool:
    """True for an error of the zeros that a recurrent layer makes for `batch_sizes[0]` rows, a value under tracing."""
    frames = traceback.extract_tb(error.__traceback__)
    layer = any(PurePath(f.filename).parts[-3:] == ("nn", "modules", "rnn.py") for f in frames)
    return layer and "argument 'size' failed to unpack" in str(error) and "FakeTensor" in str(error)
