"""What a value has in it, to be compared with what it has in it later."""

from __future__ import annotations

import sys
from collections import deque
from contextvars import ContextVar
from threading import local
from types import FunctionType, GeneratorType
from typing import Any

from trtconv.export.module.user_code import is_library

# Containers within containers, entries of one, and elements of a tensor that are looked at.
DEEPEST, MOST_ENTRIES, MOST_ELEMENTS = 5, 4096, 1 << 16


def content_of(value: Any) -> Any:
    """What a value has in it, to be compared; of what nobody can look into nothing."""
    try:
        return _content_of(value, 0)
    except Exception:  # noqa: BLE001 - what stands for a package that is not there raises whatever it is asked for
        return None


def _content_of(value: Any, depth: int) -> Any:
    import numpy as np
    import torch

    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return type(value).__name__, repr(value)
    if isinstance(value, torch.Tensor):
        return _elements(value)
    if isinstance(value, ContextVar):
        return _content_of(value.get(None), depth)
    if isinstance(value, np.ndarray):
        small = value.size <= MOST_ELEMENTS and value.dtype != object
        return value.shape, value.dtype.str, value.tobytes() if small else id(value)
    if depth == DEEPEST or isinstance(value, torch.nn.Module):
        return None
    if isinstance(value, (list, tuple, deque, set, frozenset, dict)):
        return _entries(value, depth)
    if isinstance(value, GeneratorType):
        frame = value.gi_frame
        return None if frame is None else (frame.f_lasti, _content_of(dict(frame.f_locals), depth + 1))
    return _of_object(value, depth)


def _elements(tensor: Any) -> Any:
    import torch

    plain = tensor.detach()
    shape = tuple(plain.shape)
    if type(plain) is not torch.Tensor or plain.layout is not torch.strided or plain.numel() > MOST_ELEMENTS:
        return shape, str(plain.dtype), id(tensor), tensor._version
    row = plain.cpu().clone(memory_format=torch.contiguous_format).resolve_conj().resolve_neg().view(-1)
    return shape, str(plain.dtype), row.view(torch.uint8).numpy().tobytes()


def _entries(value: Any, depth: int) -> Any:
    # The deeper, the fewer: a file may hold a lexicon.
    if len(value) > MOST_ENTRIES >> 3 * depth:
        return type(value).__name__, len(value)
    if isinstance(value, dict):
        return "dict", tuple((_content_of(k, depth + 1), _content_of(v, depth + 1)) for k, v in value.items())
    entries = [_content_of(v, depth + 1) for v in value]
    # A set has no order.
    ordered = sorted(map(repr, entries)) if isinstance(value, (set, frozenset)) else entries
    return type(value).__name__, tuple(ordered)


def _of_object(value: Any, depth: int) -> Any:
    """Of the user's objects their attributes, of memory its bytes, of a counter its text."""
    kind = type(value)
    if kind.__module__ == "itertools":
        text = repr(value)
        return None if " object at " in text else text
    if isinstance(value, (bytearray, memoryview)) or kind.__module__ in ("array", "mmap"):
        memory = memoryview(value)
        return memory.tobytes() if memory.nbytes <= MOST_ELEMENTS else None
    own = kind.__module__ == "types" or isinstance(value, local) or not is_library(file_of_class(kind))
    if own and hasattr(value, "__dict__") and not callable(getattr(value, "__get__", None)):
        return kind.__name__, _content_of(dict(vars(value)), depth + 1)
    return None


def file_of_class(kind: type) -> str:
    """The file in which a class stands; `<` for one of none.

    That of a module which is not among those imported is told by the class' own functions.
    """
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    codes = (f.__code__.co_filename for f in vars(kind).values() if type(f) is FunctionType)
    return str(file or next((name for name in codes if not name.startswith("<")), "<"))
