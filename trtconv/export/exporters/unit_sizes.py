"""Sizes in multiples, traced as multiples from the first operation on.

torch.export takes `32 * unit` for a condition that it looks at when the trace is over. Until then the size is a symbol
of its own, and a quotient such as `H // 4 + H // 4 % 2` stays what it is. Layer upon layer puts such expressions into
each other, and torch simplifies them again at every view: swin_t, which pads to windows of seven and halves the size in
three steps, was not traced in six minutes. With `32 * unit` in place of the symbol these are `8 * unit`, `4 * unit`.

A unit is no axis of an input, so torch cannot state a condition on one: it raises KeyError, or drops the condition in
the end. The conditions are taken out of its hands and tried here at every size of the space.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from trtconv.core.shape_space.derived import is_name
from trtconv.export.exporters.trace import Trace
from trtconv.export.sizes.evaluate import UnreadableError, evaluate_symbolic
from trtconv.proof.joint_sizes import count_sizes, size_grids
from trtconv.proof.size_arithmetic import MOST_EVALUATED

SUFFIX = "_in_units"


class UnprovedConditionError(Exception):
    """The trace holds under a condition on the sizes that is not shown to hold in the whole space."""


class BoundedTraceError(UnprovedConditionError):
    """The trace holds up to, or from, a size of one dim; said in torch's words, so that the space can be cut there."""


@contextmanager
def sizes_in_units(trace: Trace) -> Iterator[None]:
    """Trace `trace.flat` in the block so that each dim in multiples is a multiple of one symbol.

    Raises UnprovedConditionError at the end of the block for a condition that fails at some sizes of the space.
    """
    env: list[Any] = []
    dims: dict[Any, tuple[str, int]] = {}
    conditions: dict[Any, str] = {}

    def put_in(_: Any, tensors: tuple[Any, ...]) -> None:
        for spec, tensor in zip(trace.specs, tensors, strict=True):
            for name, size in zip(spec.dims, tensor.shape, strict=True):
                node = getattr(size, "node", None)
                if is_name(name) and node is not None and node.expr.is_Symbol:
                    env[:] = [node.shape_env]
                    multiple = trace.space[name].multiple
                    dims[_unit(node, trace, name) if multiple > 1 else node.expr] = name, multiple

    def take_down(*_: Any) -> None:
        # Those that come later are torch's own: that the size is a multiple.
        units = {unit for unit, (_, multiple) in dims.items() if multiple > 1}
        for e in env:
            conditions.update((g.expr, _line_of(g)) for g in e.guards)
            e.guards[:] = [g for g in e.guards if not units & g.expr.free_symbols]

    hooks = trace.flat.register_forward_pre_hook(put_in), trace.flat.register_forward_hook(take_down)
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
    failing = [c for c in conditions if not _holds_everywhere(c, dims, trace)]
    bound = _bound_of(failing, dims, trace)
    lines = "\n".join(filter(None, (conditions[c] for c in failing[:1])))
    if bound:
        raise BoundedTraceError(f"{bound}\n{lines}")
    if failing:
        raise UnprovedConditionError(f"{failing[0]}\n{lines}")


def _line_of(guard: Any) -> str:
    """The line that asked, as in a traceback; empty where torch did not note one."""
    frame = guard.sloc.framework_loc
    return f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}' if hasattr(frame, "lineno") else ""


def is_in_multiples(trace: Trace) -> bool:
    """True when a dim that is traced as a symbol comes in multiples."""
    return any(trace.dynamic(n) and trace.space[n].multiple > 1 for s in trace.specs for n in s.names())


def is_for_units(error: BaseException) -> bool:
    """True for an error that the same trace may not raise without units."""
    if isinstance(error, BoundedTraceError):
        return False
    if isinstance(error, UnprovedConditionError | AssertionError):
        return True
    text = str(error)
    return "Constraints violated" in text or SUFFIX in text


def _unit(node: Any, trace: Trace, name: str) -> Any:
    """The symbol of the unit, in whose multiples the size of `node` is from now on."""
    import sympy  # type: ignore[import-untyped]
    from torch.utils._sympy.value_ranges import ValueRanges

    env, rng = node.shape_env, trace.space[name]
    unit = sympy.Symbol(f"{name}{SUFFIX}", integer=True, positive=True)
    env.backed_var_to_val[unit] = sympy.Integer(node.hint // rng.multiple)
    # The range that `dynamic_shapes` states.
    env.var_to_range[unit] = ValueRanges(max(1, rng.min // rng.multiple), max(3, rng.max // rng.multiple))
    # torch narrows ranges by each condition, and takes a size of which one is left for a constant.
    narrow = env._refine_ranges
    env._refine_ranges = lambda condition: None if unit in condition.free_symbols else narrow(condition)
    env._set_replacement(node.expr, rng.multiple * unit, "multiple")
    return unit


def _holds_everywhere(condition: Any, dims: dict[Any, tuple[str, int]], trace: Trace) -> bool:
    symbols = condition.free_symbols
    if not any(dims.get(s, ("", 1))[1] > 1 for s in symbols):
        # torch itself sees to it.
        return True
    names = tuple(dict.fromkeys(dims[s][0] for s in symbols if s in dims))
    if not all(s in dims for s in symbols) or count_sizes(trace.space, names) > MOST_EVALUATED:
        return False
    try:
        for grids in size_grids(trace.space, names):
            values = {s: grids[dims[s][0]] // dims[s][1] for s in symbols}
            if not evaluate_symbolic(condition, values).all():
                return False
    except UnreadableError:
        return False
    return True


def _bound_of(failing: Sequence[Any], dims: Mapping[Any, tuple[str, int]], trace: Trace) -> str:
    """torch's message for the first dim whose own conditions hold between two sizes; empty without such a dim."""
    import numpy as np

    for name in dict.fromkeys(n for n, _ in dims.values()):
        own = [c for c in failing if {dims.get(s, ("", 1))[0] for s in c.free_symbols} == {name}]
        values = np.asarray(list(trace.space[name].values()), np.int64)
        try:
            holds = [evaluate_symbolic(c, {s: values // dims[s][1] for s in c.free_symbols}) for c in own]
        except UnreadableError:
            continue
        inside = np.flatnonzero(
            np.logical_and.reduce([np.broadcast_to(h, values.shape) for h in holds] or [values > 0])
        )
        if not own or len(inside) in (0, len(values)) or inside[-1] - inside[0] + 1 > len(inside):
            continue
        sign, option, last = ("<=", "max", inside[-1]) if inside[-1] < len(values) - 1 else (">=", "min", inside[0])
        size = next(
            f"L['tensors'][{i}].size()[{s.dims.index(name)}]" for i, s in enumerate(trace.specs) if name in s.dims
        )
        return (
            f"Constraints violated ({name})!\n  - Not all values of {name} = {size} in the specified range satisfy the "
            f"generated guard {size} {sign} {values[last]}.\n"
            f"Suggested fixes:\n  {name} = Dim('{name}', {option}={values[last]})"
        )
    return ""
