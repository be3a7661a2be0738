"""The noise of a graph whose inputs are tokens: they have no last place, so its weights move."""

import numpy as np
import onnx

from trtconv.backends.onnxruntime.graph_runner import GraphRunner, move_weights
from trtconv.proof.noise.rounding import ULPS, graph_errors
from trtconv.proof.proving import compare_graphs

CHANCE = np.random.default_rng(0)
TABLE, HEAD = (CHANCE.normal(size=s).astype(np.float32) for s in ((9, 400), (400, 6)))


def tokens_graph(weights: bool = True) -> onnx.ModelProto:
    head = '<ir_version: 9, opset_import: ["" : 18]> g (int64[N] ids) => (float[N,a] y)'
    body = "r = Gather(table, ids) y = MatMul(r, head)" if weights else "y = Cast<to=1>(ids)"
    model = onnx.parser.parse_model(f"{head} {{ {body} }}")
    if weights:
        tensors = [onnx.numpy_helper.from_array(v, n) for v, n in ((TABLE, "table"), (HEAD, "head"))]
        model.graph.initializer.extend(tensors)
    return model


def test_weights_move_by_their_last_places() -> None:
    model = tokens_graph()
    assert move_weights(model, 0, ULPS)
    moved = onnx.numpy_helper.to_array(model.graph.initializer[0])
    change = np.abs(moved - TABLE)
    assert change.max() > 0
    assert (change <= (ULPS + 1) * 2.0**-23 * np.abs(TABLE)).all()
    assert not move_weights(tokens_graph(weights=False), 0, ULPS)


def test_sums_over_tokens_in_another_order_are_equal_and_another_weight_is_not() -> None:
    run, inputs = GraphRunner(tokens_graph()), {"ids": np.zeros(5, np.int64)}
    expected = run(inputs)
    errors = graph_errors(run, inputs, expected)["y"]
    assert 0 < errors.max() < 1e-3
    # In every row the same token: a column whose terms cancel is nearly zero in all of them.
    reversed_sum = np.zeros(6, np.float32)
    for term in (TABLE[0][::-1, None] * HEAD[::-1]).astype(np.float32):
        reversed_sum = reversed_sum + term
    actual = {"y": np.tile(reversed_sum, (5, 1))}
    assert all(c.passed for c in compare_graphs("p", run, inputs, expected, actual))
    faulty = {"y": actual["y"] + np.float32(1e-3)}
    assert not all(c.passed for c in compare_graphs("p", run, inputs, expected, faulty))


def test_a_graph_without_weights_has_no_noise() -> None:
    run, inputs = GraphRunner(tokens_graph(weights=False)), {"ids": np.arange(5)}
    assert run.perturbed(0) is None
    assert graph_errors(run, inputs, run(inputs)) == {}


def test_what_is_no_weight_stays() -> None:
    """With an exponent of 1.9999999 the squares of negative numbers were NaN, and the noise was measured as 0."""
    head = '<ir_version: 9, opset_import: ["" : 18]> g (int64[N] ids) => (float[N,a] y)'
    constants = "<float two = {2.0}, float least = {-3.4028235e38}>"
    body = "r = Gather(table, ids) p = Pow(r, two) z = MatMul(p, head) y = Max(z, least)"
    model = onnx.parser.parse_model(f"{head} {constants} {{ {body} }}")
    model.graph.initializer.extend(onnx.numpy_helper.from_array(v, n) for v, n in ((TABLE, "table"), (HEAD, "head")))
    run, inputs = GraphRunner(model), {"ids": np.zeros(5, np.int64)}
    assert 0 < graph_errors(run, inputs, run(inputs))["y"].max() < 1e-3
    assert move_weights(model, 0, ULPS)
    moved = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    assert moved["two"] == 2.0
    assert np.isfinite(moved["least"])
