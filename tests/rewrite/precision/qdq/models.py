"""Small models in text with seeded weights, and batches for them."""

import numpy as np
import onnx
from onnx import numpy_helper, parser

from trtconv.core.data.samples import Batch
from trtconv.core.targets import parse_target

RTX = parse_target("tensorrt-rtx")
OLD = parse_target("tensorrt==8.6")


def model(text, inputs="float[N,16,8,8] x", outputs="float[a,b,c,d] y", opset=20, **weights):
    source = f'<ir_version: 9, opset_import: ["": {opset}]> g ({inputs}) => ({outputs}) {{ {text} }}'
    result = parser.parse_model(source)
    for name, value in weights.items():
        result.graph.initializer.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
    return onnx.shape_inference.infer_shapes(result)


def weight(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32) / np.sqrt(np.prod(shape[1:]))


def runs(*shape, count=3, seed=1):
    rng = np.random.default_rng(seed)
    return [Batch({"x": rng.normal(size=shape).astype(np.float32)}, shape[0]) for _ in range(count)]


RESIDUAL = {
    "text": "a = Conv<pads=[1,1,1,1]>(x, w1, b1) r = Relu(a) c = Conv<pads=[1,1,1,1]>(r, w2) s = Add(c, x) y = Relu(s)",
    "w1": weight(16, 16, 3, 3),
    "b1": weight(16),
    "w2": weight(16, 16, 3, 3, seed=2),
}
