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
from trtconv.core.model.bodies import values_captured
from trtconv.core.model.size_nodes import SizeWriter
from trtconv.proof.points import SamplePoint, sample_inputs
from trtconv.proof.probes.decisions import depend_on_values
from trtconv.rewrite.engine.rounds import RewriteSetting
from trtconv.rewrite.graph.branches import BRANCHES, branch_of, rename_read
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
    point: SamplePoint
    values: Mapping[str, Mapping[str, Array]]


def define_branches(
    model: onnx.ModelProto,
    node: onnx.NodeProto,
    setting: RewriteSetting,
    writer: SizeWriter,
    is_first: Callable[[], str],
    points: Sequence[SamplePoint],
) -> tuple[onnx.ModelProto, dict[bool, LentSizes]] | None:
    """A copy of a model in which both branches of an If of the main graph run at these points, and what was lent.

    The model itself and nothing where they run there already; None where they cannot be made to. `is_first` gives the
    name of what is 1 where the first branch is taken and else 0, int64 [], which `writer` writes; what it has written
    so far goes in front of the If with the rest.
    """
    index = index_of(model, node)
    defined = {answer: branch_shapes(model, index, answer, setting, points).keys() for answer in BRANCHES}
    undefined = [answer for answer in BRANCHES if len(defined[answer]) < len(points)]
    if not undefined:
        return model, {}
    of_values = {o for n in depend_on_values(model.graph) for o in n.output} | {v.name for v in model.graph.input}
    if node.input[0] in of_values or any(not defined[answer] for answer in undefined):
        return None
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    lent: dict[bool, LentSizes] = {}
    for answer in undefined:
        branch = _undefined(model, index, answer, setting, [p for p in points if str(p) in defined[answer]], points)
        if branch is None:
            return None
        lending = _Lending(changed.graph, branch, writer, is_first(), of_values)
        if not lending.lend(branch_of(changed.graph.node[index], answer)):
            return None
        lent[answer] = LentSizes(str(branch.point), lending.dims(setting))
    writer.put_before(changed.graph, index)
    index = index_of(changed, node)
    if any(len(branch_shapes(changed, index, a, setting, points)) < len(points) for a in undefined):
        return None
    return changed, lent


def index_of(model: onnx.ModelProto, node: onnx.NodeProto) -> int:
    """Where in the main graph the node with the outputs of `node` stands."""
    return next(i for i, n in enumerate(model.graph.node) if n.output == node.output)


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
            if bool(outputs[condition].reshape(-1)[0]) is answer and point in defined:
                candidates.append(point)
    except TrtconvError:
        return None
    if not candidates:
        return None
    cheapest = min(candidates, key=lambda p: sum(math.prod(v.shape) for v in values[str(p)].values()))
    return _Undefined(answer, cheapest, values)


class _Lending:
    """What is written in front of an If for one of its branches."""

    def __init__(
        self, graph: onnx.GraphProto, branch: _Undefined, writer: SizeWriter, is_first: str, of_values: set[str]
    ) -> None:
        self.graph, self.branch, self.writer, self.of_values = graph, branch, writer, of_values
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
            renamed[name] = self.writer.fitted(name, lent.ndim, chosen, is_bool=lent.dtype == np.bool_)
        rename_read(body, renamed)
        return bool(renamed)

    def dims(self, setting: RewriteSetting) -> dict[str, str]:
        """The values that say the dims inside of the branch."""
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
