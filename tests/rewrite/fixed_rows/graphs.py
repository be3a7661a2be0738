"""Graphs with suppression as exporters and tools write them, and runs of both forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import parser

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.shape_space.fixed_rows import FixedRows
from trtconv.core.targets import parse_target
from trtconv.rewrite.fixed_rows.clusters import prove_suppressions
from trtconv.rewrite.fixed_rows.fix import fix_rows
from trtconv.rewrite.graph.facts import index_model

Array = np.ndarray[Any, np.dtype[Any]]
RTX = parse_target("tensorrt-rtx")
# The end of a detector as exporters write it.
DETECTOR = """g (float[1,T,4] boxes, float[1,2,T] scores) => (float[D,4] kept, float[D] best, int64[D] label)
    <int64 limit = {20}, float overlap = {0.5}, float least = {0.1}, int64[1] one = {1}, int64[1] two = {2},
     int64[1] three = {3}, int64[1] ax1 = {1}, int64[1] ax0 = {0}> {
        chosen = NonMaxSuppression(boxes, scores, limit, overlap, least)
        label_ = Slice(chosen, one, two, ax1)
        label = Squeeze(label_, ax1)
        box_ = Slice(chosen, two, three, ax1)
        box = Squeeze(box_, ax1)
        all = Squeeze(boxes, ax0)
        kept = Gather<axis=0>(all, box)
        best = GatherND(scores, chosen)
    }"""


def parsed(text: str, opset: int = 17) -> onnx.ModelProto:
    """The model in ONNX's text form, checked."""
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {text}')
    onnx.checker.check_model(model, full_check=True)
    return model


def suppression(
    batch: object = 1, classes: object = 1, limit: int = 2**40, score: float | None = None, *, center: int = 0,
    overlap: float = 0.5, opset: int = 17,
) -> onnx.ModelProto:  # fmt: skip
    """NonMaxSuppression alone; its indices are the output."""
    constants = f"int64 limit = {{{limit}}}, float overlap = {{{overlap}}}"
    constants += "" if score is None else f", float score = {{{score}}}"
    last = "" if score is None else ", score"
    return parsed(
        f"""g (float[{batch},T,4] boxes, float[{batch},{classes},T] scores) => (int64[D,3] chosen) <{constants}> {{
            chosen = NonMaxSuppression<center_point_box={center}>(boxes, scores, limit, overlap{last})
        }}""",
        opset,
    )


def detector_by_class() -> onnx.ModelProto:
    """Per class: over a threshold, the best k; all classes joined, moved apart, suppressed, the best 6 kept."""
    by_class = "\n".join(
        f"""s{c} = Gather<axis=1>(scores, c{c})
            m{c} = Greater(s{c}, least)
            q{c} = NonZero(m{c})
            i{c} = Squeeze(q{c}, ax0)
            t{c} = Gather<axis=0>(s{c}, i{c})
            n{c} = Shape(t{c})
            k{c} = Min(n{c}, five)
            v{c}, w{c} = TopK(t{c}, k{c})
            j{c} = Gather<axis=0>(i{c}, w{c})
            b{c} = Gather<axis=0>(boxes, j{c})
            l{c} = Expand(c{c}, k{c})"""
        for c in range(3)
    )
    return parsed(f"""g (float[T,4] boxes, float[T,3] scores) => (float[D,4] kept, float[D] best, int64[D] label)
        <float least = {{0.3}}, float apart = {{0.4}}, int64 no = {{9223372036854775807}}, int64[1] ax0 = {{0}},
         int64[1] ax1 = {{1}}, int64[1] two = {{2}}, int64[1] three = {{3}}, int64[1] five = {{5}},
         int64[1] six = {{6}},
         int64 c0 = {{0}}, int64 c1 = {{1}}, int64 c2 = {{2}}, int64[2] ax01 = {{0, 1}}, int64[1] all = {{-1}}> {{
            {by_class}
            b = Concat<axis=0>(b0, b1, b2)
            v = Concat<axis=0>(v0, v1, v2)
            l = Concat<axis=0>(l0, l1, l2)
            far = ReduceMax<keepdims=0>(b)
            lf = Cast<to=1>(l)
            move = Mul(lf, far)
            shift = Unsqueeze(move, ax1)
            moved = Add(b, shift)
            mb = Unsqueeze(moved, ax0)
            mv = Unsqueeze(v, ax01)
            chosen = NonMaxSuppression(mb, mv, no, apart)
            box_ = Slice(chosen, two, three, ax1)
            box = Reshape(box_, all)
            keep = Slice(box, ax0, six, ax0)
            kept = Gather<axis=0>(b, keep)
            best = Gather<axis=0>(v, keep)
            label = Gather<axis=0>(l, keep)
        }}""")


def selected(batch: int, classes: int, count: int, seed: int, *, steps: float = 0.0) -> dict[str, Array]:
    """Boxes (corners in any order) and scores; scores in steps of `steps` have ties."""
    chance = np.random.default_rng(seed)
    first, size = chance.uniform(0, 10, (batch, count, 2)), chance.uniform(-6, 6, (batch, count, 2))
    boxes = np.concatenate([first, first + size], 2).astype(np.float32)
    scores = chance.uniform(0, 1, (batch, classes, count))
    scores = np.round(scores / steps) * steps if steps else scores
    return {"boxes": boxes, "scores": scores.astype(np.float32)}


def both(model: onnx.ModelProto, most: int, *feeds: dict[str, Array]) -> tuple[FixedRows, list[tuple[Any, Any]]]:
    """What the model gives, padded by NumPy, and what its fixed form gives, for each feed."""
    fixed = fix_rows(model, RTX, most)
    record = fixed.record
    onnx.checker.check_model(fixed.model, full_check=True)
    prove_suppressions(index_model(model, RTX), fixed.model, fixed.suppressions)
    before, after = (OnnxRuntimeRunner(m.SerializeToString(), threads=1) for m in (model, fixed.model))
    return record, [(record.pad(before(feed)), after(feed)) for feed in feeds]


def assert_same(pairs: list[tuple[Any, Any]]) -> None:
    """Each output equal to the last bit, and nothing missing."""
    for expected, actual in pairs:
        assert set(expected) == set(actual)
        for name, array in expected.items():
            np.testing.assert_array_equal(actual[name], array, err_msg=name)
            assert actual[name].dtype == array.dtype
