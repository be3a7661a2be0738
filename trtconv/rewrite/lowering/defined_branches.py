"""Branches of an If that are not defined where they are not taken: they get sizes there at which they are.

`if t > 4: y = F.pad(x, (2, 2), mode="reflect")` has no result for a length of 2. TensorRT 8.6 works out the shapes of
both branches at every size and crashes where one has none, TensorRT-RTX 1.7 does so at the ends of a profile, and a
Where needs both. So where such a branch is not taken, what it reads is cut or padded to the sizes of a sample point at
which it is, and the whole numbers that it reads are those of that point: it then has the shapes that it has there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import onnx

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import TrtconvError
from trtconv.core.model.bodies import leading_to, values_captured, values_read
from trtconv.core.model.dim_names import declared_dims
from trtconv.core.model.size_nodes import SizeWriter, UnwritableSizeError
from trtconv.proof.points import SamplePoint, sample_inputs
from trtconv.proof.probes.decisions import depend_on_values
from trtconv.proof.size_arithmetic import least_where
from trtconv.proof.size_elements import NotSizesError
from trtconv.rewrite.engine.rounds import RewriteSetting
from trtconv.rewrite.graph.branches import BRANCHES, branch_of, index_of, rename_read
from trtconv.rewrite.lowering.branch_sizes import branch_shapes
from trtconv.rewrite.lowering.settled_ifs import leading_part

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# Elements of a value that is worked out from sizes.
MOST_NUMBERS = 64


@dataclass(frozen=True)
class LentSizes:
    """What was lent to a branch: the sizes of `point` where it is not taken.

    `dims` are the values, int64 [], that say a dim inside of the branch.
    """

    point: str
    dims: Mapping[str, str]


@dataclass(frozen=True)
class _Undefined:
    """A branch that fails at some points; `point` is one at which it is taken, `values` what it reads, by point."""

    answer: bool
    condition: str
    point: SamplePoint
    values: Mapping[str, Mapping[str, Array]]


def defined_points(
    model: onnx.ModelProto, node: onnx.NodeProto, setting: RewriteSetting, points: Sequence[SamplePoint]
) -> dict[bool, list[SamplePoint]]:
    """By the answer of an If of the main graph, the points at which that branch runs, whether it is taken or not."""
    index = index_of(model.graph, node)
    return {answer: _defined_at(model, index, answer, setting, points) for answer in BRANCHES}


def _defined_at(
    model: onnx.ModelProto, index: int, answer: bool, setting: RewriteSetting, points: Sequence[SamplePoint]
) -> list[SamplePoint]:
    """The points at which a branch gives something; where it gives nothing elsewhere, it is not made for that."""
    shapes = branch_shapes(model, index, answer, setting, points)
    filled = {point for point, outputs in shapes.items() if not any(0 in shape for shape in outputs.values())}
    return [p for p in points if str(p) in (filled or shapes)]


def define_branches(
    model: onnx.ModelProto,
    node: onnx.NodeProto,
    setting: RewriteSetting,
    writer: SizeWriter,
    is_first: Callable[[], str],
    points: Sequence[SamplePoint],
    defined: Mapping[bool, Sequence[SamplePoint]],
) -> tuple[onnx.ModelProto, dict[bool, LentSizes]] | None:
    """A copy of a model in which both branches of an If of the main graph run at these points, and what was lent.

    None where they cannot be made to. `is_first` gives the name of what is 1 where the first branch is taken and else
    0, int64 [], which `writer` writes; what it has written so far goes in front of the If with the rest. `defined` are
    the points at which they run before.
    """
    index = index_of(model.graph, node)
    undefined = [answer for answer in BRANCHES if len(defined[answer]) < len(points)]
    of_values = {o for n in depend_on_values(model.graph) for o in n.output} | {v.name for v in model.graph.input}
    if node.input[0] in of_values or any(not defined[answer] for answer in undefined):
        return None
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    lent: dict[bool, LentSizes] = {}
    for answer in undefined:
        branch = _undefined(model, index, answer, setting, defined[answer], points)
        if branch is None:
            return None
        lending = _Lending(changed.graph, branch, writer, is_first(), of_values, setting)
        if not lending.lend(branch_of(changed.graph.node[index], answer)):
            return None
        lent[answer] = LentSizes(str(branch.point), lending.dims())
    writer.put_before(changed.graph, index)
    index = index_of(changed.graph, node)
    if any(len(_defined_at(changed, index, answer, setting, points)) < len(points) for answer in undefined):
        return None
    return changed, lent


def least_sizes(
    graph: onnx.GraphProto, condition: str, answer: bool, text: str, setting: RewriteSetting
) -> tuple[int, int] | None:
    """The least that an expression of sizes comes to where a branch is taken, and of all joint sizes.

    None where that cannot be evaluated.
    """
    part = onnx.GraphProto()
    part.input.extend(graph.input)
    part.node.extend(leading_to(graph.node, [condition]))
    read = {name for node in part.node for name in values_read(node)}
    part.initializer.extend(t for t in graph.initializer if t.name in read)
    writer = SizeWriter(setting.specs, part, "trtconv_least_")
    try:
        size = writer.expression(text)
        part.node.extend(writer.nodes)
        return least_where(part, size, condition, answer, setting.specs, setting.space)
    except (UnwritableSizeError, SyntaxError, NotSizesError):
        return None


def _undefined(
    model: onnx.ModelProto,
    index: int,
    answer: bool,
    setting: RewriteSetting,
    defined: Sequence[SamplePoint],
    points: Sequence[SamplePoint],
) -> _Undefined | None:
    """What a branch reads at all points; None where it runs at none of those at which it is taken."""
    node = model.graph.node[index]
    weights = {t.name for t in model.graph.initializer}
    names = [n for n in values_captured(branch_of(node, answer)) if n not in weights]
    condition = node.input[0]
    values: dict[str, dict[str, Array]] = {}
    candidates = []
    try:
        run = OnnxRuntimeRunner(leading_part(model, list(dict.fromkeys((condition, *names)))).SerializeToString())
        for point in points:
            outputs = run(sample_inputs(setting.specs, point))
            values[str(point)] = {n: outputs[n] for n in names}
            if any(isinstance(value, list) for value in values[str(point)].values()):
                return None  # a sequence has no size that others could lend it
            if bool(outputs[condition].reshape(-1)[0]) is answer and point in defined:
                candidates.append(point)
    except TrtconvError:
        return None
    if not candidates:
        return None
    cheapest = min(candidates, key=lambda p: sum(math.prod(v.shape) for v in values[str(p)].values()))
    return _Undefined(answer, condition, cheapest, values)


class _Lending:
    """What is written in front of an If for one of its branches."""

    def __init__(
        self,
        graph: onnx.GraphProto,
        branch: _Undefined,
        writer: SizeWriter,
        is_first: str,
        of_values: set[str],
        setting: RewriteSetting,
    ) -> None:
        self.graph, self.branch, self.writer, self.of_values = graph, branch, writer, of_values
        self.setting = setting
        self.flag = is_first if branch.answer else writer.node("Sub", writer.constant(1), is_first)

    def lend(self, body: onnx.GraphProto) -> bool:
        """Let the branch read what has the sizes of the point; False where it reads what cannot have them."""
        import numpy as np

        renamed: dict[str, str] = {}
        for name, lent in self.branch.values[str(self.branch.point)].items():
            others = [v[name] for v in self.branch.values.values()]
            if all(o.shape == lent.shape for o in others):
                if name in self.of_values or all((o == lent).all() for o in others):
                    continue
                if lent.dtype != np.int64 or lent.size > MOST_NUMBERS:
                    return False
                renamed[name] = self.writer.choose(self.flag, name, self._weight(lent))
                continue
            sizes = self._weight(np.array(lent.shape, np.int64))
            chosen = self.writer.choose(self.flag, self.writer.node("Shape", name), sizes)
            # A builder that bounds each term for itself takes less for possible, and ends with a segmentation fault.
            least = np.minimum(self._least(name, lent.ndim), lent.shape)
            if least.any():
                chosen = self.writer.node("Max", chosen, self._weight(least))
            renamed[name] = self.writer.fitted(name, lent.ndim, chosen, is_bool=lent.dtype == np.bool_)
        rename_read(body, renamed)
        return bool(renamed)

    def _least(self, name: str, rank: int) -> Array:
        """The least size of each axis of a value where the branch is taken, of all joint sizes; 0 where unknown."""
        import numpy as np

        branch, setting = self.branch, self.setting
        declared: dict[str, Sequence[int | str]] = {v.name: declared_dims(v) for v in self.graph.value_info}
        declared |= {s.name: s.dims for s in setting.specs}
        dims = declared.get(name, ())
        least = np.zeros(rank, np.int64)
        if len(dims) == rank:
            for axis, dim in enumerate(dims):
                bounds = least_sizes(self.graph, branch.condition, branch.answer, str(dim), setting)
                least[axis] = max(0, bounds[0]) if bounds else 0
        return least

    def dims(self) -> dict[str, str]:
        """The values that say the dims inside of the branch."""
        setting = self.setting
        whole = SizeWriter(setting.specs, self.writer.graph, f"{self.writer.prefix}dim_{int(self.branch.answer)}_")
        sizes = self.branch.point.sizes
        names = {n for spec in setting.specs for n in spec.names()}
        chosen = {n: whole.choose(self.flag, whole.size(n), whole.constant(sizes[n])) for n in sorted(names)}
        self.writer.nodes.extend(whole.nodes)
        return chosen

    def _weight(self, values: Array) -> str:
        graph = self.writer.graph
        name = f"{self.writer.prefix}lent_{len(graph.initializer)}"
        graph.initializer.append(onnx.numpy_helper.from_array(values, name))
        return name
