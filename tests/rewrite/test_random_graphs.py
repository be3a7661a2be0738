"""Random graphs through the whole rule pack: valid, equal outputs, and a second run changes nothing, to the byte."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.rewrite.random_graphs import CHANNELS
from tests.rewrite.random_model import random_model
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import TrtconvError, UnsupportedError
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import KNOWN_TARGETS, parse_target
from trtconv.core.tolerance import Tolerance
from trtconv.proof.comparison import describe_failure, first_failure
from trtconv.proof.proving import compare_graphs
from trtconv.rewrite.engine.points import model_space
from trtconv.rewrite.engine.rounds import RewriteSetting
from trtconv.rewrite.room import select_rules
from trtconv.rewrite.rules import RULES
from trtconv.rewrite.whole_graph import rewrite_graph

SIZES = ((2, 9, 10), (1, 7, 19), (3, 16, 8))


def rewritten(model, target):
    space, specs = model_space(model)
    request = RewriteRequest(Path("m.onnx"), Path("m.trt.onnx"), parse_target(target))
    return rewrite_graph(
        model, select_rules(RULES, request), RewriteSetting(parse_target(target), space, specs, True), SilentProgress()
    )


def problems(seed, target):
    """What is wrong with the rewrite of one random model, in words, or nothing."""
    model = random_model(seed)
    original_bytes = model.SerializeToString(deterministic=True)
    try:
        after, record = rewritten(model, target)
    except UnsupportedError:
        return ""
    if model.SerializeToString(deterministic=True) != original_bytes:
        return "the model that was given is changed"
    if record.rejected:
        return f"the proof had to stop {record.rejected[0].rule}: {record.rejected[0].reason}"
    data = after.SerializeToString(deterministic=True)
    onnx.checker.check_model(after, full_check=True)
    runs = [OnnxRuntimeRunner(m.SerializeToString(), threads=1) for m in (model, after)]
    for n, h, w in SIZES:
        rng = np.random.default_rng([seed, n, h, w])
        feed = {name: rng.standard_normal((n, CHANNELS, h, w)).astype(np.float32) for name in ("x", "y")}
        try:
            expected = runs[0](feed)
        except TrtconvError:
            # ONNX Runtime loses a captured value that only Shape reads in a body (seed 54), before any rewrite.
            continue
        results = compare_graphs(f"{n} {h} {w}", runs[0], feed, expected, runs[1](feed), Tolerance(1e-3, 1e-3))
        failure = first_failure(results)
        if failure:
            return describe_failure(failure)
    again, second = rewritten(after, target)
    if second.entries:
        return f"a second run fires {[(e.rule, e.node) for e in second.entries]}"
    if again.SerializeToString(deterministic=True) != data:
        return f"a second run changes the bytes: {second.notes}"
    return ""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("target", KNOWN_TARGETS)
def test_random_graphs(target):
    problem_list = {seed: problem for seed in range(12) if (problem := problems(seed, target))}
    assert not problem_list


@pytest.mark.slow
def test_the_graphs_are_what_they_should_be():
    rules, ops = set(), set()
    for seed in range(26):
        model = random_model(seed)
        ops |= {n.op_type for n in model.graph.node}
        try:
            rules |= {e.rule for e in rewritten(model, "tensorrt==8.6")[1].entries}
        except TrtconvError:
            continue
    assert {"If", "Resize", "Expand", "Where", "Div"} <= ops
    assert {"l2norm", "fold-constants", "drop-identity", "merge-casts"} <= rules
