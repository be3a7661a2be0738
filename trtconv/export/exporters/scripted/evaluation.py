"""What numbers of a script depend on, and what they are at each step: computed as Python does, in FP64."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trtconv.export.exporters.scripted.rounding import is_constant, is_number, is_pure, walk

LARGEST_INT = 2**63 - 1


class UndefinedNumberError(Exception):
    """Python raises where a script would compute the number."""


@dataclass(frozen=True)
class Leaf:
    """A whole number from zero up that other numbers are computed from: the counter of a loop, or a size.

    `open_ended` is a counter of a loop without a number of steps, a `while`.
    """

    value: Any
    counts: bool = False
    open_ended: bool = False


@dataclass(frozen=True)
class LoopStates:
    """The numbers that a loop carries on: by their `unique()` what they start from and become."""

    counter: Leaf
    updates: dict[int, tuple[Any, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class CarriedFloat:
    """A float that a loop carries on and nothing reads behind the loop: its place, and what it starts from."""

    value: Any
    body: Any
    index: int
    start: Any


class Numbers:
    """The numbers of an inlined graph of a script; `module` has the attributes that it reads."""

    def __init__(self, graph: Any, module: Any) -> None:
        self.module, self.graph = module, graph
        self._loops: dict[int, LoopStates] = {}
        self._leaves: dict[int, Leaf] = {}
        for node in walk(graph):
            if node.kind() == "prim::Loop":
                self._add_loop(node)
            elif _is_size(node):
                self._leaves[node.output().unique()] = Leaf(node.output())
        self._drop_states_of_others()

    def leaves(self, value: Any) -> Mapping[int, Leaf] | None:
        """By `unique()` what a number is computed from; None where that is more than counters and sizes."""
        key, node = value.unique(), value.node()
        if key in self._leaves:
            return {key: self._leaves[key]}
        if key in self._loops:
            counter = self._loops[key].counter
            return {counter.value.unique(): counter}
        if is_constant(node):
            return {}
        if not is_pure(node):
            return None
        results: dict[int, Leaf] = {}
        for read in _reads(node):
            more = self.leaves(read)
            if more is None:
                return None
            results.update(more)
        return results

    def steps(self, leaf: Leaf, count: int) -> Iterator[dict[int, Any]]:
        """The leaf and the states of its loop at each of its values."""
        key = leaf.value.unique()
        states = {k: loop for k, loop in self._loops.items() if loop.counter.value.unique() == key}
        current = {k: self.value(loop.updates[k][0], {}) for k, loop in states.items()}
        for number in range(count):
            values = {key: number, **current}
            yield values
            try:
                current = {k: self.value(loop.updates[k][1], values) for k, loop in states.items()}
            except UndefinedNumberError:
                return

    def floats_carried_on(self) -> Iterator[CarriedFloat]:
        """The floats among the states of loops that are computed from the counter alone."""
        for node in walk(self.graph):
            if node.kind() != "prim::Loop":
                continue
            (body,) = node.blocks()
            values = zip(list(node.inputs())[2:], list(body.inputs())[1:], node.outputs(), strict=True)
            for index, (start, state, output) in enumerate(values):
                own = state.type().kind() == "FloatType" and state.unique() in self._loops
                if own and not list(output.uses()):
                    yield CarriedFloat(state, body, index, start)

    def value(self, value: Any, fixed: Mapping[int, Any]) -> Any:
        """A number where those of `fixed` are given, by `unique()`. Raises UndefinedNumberError."""
        return self._value(value, dict(fixed))

    def _value(self, value: Any, computed: dict[int, Any]) -> Any:
        key = value.unique()
        if key not in computed:
            self._run(value.node(), computed)
        return computed[key]

    def _run(self, node: Any, computed: dict[int, Any]) -> None:
        if node.kind() == "prim::Constant":
            computed[node.output().unique()] = node.output().toIValue()
        elif node.kind() == "prim::GetAttr":
            computed[node.output().unique()] = self._attribute(node)
        elif node.kind() == "prim::If":
            first, second = node.blocks()
            chosen = first if self._value(next(iter(node.inputs())), computed) else second
            for output, result in zip(node.outputs(), chosen.outputs(), strict=True):
                computed[output.unique()] = self._value(result, computed)
        else:
            computed[node.output().unique()] = _call(node, [self._value(i, computed) for i in node.inputs()])

    def _attribute(self, node: Any) -> Any:
        (owner,) = node.inputs()
        inner = owner.node().kind() == "prim::GetAttr"
        return getattr(self._attribute(owner.node()) if inner else self.module, node.s("name"))

    def _add_loop(self, node: Any) -> None:
        steps, _, *starts = node.inputs()
        (body,) = node.blocks()
        number, *states = body.inputs()
        counter = Leaf(number, True, steps.toIValue() == LARGEST_INT)
        self._leaves[number.unique()] = counter
        ends = list(body.outputs())[1:]
        updates = {s.unique(): (a, b) for s, a, b in zip(states, starts, ends, strict=True) if is_number(s)}
        numbers = LoopStates(counter, updates)
        self._loops.update(dict.fromkeys(numbers.updates, numbers))
        for inner in body.nodes():
            if inner.kind() == "aten::__derive_index" and _never_negative(inner, steps):
                self._leaves[inner.output().unique()] = Leaf(inner.output())

    def _drop_states_of_others(self) -> None:
        """Leave the states that start from constants and change by the counter and each other alone."""
        while True:
            others = [k for k, loop in self._loops.items() if not self._is_own(loop, *loop.updates[k])]
            if not others:
                return
            for key in others:
                del self._loops[key]

    def _is_own(self, loop: LoopStates, start: Any, update: Any) -> bool:
        before, after = self.leaves(start), self.leaves(update)
        return before == {} and after is not None and set(after) <= {loop.counter.value.unique()}


def _reads(node: Any) -> Iterator[Any]:
    """The values from outside of a node that it computes with."""
    inner = [n for block in node.blocks() for n in walk(block)]
    inside = {o.unique() for n in inner for o in n.outputs()}
    results = [o for block in node.blocks() for o in block.outputs()]
    for value in (*node.inputs(), *(i for n in inner for i in n.inputs()), *results):
        if value.unique() not in inside:
            yield value


def _is_size(node: Any) -> bool:
    if node.kind() == "aten::__getitem__":
        return bool(next(iter(node.inputs())).node().kind() == "aten::size")
    return bool(node.kind() in ("aten::size", "aten::len", "aten::dim") and is_number(node.output()))


def _never_negative(node: Any, steps: Any) -> bool:
    """True for the counter of `range(n - 1, -1, -1)`; that of a start that is a constant is computed from the steps."""
    _, start, step = node.inputs()
    length = steps.node()
    if length.kind() != "aten::__range_length" or start.node().kind() == "prim::Constant":
        return False
    _, stop, _ = length.inputs()
    last, by = stop.toIValue(), step.toIValue()
    return bool(isinstance(last, int) and isinstance(by, int) and by < 0 and last >= -1)


# Python's forms of what a script computes otherwise of floats: 0.5 // 0.1 is 4.0 and not the floor of 5.0, and
# 0.9 % 1.0 is 0.9.
OF_FLOATS = {"aten::floordiv": operator.floordiv, "aten::remainder": operator.mod}


def _call(node: Any, arguments: Sequence[Any]) -> Any:
    import torch

    of_floats = OF_FLOATS.get(node.kind()) if any(isinstance(a, float) for a in arguments) else None
    if of_floats is not None and all(isinstance(a, (int, float)) for a in arguments):
        try:
            return of_floats(*arguments)
        except ArithmeticError as error:
            raise UndefinedNumberError(f"{node.kind()} of {arguments}") from error
    # The operators of numbers are overloads: `aten::mul.int_float(int a, float b) -> float`. One that is not named
    # makes tensors of them.
    namespace, name = node.kind().split("::")
    overload = node.schema().partition("(")[0].partition(".")[2] or "default"
    try:
        return getattr(getattr(getattr(torch.ops, namespace), name), overload)(*arguments)
    except (ArithmeticError, ValueError, RuntimeError, AttributeError, TypeError) as error:
        raise UndefinedNumberError(f"{node.kind()} of {arguments}") from error
