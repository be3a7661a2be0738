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
