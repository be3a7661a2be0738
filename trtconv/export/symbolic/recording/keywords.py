"""Keywords of calls: the names that torch's own functions take besides the documented ones, and flags.

Its argument parser knows NumPy's names of four parameters (`numpy_compatibility_arg_names` in
torch/csrc/utils/python_arg_parser.cpp): `x.mean(axis=1, keepdims=True)` is a call as good as any.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from types import FunctionType
from typing import Any

import torch
import torch.overrides

NAMES_OF_NUMPY = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}
# Either way is another operator or another shape: which one is a decision, as an `if` is.
FLAGS = frozenset(
    ("align_corners", "antialias", "ceil_mode", "count_include_pad", "descending", "keepdim", "largest", "right",
     "recompute_scale_factor", "sorted", "stable", "unbiased")
)  # fmt: skip


def with_plain_flags(named: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keywords of a call with `align_corners=t < 20` decided: no operator takes a condition on sizes."""
    # A plain loop, as torch.cond has these lines traced.
    if not any(k in FLAGS for k in named):
        return named
    conditions = (torch.SymBool, torch.Tensor)
    return {k: bool(v) if k in FLAGS and isinstance(v, conditions) else v for k, v in named.items()}


def with_names_of_torch(func: Any, named: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keywords of a call under the names that torch documents; a function written in Python has no others."""
    if not any(k in NAMES_OF_NUMPY for k in named) or isinstance(func, FunctionType):
        return named
    own = _own_parameters(func)
    return {k if k in own else NAMES_OF_NUMPY.get(k, k): v for k, v in named.items()}


@cache
def _own_parameters(func: Any) -> frozenset[str]:
    """The parameters that torch lists for a function; `axis` is one of a few's own."""
    listed = torch.overrides.get_testing_overrides().get(func)
    return frozenset(inspect.signature(listed).parameters) if listed is not None else frozenset()
