"""ONNX files of the cases in plugins/shapes.py as an exporter writes them, rewritten for TensorRT 8.6 in both ways:

python -m benchmarks plugins.engine_models FOLDER [OP]   ->  FOLDER/NUMBER_float32.{native,plugin}.onnx, and float16
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
OPS = ("l2norm", "instance_norm", "reflection_pad", "depthwise_conv_layer_norm", "depthwise_conv", "attention")
PLUGINS = (
    "TrtconvL2Norm,TrtconvInstanceNorm,TrtconvReflectionPad,TrtconvDepthwiseConvLayerNorm,TrtconvDepthwiseConv,"
    "TrtconvAttention"
)


def path_of(folder: Path, case: Case, dtype: str, form: str) -> Path:
    """`form` is native or plugin."""
    return folder / f"{CASES.index(case)}_{dtype}.{form}.onnx"


def measured(folder: Path | None = None) -> list[Case]:
    """The cases of which engines are made; those of which `folder` has the models."""
    cases = [c for c in CASES if c.op in OPS]
    return cases if folder is None else [c for c in cases if path_of(folder, c, "float32", "native").exists()]


def parameters(case: Case, dtype: str) -> dict[str, Any]:
    """Scale and bias of a case; the weight of a convolution and the shift after it."""
    rng = np.random.default_rng(0)
    if case.op == "attention":
        groups, heads, length = case.options["groups"], case.options["heads"], case.shape[1]
        return {"bias": rng.standard_normal((groups, heads, length, length)).astype(dtype)} if groups else {}
    if case.op == "depthwise_conv_layer_norm":
        channels, size = case.shape[3], case.options["size"]
        shapes = {"weight": (channels, 1, size, size), "bias": (channels,), "scale": (channels,), "shift": (channels,)}
        return {n: (rng.standard_normal(s) / (size if n == "weight" else 1)).astype(dtype) for n, s in shapes.items()}
    if case.op == "depthwise_conv":
        channels = case.shape[2]
        weight = rng.standard_normal((channels, 1, 3, 3)) / 3
        return {"weight": weight.astype(dtype), "bias": rng.standard_normal(channels).astype(dtype)}
    channels = case.shape[1]
    return {
        "scale": rng.uniform(0.5, 1.5, channels).astype(dtype),
        "bias": rng.standard_normal(channels).astype(dtype),
    }


def expected_of(case: Case, dtype: str, x: Any) -> Any:
    """What the plugin's NumPy reference gives in float64 for the x of either form."""
    from trtconv.plugins.described.registry import find_plugin

    values = {n: v.astype(np.float64) for n, v in parameters(case, dtype).items()}
    if case.op == "attention":
        heads, size = case.options["heads"], case.options["size"]
        sides = {"query_offset": 0, "key_offset": heads * size, "value_offset": 2 * heads * size}
        attributes = {"heads": heads, "size": size, "scale": size**-0.5, **sides}
        plugin, wide = find_plugin("TrtconvAttention"), x.astype(np.float64)
        bias = values.get("bias", np.zeros((1, 1, 1, 1)))
        return plugin.reference([wide, wide, wide, bias], plugin.checked_attributes(attributes))[0]
    extra = {"l2norm": ["scale"], "instance_norm": ["scale", "bias"], "reflection_pad": []}.get(case.op, list(values))
    name, attributes = {
        "l2norm": ("TrtconvL2Norm", {"axis": 1, "epsilon": 1e-10}),
        "instance_norm": ("TrtconvInstanceNorm", {"epsilon": 1e-5, "relu": int(bool(case.options.get("relu")))}),
        "reflection_pad": ("TrtconvReflectionPad", {"pads": list(case.options.get("pads", (1, 1, 1, 1)))}),
        "depthwise_conv_layer_norm": ("TrtconvDepthwiseConvLayerNorm", {"channels": case.shape[-1]}),
        "depthwise_conv": ("TrtconvDepthwiseConv", {"channels": case.shape[-1], "gelu": 1, **case.options}),
    }[case.op]
    if case.op == "depthwise_conv":
        values["weight"] = values["weight"][:, 0].transpose(1, 2, 0)
    if case.op == "depthwise_conv_layer_norm":
        values["weight"] = values["weight"][:, 0].transpose(1, 2, 0)
        x = x if x.shape[1:] == case.shape[1:] else x.transpose(0, 2, 3, 1)
    plugin = find_plugin(name)
    inputs = [x.astype(np.float64), *(values[n] for n in extra)]
    return plugin.reference(inputs, plugin.checked_attributes(attributes))[0]


def standard_model(case: Case, dtype: str, form: str = "native") -> onnx.ModelProto:
    """x -> y in plain ONNX operators, static shapes.

    Each form of a depthwise convolution has the layout that it has in a network: of the native one x is [N, C, H, W].
    """
    shape = case.shape
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
    elif case.op == "depthwise_conv_layer_norm":
        weights, pad = values, case.options["size"] // 2
        nodes = [node("Transpose", ["x"], ["p"], name="first", perm=[0, 3, 1, 2])] if form == "plugin" else []
        shape = shape if form == "plugin" else (shape[0], shape[3], *shape[1:3])
        source = "p" if nodes else "x"
        nodes += [
            node("Conv", [source, "weight", "bias"], ["c"], name="conv", group=case.shape[3], pads=[pad] * 4),
            node("Transpose", ["c"], ["r"], name="last", perm=[0, 2, 3, 1]),
            node("LayerNormalization", ["r", "scale", "shift"], ["y"], name="norm", epsilon=1e-6),
        ]
    elif case.op == "depthwise_conv":
        nodes, weights = _depthwise_conv(case, dtype)
    elif case.op == "attention":
        nodes, weights = _attention(case, dtype)
    else:
        top, left, bottom, right = case.options["pads"]
        weights = {"pads": np.array([0, 0, top, left, 0, 0, bottom, right])}
        nodes = [node("Pad", ["x", "pads"], ["y"], name="pad", mode="reflect")]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, None)],
        [numpy_helper.from_array(v, n) for n, v in weights.items()],
    )
    opset = 20 if case.op == "depthwise_conv" else 17  # Gelu came with 20
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model)


def _depthwise_conv(case: Case, dtype: str) -> tuple[list[onnx.NodeProto], dict[str, Any]]:
    """Rows of tokens as an image and back, as PVTv2 has them."""
    node, (batch, length, channels), width = helper.make_node, case.shape, case.options["width"]
    weights = {
        **parameters(case, dtype),
        "image": np.array([batch, channels, length // width, width]), "rows": np.array([batch, channels, length]),
    }  # fmt: skip
    nodes = [
        node("Transpose", ["x"], ["t"], name="first", perm=[0, 2, 1]),
        node("Reshape", ["t", "image"], ["i"], name="image"),
        node("Conv", ["i", "weight", "bias"], ["c"], name="conv", group=channels, pads=[1] * 4),
        node("Reshape", ["c", "rows"], ["r"], name="rows"),
        node("Transpose", ["r"], ["s"], name="last", perm=[0, 2, 1]),
        node("Gelu", ["s"], ["y"], name="gelu"),
    ]
    return nodes, weights


def _attention(case: Case, dtype: str) -> tuple[list[onnx.NodeProto], dict[str, Any]]:
    """Packed rows as timm has them; a bias for each group of the batch, as Swin's shifted windows have it."""
    node, (batch, length, _) = helper.make_node, case.shape
    heads, size, groups = (case.options[n] for n in ("heads", "size", "groups"))
    weights: dict[str, Any] = {
        "parts": np.array([batch, length, 3, heads, size]), "joined": np.array([batch, length, heads * size]),
        "split": np.array([batch // max(groups, 1), max(groups, 1), heads, length, length]),
        "whole": np.array([batch, heads, length, length]), "scale": np.array(size**-0.5, dtype),
        **{f"n{i}": np.array(i) for i in range(3)},
    }  # fmt: skip
    nodes = [
        node("Reshape", ["x", "parts"], ["r"], name="parts"),
        node("Transpose", ["r"], ["t"], name="heads", perm=[2, 0, 3, 1, 4]),
        *(node("Gather", ["t", f"n{i}"], [name], name=name, axis=0) for i, name in enumerate("qkv")),
        node("Mul", ["q", "scale"], ["s"], name="scaled"),
        node("Transpose", ["k"], ["kt"], name="turned", perm=[0, 1, 3, 2]),
        node("MatMul", ["s", "kt"], ["m"], name="scores"),
    ]
    if groups:
        weights["bias"] = parameters(case, dtype)["bias"][None]
        nodes += [
            node("Reshape", ["m", "split"], ["g"], name="grouped"),
            node("Add", ["g", "bias"], ["b"], name="biased"),
            node("Reshape", ["b", "whole"], ["a"], name="ungrouped"),
        ]
    nodes += [
        node("Softmax", ["a" if groups else "m"], ["w"], name="weights", axis=-1),
        node("MatMul", ["w", "v"], ["o"], name="values"),
        node("Transpose", ["o"], ["u"], name="rows", perm=[0, 2, 1, 3]),
        node("Reshape", ["u", "joined"], ["y"], name="joined"),
    ]
    if not groups:
        weights = {n: v for n, v in weights.items() if n not in ("split", "whole")}
    return nodes, weights


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
    for form, plugins in (("native", "never"), ("plugin", PLUGINS)):
        onnx.save(standard_model(case, dtype, form), str(plain))
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
    for case in (c for c in measured() if c.op in sys.argv[2:] or not sys.argv[2:]):
        for dtype in KINDS:
            write(folder, case, dtype)


if __name__ == "__main__":
    main()
