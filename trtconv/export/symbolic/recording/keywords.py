"""The names that torch's own functions take for their parameters besides the documented ones.

Its argument parser knows NumPy's names of five parameters (`numpy_compatibility_arg_names` in
torch/csrc/utils/python_arg_parser.cpp): `x.mean(axis=1, keepdims=True)` is a call as good as any.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from types import FunctionType
from typing import Any

import torch.overrides

NAMES_OF_NUMPY = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}


def with_names_of_torch(func: Any, named: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keywords of a call under the names that torch documents; functions that are written in Python have one only."""
    if NAMES_OF_NUMPY.keys().isdisjoint(named) or isinstance(func, FunctionType):
        return named
    own = _own_parameters(func)
    return {k if k in own else NAMES_OF_NUMPY.get(k, k): v for k, v in named.items()}


@cache
def _own_parameters(func: Any) -> frozenset[str]:
    """The parameters that torch lists for a function; `axis` is one of a few's own."""
    listed = torch.overrides.get_testing_overrides().get(func)
    return frozenset(inspect.signature(listed).parameters) if listed is not None else frozenset()
