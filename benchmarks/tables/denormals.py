"""Which operators of TensorRT count denormal numbers as zero: tables/denormals.py JSON

Each operator is an engine of its own, run on denormal (1e-40), small normal (1e-36) and ordinary values, beside ONNX
Runtime, which keeps denormals on a CPU.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.record import machine, write_result
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.select import backend_of
from trtconv.build import build_engine
from trtconv.core.requests import BuildRequest

CONSTANTS = {
    "zero": np.float32(0),
    "three": np.float32(3),
    "tiny": np.float32(1e-40),
    "large": np.float32(2.0**100),
    "k": np.array([8]),
    "shape": np.array([8, 4]),
}
node = helper.make_node
OPERATORS = {
    "Reshape": ([node("Reshape", ["x", "shape"], ["y"])], [8, 4]),
    "Transpose": ([node("Transpose", ["x"], ["y"], perm=[1, 0])], [8, 4]),
    "Relu": ([node("Relu", ["x"], ["y"])], [4, 8]),
    "Neg": ([node("Neg", ["x"], ["y"])], [4, 8]),
    "Max(x, 0)": ([node("Max", ["x", "zero"], ["y"])], [4, 8]),
    "x * 2^100": ([node("Mul", ["x", "large"], ["y"])], [4, 8]),
    "x / 1e-40": ([node("Div", ["x", "tiny"], ["y"])], [4, 8]),
    "Floor": ([node("Floor", ["x"], ["y"])], [4, 8]),
    "Floor(x / 3)": ([node("Div", ["x", "three"], ["q"]), node("Floor", ["q"], ["y"])], [4, 8]),
    "x > 0": ([node("Greater", ["x", "zero"], ["b"]), node("Cast", ["b"], ["y"], to=1)], [4, 8]),
    "ReduceMax": ([node("ReduceMax", ["x"], ["y"], axes=[1], keepdims=0)], [4]),
    "ArgMax": ([node("ArgMax", ["x"], ["i"], axis=1, keepdims=0), node("Cast", ["i"], ["y"], to=1)], [4]),
    "TopK values": ([node("TopK", ["x", "k"], ["y", "i"], axis=1)], [4, 8]),
    "TopK indices": ([node("TopK", ["x", "k"], ["v", "i"], axis=1), node("Cast", ["i"], ["y"], to=1)], [4, 8]),
}


def model(nodes: list[onnx.NodeProto], dims: list[int], path: Path) -> Path:
    read = {i for n in nodes for i in n.input}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in CONSTANTS.items() if n in read],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


def compare(path: Path) -> dict[str, object]:
    engine = build_engine(BuildRequest(path, path.with_suffix(".engine"), backend="tensorrt")).engine
    session, plain = backend_of(engine).load(engine), OnnxRuntimeRunner(path)
    values = np.random.default_rng(0).standard_normal((4, 8))
    record: dict[str, object] = {}
    for label, scale in (("1e-40", 1e-40), ("1e-36", 1e-36), ("1", 1.0)):
        x = (values * scale).astype(np.float32)
        want, actual = plain({"x": x})["y"], session({"x": x})["y"]
        record[f"equal at {label}"] = round(float((want == actual).mean()), 4)
        if scale == 1e-40:
            record["as if zero"] = bool(np.array_equal(plain({"x": np.copysign(0, x)})["y"], actual, equal_nan=True))
            record["row"] = [float(v) for v in np.ravel(actual)[:4]]
            record["row of ONNX Runtime"] = [float(v) for v in np.ravel(want)[:4]]
    session.close()
    return record


def main() -> None:
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for index, (name, (nodes, dims)) in enumerate(OPERATORS.items()):
            results[name] = compare(model(nodes, dims, Path(folder) / f"{index}.onnx"))
            print(name, results[name], flush=True)
    data = {**machine("tensorrt", "onnxruntime"), "operators": results}
    write_result(Path(sys.argv[1]), data)


if __name__ == "__main__":
    main()
