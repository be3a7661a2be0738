# ruff: noqa: E501 - the text of a model stands on one line
"""Directions with other activations."""

import numpy as np
import pytest
from onnx import numpy_helper

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.recurrent.recurrent_directions import RULE


def weights(gates, biases=False):
    def edit(model):
        rng = np.random.default_rng(0)
        shapes = {"w": (2, 4 * gates, 3), "r": (2, 4 * gates, 4)} | ({"b": (2, 8 * gates)} if biases else {})
        for name, shape in shapes.items():
            model.graph.initializer.append(numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32) * 0.5, name))

    return edit


X = {"inputs": "float[H,N,3] x"}
LISTS = "hidden_size=4,direction=\"bidirectional\",activations="
CASES = [
    Case("plain", f"y = RNN<{LISTS}[\"Relu\",\"Tanh\"]>(x, w, r)", edit=weights(1), **X),
    Case("states too", f"y, h = GRU<{LISTS}[\"Sigmoid\",\"Tanh\",\"Sigmoid\",\"Relu\"]>(x, w, r, b, , h0)", "float[H,N,3] x, float[2,N,4] h0", "float[a,b,c,d] y, float[e,f,g] h", edit=weights(3, True)),
    Case("cells and lengths", f"z, h, y = LSTM<{LISTS}[\"Sigmoid\",\"Tanh\",\"Tanh\",\"Sigmoid\",\"Relu\",\"Tanh\"]>(x, w, r, , l)", "float[H,N,3] x, int32[N] l", "float[a,b,c] y, float[d,e,f] h", edit=weights(4), ranges={"l": (1, 13)}),
]
NEAR_MISSES = [
    Case("alike", f"y = RNN<{LISTS}[\"Relu\",\"Relu\"]>(x, w, r)", edit=weights(1), **X),
    Case("one direction", "y = RNN<hidden_size=4,activations=[\"Relu\"]>(x, w, r)", edit=lambda m: None, **(X | {"inputs": "float[H,N,3] x, float[1,4,3] w, float[1,4,4] r"})),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
