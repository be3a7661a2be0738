"""What TensorRT computes of integers beyond 24 bits, of NaN and of quotients, operator by operator:

    tables/operator_values.py JSON

Each row is an engine of its own beside ONNX Runtime, on the same values. `equal` is of every bit but NaN's; `first` are
the first places that differ, with what ONNX Runtime gives and what the engine gives.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.record import machine, write_result
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.select import backend_of
from trtconv.backends.tensorrt.backend import TensorRTBackend
from trtconv.build import build_engine
from trtconv.core.requests import BuildRequest

LEAST = np.int32(-(2**31))
BOUNDS = np.array([2**31 - 1, 2**30 + 1, 2**24 + 1, 300, -300, 12345677, -(2**31) + 300, 5], np.int32)
POWERS = (2 ** np.arange(31)).astype(np.int32)
CONSTANTS = {
    "seven": np.int32(7), "128": np.int32(128), "two": np.int32(2), "65536": np.int32(65536), "least": LEAST,
    "zero": np.int32(0), "powers": POWERS, "powers16": POWERS[:16], "last": np.array([-1]), "bounds": BOUNDS,
    "four": np.array([4]), "third": np.float32(1 / 3), "0.6": np.float32(0.6), "low": np.float32(-1),
    "high": np.float32(1), "none": np.float32(0),
}  # fmt: skip
node = helper.make_node


def planes(source: list[onnx.NodeProto], value: str, powers: str) -> list[onnx.NodeProto]:
    """ReduceSum of the bits of `value`, times what each counts."""
    return [
        *source,
        node("Unsqueeze", [value, "last"], ["u"]),
        node("Div", ["u", powers], ["d"]),
        node("Mod", ["d", "two"], ["m"]),
        node("Mul", ["m", powers], ["p"]),
        node("ReduceSum", ["p", "last"], ["y"], keepdims=0),
    ]


# What is computed, and the name of the values that it is given.
ROWS: dict[str, tuple[list[onnx.NodeProto], str]] = {
    "int32 x + 7": ([node("Add", ["x", "seven"], ["y"])], "half"),
    "int32 x / 7": ([node("Div", ["x", "seven"], ["y"])], "all"),
    "int32 x mod 65536": ([node("Mod", ["x", "65536"], ["y"])], "all"),
    "int32 x / bounds": ([node("Div", ["x", "bounds"], ["y"])], "all"),
    "int32 max(x, bounds)": ([node("Max", ["x", "bounds"], ["y"])], "all"),
    "int32 ReduceSum": ([node("ReduceSum", ["x", "last"], ["y"], keepdims=0)], "eighth"),
    "int32 ReduceSum, below 2^24": ([node("ReduceSum", ["x", "last"], ["y"], keepdims=0)], "small"),
    "int32 ReduceMax": ([node("ReduceMax", ["x"], ["y"], axes=[-1], keepdims=0)], "all"),
    "int32 TopK": ([node("TopK", ["x", "four"], ["y", "i"], axis=1)], "all"),
    "int32 CumSum": ([node("CumSum", ["x", "zero"], ["y"])], "eighth"),
    "int32 sum of 31 bits": (planes([], "x", "powers"), "eighth"),
    "int32 sum of 16 bits": (planes([node("Mod", ["x", "65536"], ["l"])], "l", "powers16"), "eighth"),
    "x / (1/3)": ([node("Div", ["x", "third"], ["y"])], "places"),
    "floor(x / (1/3))": ([node("Div", ["x", "third"], ["d"]), node("Floor", ["d"], ["y"])], "places"),
    "floor(x / 0.6)": ([node("Div", ["x", "0.6"], ["d"]), node("Floor", ["d"], ["y"])], "places"),
    "NaN Clip": ([node("Clip", ["x", "low", "high"], ["y"])], "nan"),
    "NaN Relu": ([node("Relu", ["x"], ["y"])], "nan"),
    "NaN Max(x, 0)": ([node("Max", ["x", "none"], ["y"])], "nan"),
    "NaN Min(x, 0)": ([node("Min", ["x", "none"], ["y"])], "nan"),
    "NaN ReduceMax": ([node("ReduceMax", ["x"], ["y"], axes=[1], keepdims=0)], "nan"),
    "NaN LeakyRelu": ([node("LeakyRelu", ["x"], ["y"])], "nan"),
    "NaN IsNaN": ([node("IsNaN", ["x"], ["n"]), node("Cast", ["n"], ["y"], to=1)], "nan"),
    "NaN x == x": ([node("Equal", ["x", "x"], ["n"]), node("Cast", ["n"], ["y"], to=1)], "nan"),
}


def values() -> dict[str, np.ndarray[Any, Any]]:
    """Inputs [4, 8] by name."""
    rng = np.random.default_rng(0)
    whole = rng.integers(-(2**31) + 1, 2**31 - 1, (4, 8)).astype(np.int32)
    broken = (rng.standard_normal((4, 8)) * 2).astype(np.float32)
    broken[0, 3] = broken[2, 0] = np.nan
    return {
        "all": whole,
        "half": (whole // 8).astype(np.int32),
        "eighth": np.abs(whole // 16).astype(np.int32),
        "small": rng.integers(-1000, 1000, (4, 8)).astype(np.int32),
        "places": np.arange(32, dtype=np.float32).reshape(4, 8),
        "nan": broken,
    }


def compared(nodes: list[onnx.NodeProto], x: np.ndarray[Any, Any], path: Path) -> dict[str, Any]:
    """One engine beside ONNX Runtime."""
    kind = TensorProto.INT32 if x.dtype == np.int32 else TensorProto.FLOAT
    read = {i for n in nodes for i in n.input}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in CONSTANTS.items() if n in read],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(onnx.shape_inference.infer_shapes(model), str(path))
    expected = OnnxRuntimeRunner(path)({"x": x})["y"]
    session: Any = backend_of(engine := build_engine(_request(path)).engine).load(engine)
    actual = session({"x": x})["y"]
    session.close()
    same = (expected == actual) | ((expected != expected) & (actual != actual))
    places = [[p.tolist(), str(expected[tuple(p)]), str(actual[tuple(p)])] for p in np.argwhere(~same)[:3]]
    return {"equal": bool(same.all()), "share": float(same.mean()), "first": places}


def _request(path: Path) -> BuildRequest:
    return BuildRequest(path, path.with_suffix(".engine"), backend="tensorrt")


def main() -> None:
    # 8.6 takes seconds to start in a process.
    TensorRTBackend.build = TensorRTBackend.build_here  # type: ignore[method-assign]
    arrays, rows = values(), {}
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, (nodes, kind)) in enumerate(ROWS.items()):
            rows[name] = compared(nodes, arrays[kind], Path(folder) / f"{number}.onnx")
            print(name, rows[name], flush=True)
    data = {**machine("tensorrt", "onnxruntime"), "rows": rows}
    write_result(Path(sys.argv[1]), data)


if __name__ == "__main__":
    main()
