"""The rewrite of random graphs against the graphs themselves, in ONNX Runtime without its optimisations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.adversary.judge import File, difference
from tests.adversary.values import make
from tests.fuzz.random_operators import INPUTS, random_model
from tests.fuzz.target import Finding, Target
from trtconv.core.errors import TrtconvError
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target

TARGETS = ("tensorrt==8.6", "tensorrt-rtx")
SIZES = (1, 3, 2)
KINDS = ("normal", "halves", "zeros", "tiny", "bytes", "descending", "tenths", "negative")


def _compare(data: bytes, folder: Path) -> None:
    """Raises Finding where a rewritten graph gives something else, and the original is stable there."""
    path = folder / "m.onnx"
    path.write_bytes(data)
    try:
        before = File(data)
    except Exception:  # a form of an operator that ONNX Runtime lacks
        return
    for target in TARGETS:
        output = folder / "m.trt.onnx"
        try:
            result = _rewritten(RewriteRequest(path, output, parse_target(target)))
        except TrtconvError as error:
            if not error.message.strip():
                raise
            continue
        after = File(output)
        for turn, kind in enumerate(KINDS):
            feed = make(INPUTS.split(), {"N": SIZES[turn % len(SIZES)]}, kind, turn)
            wrong = _difference(before, after, feed)
            if wrong:
                rules = sorted({e.rule for e in result.entries})
                raise Finding(f"{target}, N={len(feed['x'])}, {kind}: {wrong}; rules {rules}")


def _rewritten(request: RewriteRequest) -> Any:
    from trtconv.rewrite import rewrite_model

    return rewrite_model(request, SilentProgress())


def _difference(before: File, after: File, feed: dict[str, Any]) -> str:
    with np.errstate(all="ignore"):
        try:
            expected = before(feed)
        except Exception:  # the graph is undefined there
            return ""
        if any(e.dtype.kind == "f" and not np.isfinite(e).all() for e in expected):
            return ""
        actual = after(feed)
        for index, (a, b) in enumerate(zip(expected, actual, strict=True)):
            wrong = difference(a, a, b)
            if wrong and not difference(_moved(before, feed, index, a), a, b):
                continue
            if wrong and not _unstable(before, feed, index, a, b):
                return f"output {index}: {wrong}"
    return ""


def _moved(before: File, feed: dict[str, Any], index: int, a: Any) -> Any:
    """The output with inputs that are moved by one rounding."""
    return before({**feed, "x": np.nextafter(feed["x"], np.float32(np.inf))})[index]


def _unstable(before: File, feed: dict[str, Any], index: int, a: Any, b: Any) -> bool:
    """True when the original moves as much, where the two differ, with inputs that move by a few roundings."""
    if a.shape != b.shape:
        return False
    own = np.zeros(a.shape)
    for seed in range(6):
        chance = np.random.default_rng(seed)
        moved = feed["x"] * (1 + 1e-6 * chance.standard_normal(feed["x"].shape)).astype(np.float32)
        moved = (moved + 1e-7 * chance.standard_normal(moved.shape) * (feed["x"] != 0)).astype(np.float32)
        own = np.maximum(own, np.abs(before({**feed, "x": moved})[index].astype(float) - a))
    error = np.abs(a.astype(float) - b.astype(float))
    scale = np.abs(a).max(initial=0.0)
    return bool((error <= 4 * own + 1e-5 * scale).all())


def graphs() -> st.SearchStrategy[bytes]:
    """The bytes of random graphs; the seed is drawn."""
    return st.integers(0, 2**31).map(lambda seed: random_model(seed).SerializeToString())


TARGET = Target("operators", graphs(), _compare)
