"""A shape space as torch.export takes it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from trtconv.core.shape_space.derived import is_derived, is_name, names_of, size_of
from trtconv.export.exporters.trace import Trace

# torch reads the names of dims in its own message as formulas of SymPy, in which S, N, E and I are something else.
_SUFFIX = "_as_dim"

def dynamic_shapes(trace: Trace) -> Any:
    """The space as torch.export's dims: `k * Dim` for a multiple, and one Dim for a name that several inputs share.

    A dim that only one input axis has is a named Dim as well: with a name torch.export refuses to make it static,
    which `Dim.AUTO` would do silently. `derived_sizes` holds a derived dim to the others.
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
    derived = (d for s in trace.specs for d in s.dims if is_derived(d) and trace.dynamic(d))
    dims |= {d: _derived(trace, d, dims) for d in derived}
    return (tuple({i: dims[d] for i, d in enumerate(s.dims) if d in dims} for s in trace.specs),)


def hinted_shapes(trace: Trace) -> Any:
    """The space as hints without names; several inputs with one dim are then only found to be equal."""
    named = [
        {i: _hint(trace, d) for i, d in enumerate(s.dims) if isinstance(d, str) and trace.dynamic(d)}
        for s in trace.specs
    ]
    return (tuple(named),)


def _derived(trace: Trace, dim: str, dims: Mapping[str, Any]) -> Any:
    """torch's own derived dim, a multiple of one dim plus a number; of any other kind a dynamic one without a name."""
    from torch._dynamo.exc import UserError

    try:
        return size_of(dim, dims)
    except (KeyError, NotImplementedError, TypeError, UserError):
        return _hint(trace, dim)


def _hint(trace: Trace, dim: str) -> Any:
    from torch.export import Dim

    # As in `dynamic_shapes`: of a size up to 2 torch.export makes the constant 2.
    return Dim.DYNAMIC(min=max(1, trace.space[dim].min), max=max(3, trace.space[dim].max))


@contextmanager
def derived_sizes(trace: Trace) -> Iterator[None]:
    """Trace `trace.flat` in the block so that the size of a derived dim is the expression of the others' symbols.

    torch would give it a symbol of its own, and find or lose how it follows from the others.
    """

    def put_in(_: Any, tensors: tuple[Any, ...]) -> None:
        axes = [pair for s, t in zip(trace.specs, tensors, strict=True) for pair in zip(s.dims, t.shape, strict=True)]
        sizes = {dim: size for dim, size in axes if is_name(dim)}
        for dim, size in axes:
            node = getattr(size, "node", None)
            # Of a name that no axis has by itself there is no symbol, and the derived axis keeps its own.
            if is_derived(dim) and node is not None and node.expr.is_Symbol and sizes.keys() >= {*names_of(dim)}:
                derived = getattr(size_of(dim, sizes), "node", None)
                if derived is not None:
                    node.shape_env._set_replacement(node.expr, derived.expr, "derived")

    hook = trace.flat.register_forward_pre_hook(put_in)
    try:
        yield
    finally:
        hook.remove()


def _torch_name(name: str) -> str:
    import sympy  # type: ignore[import-untyped]

    return f"{name}{_SUFFIX}" if hasattr(sympy, name) else name


def with_own_names(message: str) -> str:
    """torch's message with the dims named as the user names them."""
    return re.sub(rf"\b(\w+?){_SUFFIX}\b", r"\1", message)
