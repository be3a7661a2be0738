"""Ifs whose branches give other sizes, for a target that takes the sizes of the one for the other.

TensorRT 8.6 wants both branches of an If to have the same sizes at each shape, also the one that is not taken. Measured
on an H200: `y = If(T < 50) {Pad(x, 50 - T)} else {0.5 x}` builds, and gives [N, 50] and half of x at every T. A branch
that has no sizes where it is not taken (`y.view(n, 2, t)` of what has more elements) ends infer_shapes by SIGSEGV.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import onnx

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import TrtconvError, UnsupportedError
from trtconv.core.model.file import external_files
from trtconv.core.model.provenance import origin_of
from trtconv.proof.points import SamplePoint, sample_inputs, sample_points
from trtconv.proof.size_arithmetic import sizes_beside_turns
from trtconv.proof.size_elements import NotSizesError
from trtconv.rewrite.engine.rounds import RewriteSetting
from trtconv.rewrite.graph.branches import BRANCHES, up_to_branch
from trtconv.rewrite.graph.index import Array
from trtconv.rewrite.lowering.settled_ifs import leading_part

# Sizes of each side next to which a condition turns along a dim, and of a dim at each end, at which branches are run.
MOST_TURNS, NEAR_ENDS = 4, 4
Shapes = dict[str, tuple[int, ...]]


def require_alike_branches(model: onnx.ModelProto, setting: RewriteSetting) -> None:
    """Raise UnsupportedError for an If of the main graph whose branches differ in a size at a sample point.

    Also for one of which a branch fails at a point at which the other does not.
    """
    if not setting.target.facts.branches_of_one_size or external_files(model):
        return
    points = random_points(setting)
    for index, node in enumerate(model.graph.node):
        if node.op_type != "If":
            continue
        first, second = (branch_shapes(model, index, answer, setting, points) for answer in BRANCHES)
        lacking = next((p for p in map(str, points) if (p in first) is not (p in second)), None)
        if lacking is not None:
            raise UnsupportedError(
                f"{setting.target} works out the shapes of both branches of an If at every size, and crashes where one "
                f"has none: one of '{node.name or node.output[0]}' is undefined at {lacking}, where it is not taken",
                hint="write both ways in the module so that each runs at every size, or choose a newer target",
                where=origin_of(node).source or None,
            )
        for point in first.keys() & second.keys():
            for name, shape in first[point].items():
                if shape != second[point][name]:
                    raise UnsupportedError(
                        f"{setting.target} computes an If wrongly, silently, whose branches give other sizes: "
                        f"'{node.name or name}' gives {list(shape)} or {list(second[point][name])} at {point}",
                        hint="give both branches one size in the module, as by a pad of max(50 - t, 0) for both, or "
                        "choose a newer target",
                        where=origin_of(node).source or None,
                    )


def random_points(setting: RewriteSetting) -> list[SamplePoint]:
    """The sample points of random values, at all sizes that are sampled."""
    return [p for p in sample_points(setting.space, setting.specs) if p.values == "random"]


def points_beside_turns(model: onnx.ModelProto, condition: str, setting: RewriteSetting) -> list[SamplePoint]:
    """Points at which no sample lies: those next to which a condition turns, and those next to the ends of each dim."""
    opt = setting.space.pick("opt")
    beside: list[dict[str, int]] = []
    with suppress(NotSizesError):
        beside = sizes_beside_turns(model.graph, condition, setting.specs, setting.space, MOST_TURNS)
    ends = [{n: v} for n, r in setting.space.dims for v in (*r.values()[:NEAR_ENDS], *r.values()[-NEAR_ENDS:])]
    present = {p.dims for p in random_points(setting)}
    others = dict.fromkeys(tuple({**opt, **sizes}.items()) for sizes in (*beside, *ends))
    return [SamplePoint("turn", dims) for dims in others if dims not in present]


def _sizes(value: Array | list[Array]) -> tuple[int, ...]:
    """The shape of a tensor, the length of a sequence."""
    return (len(value),) if isinstance(value, list) else tuple(value.shape)


def branch_shapes(
    model: onnx.ModelProto, index: int, answer: bool, setting: RewriteSetting, points: Sequence[SamplePoint]
) -> dict[str, Shapes]:
    """By point the sizes that a branch gives, whether it is taken there or not; without points at which it fails."""
    changed = up_to_branch(model, index, answer)
    names = [o for o in model.graph.node[index].output if o]
    shapes: dict[str, Shapes] = {}
    try:
        run = OnnxRuntimeRunner(leading_part(changed, names).SerializeToString())
    except TrtconvError:
        return shapes
    for point in points:
        try:
            outputs = run(sample_inputs(setting.specs, point))
        except TrtconvError:
            continue
        shapes[str(point)] = {n: _sizes(outputs[n]) for n in names}
    return shapes
