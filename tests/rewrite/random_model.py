"""A random ONNX model by its seed."""

from __future__ import annotations

import random

import onnx
from onnx import TensorProto, helper

from tests.rewrite.random_graphs import CHANNELS, SPACE, RandomGraph


def random_model(seed: int) -> onnx.ModelProto:
    """The model of a seed: two inputs of the same shape, one to three outputs, opset 17 to 20."""
    rng = random.Random(seed)
    g = RandomGraph(rng, rng.choice([17, 18, 20]), images=["x", "y"])
    for _ in range(rng.randrange(3, 16)):
        g.grow()
    results = rng.sample(g.images, min(len(g.images), rng.randrange(1, 4)))
    results = [r for r in dict.fromkeys([*results, g.images[-1]]) if r not in ("x", "y")]
    dims = ["N", CHANNELS, "H", "W"]
    graph = helper.make_graph(
        g.nodes,
        "random",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, dims) for n in ("x", "y")],
        [helper.make_tensor_value_info(r, TensorProto.FLOAT, [None] * 4) for r in results],
        g.constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", g.opset)], ir_version=8)
    helper.set_model_props(model, {"trtconv.space": SPACE})
    return model
