"""Five heads on one small backbone, on which the power of a comparison differs most; as ONNX graphs.

A fixed tolerance is a part of an output of 1, so it says much about a plain head and little about probabilities.
"""

from dataclasses import replace

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.proof.noise.noise_floor import noise_floors
from trtconv.proof.noise.rounding import graph_errors
from trtconv.proof.points import sample_inputs, sample_points
from trtconv.proof.reference import ReferenceSample

SPACE = parse_space(["N=1:2:3", "H=16:20:33", "W=16:24:35"])
SPEC = parse_tensor("x:float32[N,3,H,W]")
HEADS = ("plain", "segmenter", "embedding", "small", "classifier")


class Builder:
    """Nodes and weights of one graph; every layer gives the name of what it makes."""

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def weight(self, name, array):
        self.weights.append(numpy_helper.from_array(np.asarray(array, np.float32), name))
        return name

    def indices(self, name, values):
        self.weights.append(numpy_helper.from_array(np.asarray(values, np.int64), name))
        return name

    def node(self, op, inputs, **attributes):
        name = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], name=f"/{name}", **attributes))
        return name

    def conv(self, x, channels, filters, size=3, **attributes):
        index = len(self.nodes)
        weights = self.random.standard_normal((filters, channels, size, size)) / np.sqrt(channels * size * size)
        bias = 0.1 * self.random.standard_normal(filters)
        names = [x, self.weight(f"w{index}", weights), self.weight(f"b{index}", bias)]
        return self.node("Conv", names, pads=[size // 2] * 4, **attributes)

    def norm(self, x, channels):
        index = len(self.nodes)
        gain = 1 + 0.2 * self.random.standard_normal(channels)
        arrays = (gain, *(0.1 * self.random.standard_normal((2, channels))), 0.5 + self.random.random(channels))
        names = [self.weight(f"n{index}_{i}", a) for i, a in enumerate(arrays)]
        return self.node("BatchNormalization", [x, *names], epsilon=1e-3)

    def linear(self, x, features, outputs, scale=1.0):
        index = len(self.nodes)
        weights = scale * self.random.standard_normal((outputs, features)) / np.sqrt(features)
        names = [
            self.weight(f"w{index}", weights),
            self.weight(f"b{index}", 0.1 * scale * self.random.standard_normal(outputs)),
        ]
        return self.node("Gemm", [x, *names], transB=1)

    def model(self, output):
        self.nodes[-1].output[0] = "y"
        graph = helper.make_graph(
            self.nodes,
            "head",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, "H", "W"])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, output)],
            self.weights,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def backbone(build):
    """Three convolutions with norms, a residual and pools: [N, 32, H', W']."""
    x = build.node("Relu", [build.norm(build.conv("x", 3, 16, strides=[2, 2]), 16)])
    side = build.node("Relu", [build.norm(build.conv(x, 16, 16), 16)])
    x = build.node("Add", [x, side])
    x = build.node("AveragePool", [x], kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1], count_include_pad=1)
    return build.node("LeakyRelu", [build.norm(build.conv(x, 16, 32, strides=[2, 2]), 32)], alpha=0.1)


def head_model(kind, seed=0):
    """The backbone with one of `HEADS`."""
    build = Builder(seed)
    x = backbone(build)
    if kind == "segmenter":
        x = build.conv(x, 32, 21, size=1)
        scales = build.weight("scales", [1, 1, 2, 2])
        x = build.node("Resize", [x, "", scales], mode="linear", coordinate_transformation_mode="half_pixel")
        build.node("Softmax", [x], axis=1)
        return build.model(["N", 21, "Y", "X"])
    x = build.node("Flatten", [build.node("GlobalAveragePool", [x])])
    if kind == "embedding":
        x = build.linear(x, 32, 128)
        squares = build.node("ReduceSum", [build.node("Mul", [x, x]), build.indices("axes", [1])], keepdims=1)
        length = build.node("Sqrt", [build.node("Add", [squares, build.weight("eps", 1e-6)])])
        build.node("Div", [x, length])
        return build.model(["N", 128])
    if kind == "classifier":
        build.node("Softmax", [build.linear(x, 32, 1000)], axis=1)
        return build.model(["N", 1000])
    build.linear(x, 32, 10, scale=1e-3 if kind == "small" else 1.0)
    return build.model(["N", 10])


def samples_of(model):
    """What ONNX Runtime gives for the model at every sample point, with the noise that it has beside that point."""
    run = OnnxRuntimeRunner(model.SerializeToString())
    points = sample_points(SPACE, [SPEC])
    inputs = [sample_inputs([SPEC], p) for p in points]
    samples = [ReferenceSample(p, i, run(i)) for p, i in zip(points, inputs, strict=True)]
    errors = [graph_errors(run, s.inputs, s.outputs) for s in samples]
    floors, _ = noise_floors([s.outputs for s in samples], errors, [s.point.values == "random" for s in samples])
    return [replace(s, floors=f) for s, f in zip(samples, floors, strict=True)]
