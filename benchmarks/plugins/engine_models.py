"""ONNX files of the cases in plugins/shapes.py as an exporter writes them, rewritten for TensorRT 8.6 in both ways:

python -m benchmarks plugins.engine_models FOLDER    ->  FOLDER/NUMBER_float32.{native,plugin}.onnx, and float16
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.plugins.shapes import CASES, Case

KINDS = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}
OPS = ("l2norm", "instance_norm", "reflection_pad")
PLUGINS = "TrtconvL2Norm,TrtconvInstanceNorm,TrtconvReflectionPad"


def path_of(folder: Path, case: Case, dtype: str, form: str) -> Path:
    """`form` is native or plugin."""
    return folder / f"{CASES.index(case)}_{dtype}.{form}.onnx"


def measured() -> list[Case]:
    """The cases of which engines are made."""
    return [c for c in CASES if c.op in OPS]


def parameters(case: Case, dtype: str) -> dict[str, Any]:
    """Scale and bias of a case."""
    rng = np.random.default_rng(0)
    channels = case.shape[1]
    return {
        "scale": rng.uniform(0.5, 1.5, channels).astype(dtype),
        "bias": rng.standard_normal(channels).astype(dtype),
    }


def standard_model(case: Case, dtype: str) -> onnx.ModelProto:
    """x -> y in plain ONNX operators of opset 17, static shapes."""
    kind, values = KINDS[dtype], parameters(case, dtype)
    node = helper.make_node
    if case.op == "l2norm":
        weights = {
            "two": np.array(2, dtype),
            "axes": np.array([1]),
            "eps": np.array(1e-10, np.float32).astype(dtype),
            "weight": values["scale"].reshape(1, -1, 1, 1),
        }
        if dtype == "float16":  # an epsilon of 1e-10 is nothing in half precision, so that a module in half casts
            weights["eps"], weights["two"] = np.array(1e-10, np.float32), np.array(2, np.float32)
        nodes = _l2norm(half=dtype == "float16")
    elif case.op == "instance_norm":
        weights = values
        last = "n" if case.options.get("relu") else "y"
        nodes = [node("InstanceNormalization", ["x", "scale", "bias"], [last], name="norm", epsilon=1e-5)]
        nodes += [node("Relu", ["n"], ["y"], name="relu")] if last == "n" else []
    else:
        top, left, bottom, right = case.options["pads"]
        weights = {"pads": np.array([0, 0, top, left, 0, 0, bottom, right])}
        nodes = [node("Pad", ["x", "pads"], ["y"], name="pad", mode="reflect")]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, case.shape)],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(v, n) for n, v in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def _l2norm(half: bool) -> list[onnx.NodeProto]:
    node = helper.make_node
    value = "f" if half else "x"
    nodes = [node("Cast", ["x"], ["f"], name="up", to=TensorProto.FLOAT)] if half else []
    nodes += [
        node("Pow", [value, "two"], ["p"], name="pow"),
        node("ReduceSum", ["p", "axes"], ["s"], name="sum", keepdims=1),
        node("Sqrt", ["s"], ["r"], name="sqrt"),
        node("Add", ["r", "eps"], ["n"], name="add"),
        node("Div", [value, "n"], ["d"], name="div"),
    ]
    nodes += [node("Cast", ["d"], ["h"], name="down", to=TensorProto.FLOAT16)] if half else []
    return [*nodes, node("Mul", ["h" if half else "d", "weight"], ["y"], name="scale")]


def write(folder: Path, case: Case, dtype: str) -> None:
    """Both rewritten forms. Raises RuntimeError when the plugin form has no plugin node, or the native form has one."""
    from trtconv.core.progress import SilentProgress
    from trtconv.core.requests import RewriteRequest
    from trtconv.core.targets import parse_target
    from trtconv.rewrite import rewrite_model

    plain = folder / f"{CASES.index(case)}_{dtype}.onnx"
    onnx.save(standard_model(case, dtype), str(plain))
    for form, plugins in (("native", "never"), ("plugin", PLUGINS)):
        path = path_of(folder, case, dtype, form)
        # The proof of a rewrite runs the whole model on the CPU; the rules are proved in tests/rewrite.
        request = RewriteRequest(plain, path, parse_target("tensorrt==8.6"), plugins=plugins, proof=False)
        rewrite_model(request, SilentProgress())
        domains = {n.domain for n in onnx.load(str(path)).graph.node}
        if ("trtconv" in domains) != (form == "plugin"):
            raise RuntimeError(f"{path} is not the {form} form of {case.name}")
    plain.unlink()


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for case in measured():
        for dtype in KINDS:
            write(folder, case, dtype)


if __name__ == "__main__":
    main()
