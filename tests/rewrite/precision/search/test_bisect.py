"""The search for the nodes that half precision cannot take."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rewrite import precision_cases as cases
from tests.rewrite.precision_cases import Net, error, f32, normal, run
from trtconv.core.errors import AccuracyError
from trtconv.core.tolerance import Tolerance
from trtconv.rewrite.precision import bisect_fp32_nodes, convert_precision, emulated_run

BAD_CHAIN = Net(
    "squares", "float[2,8] x", "float[2,8] y",
    "\n".join([
        "h0 = MatMul(x, w)",
        *(f"g{i} = MatMul(h{i}, w)\n h{i + 1} = Tanh(g{i})" for i in range(10)),
        "big = Mul(h10, up)", "sq = Mul(big, big)", "small = Mul(sq, down)", "r = Sqrt(small)", "y = MatMul(r, w)",
    ]),
    {"x": normal(2, 8)}, {"w": normal(8, 8), "up": f32(500), "down": f32(0.001)},
)  # fmt: skip


def test_the_search_finds_what_overflows():
    """Squares of values near 500 overflow FP16; nothing in the graph shows it before it runs."""
    net = BAD_CHAIN
    model, tolerance = net.model(), Tolerance(rtol=2e-2, atol=2e-2)
    typed = convert_precision(model, "fp16").model
    assert not np.isfinite(run(typed, net.feed)["y"]).all()
    search = bisect_fp32_nodes(emulated_run(net.feed, threads=1), model, tolerance)
    fp32_outputs = {n.output[0] for n in model.graph.node if n.name in search.nodes}
    assert fp32_outputs == {"sq", "small"}, "the product and what reads it"
    assert search.complete
    assert search.runs <= 16
    assert error(run(model, net.feed)["y"], run(search.report.model, net.feed)["y"]) < 2e-2


def test_the_search_with_too_few_runs_still_meets_the_tolerance():
    net, tolerance = BAD_CHAIN, Tolerance(rtol=2e-2, atol=2e-2)
    search = bisect_fp32_nodes(emulated_run(net.feed, threads=1), net.model(), tolerance, max_runs=5)
    assert not search.complete
    assert error(run(net.model(), net.feed)["y"], run(search.report.model, net.feed)["y"]) < 2e-2


def test_the_search_says_when_nothing_is_to_do_or_nothing_helps():
    net = cases.CONV
    assert bisect_fp32_nodes(emulated_run(net.feed), net.model(), Tolerance(rtol=1e-2, atol=1e-2)).nodes == ()
    noise = iter(range(100))

    def unsteady(model):
        return {n: v + next(noise) for n, v in run(model, net.feed).items()}

    with pytest.raises(AccuracyError, match="even with all nodes in FP32"):
        bisect_fp32_nodes(unsteady, net.model(), Tolerance())
