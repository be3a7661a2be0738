"""A shape space as torch.export takes it."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from trtconv.export.exporters.trace import Trace

# torch reads the names of dims in its own message as formulas of SymPy, in which S, N, E and I are something else.
_SUFFIX = "_as_dim"

def dynamic_shapes(trace: Trace) -> Any:
    """The space as torch.export's dims: `k * Dim` for a multiple, and one Dim for a name that several inputs share.

    A dim that only one input axis has is a named Dim as well: with a name torch.export refuses to make it static,
    which `Dim.AUTO` would do silently.
    """
    from torch.export import Dim

    dims: dict[str, Any] = {}
    for name in Counter(n for s in trace.specs for n in s.names()):
        rng = trace.space[name]
        if trace.dynamic(name):
            # Of a size up to 2 torch.export makes the constant 2, since it takes 0 and 1 for special cases.
            low, high = max(1, rng.min // rng.multiple), max(3, rng.max // rng.multiple)
            unit = Dim(f"{name}_unit" if rng.multiple > 1 else _torch_name(name), min=low, max=high)
            dims[name] = rng.multiple * unit if rng.multiple > 1 else unit
    return (tuple({i: dims[d] for i, d in enumerate(s.dims) if d in dims} for s in trace.specs),)


def hinted_shapes(trace: Trace) -> Any:
    """The space as hints without names; several inputs with one dim are then only found to be equal."""
    from torch.export import Dim

    def hint(name: str) -> Any:
        # As in `dynamic_shapes`: of a size up to 2 torch.export makes the constant 2.
        return Dim.DYNAMIC(min=max(1, trace.space[name].min), max=max(3, trace.space[name].max))

    named = [{i: hint(d) for i, d in enumerate(s.dims) if isinstance(d, str) and trace.dynamic(d)} for s in trace.specs]
    return (tuple(named),)


def _torch_name(name: str) -> str:
    import sympy  # type: ignore[import-untyped]

    return f"{name}{_SUFFIX}" if hasattr(sympy, name) else name


def with_own_names(message: str) -> str:
    """torch's message with the dims named as the user names them."""
    return re.sub(rf"\b(\w+?){_SUFFIX}\b", r"\1", message)
