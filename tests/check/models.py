"""A small network with modules, lines and a reference beside it, for the tests of the check room."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from trtconv.backends.tensorrt.manifest import EngineManifest, write_manifest
from trtconv.check.compare.subjects import open_subject
from trtconv.core.files.digest import sha256_file
from trtconv.core.model.file import save_model, set_metadata
from trtconv.core.model.provenance import MODULE_KEY, RULE_KEY, SOURCE_KEY, SPACE_KEY
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.proof.points import sample_inputs, sample_points
from trtconv.proof.reference import ReferenceInfo, ReferenceSample, write_reference

SPACE = parse_space(["N=1:2:3", "W=4:8:12"])
SPEC = parse_tensor("x:float32[N,4,W]")


def node(op, inputs, outputs, line, module, rule="", **attributes):
    node = helper.make_node(op, inputs, outputs, name=f"/{module}/{op}", **attributes)
    for key, value in ((MODULE_KEY, module), (SOURCE_KEY, f"net.py:{line}"), (RULE_KEY, rule)):
        if value:
            node.metadata_props.add(key=key, value=value)
    return node


def small_net(*, eps=1e-10, scale=2.0, baked=0, norm_rule="", dtype=np.float32):
    """y = x / (sqrt(sum(x * x)) + eps) * scale, reshaped to [N, 4 * W]; `baked` writes a constant for 4 * W."""
    nodes = [
        node("Mul", ["x", "x"], ["square"], 10, "norm"),
        node("ReduceSum", ["square", "axes"], ["sum"], 11, "norm", keepdims=1),
        node("Sqrt", ["sum"], ["root"], 12, "norm"),
        node("Add", ["root", "eps"], ["length"], 13, "norm", norm_rule),
        node("Div", ["x", "length"], ["unit"], 14, "norm"),
        helper.make_node("Mul", ["unit", "scale"], ["scaled"], name="/head/Mul"),
        node("Reshape", ["scaled", "shape"], ["y"], 21, "head"),
    ]
    arrays = {
        "axes": np.array([1], np.int64),
        "eps": np.array(eps, dtype),
        "scale": np.array(scale, dtype),
        "shape": np.array([0, baked or -1], np.int64),
    }
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", element, ["N", 4, "W"])],
        [helper.make_tensor_value_info("y", element, ["N", "F"])],
        [numpy_helper.from_array(v, k) for k, v in arrays.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    set_metadata(model, SPACE_KEY, str(SPACE))
    return model


def half_net(**options):
    """The same in FP16 with FP32 at the border, as an engine of `--precision fp16` computes it."""
    model = small_net(dtype=np.float16, **options)
    graph = model.graph
    graph.input[0].type.tensor_type.elem_type = graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    for node in graph.node:
        node.input[:] = ["x16" if i == "x" else i for i in node.input]
        node.output[:] = ["y16" if o == "y" else o for o in node.output]
    graph.node.insert(0, helper.make_node("Cast", ["x"], ["x16"], to=TensorProto.FLOAT16))
    graph.node.append(helper.make_node("Cast", ["y16"], ["y"], to=TensorProto.FLOAT))
    onnx.checker.check_model(model)
    return model


def write_pair(folder, model=None, rewritten=None):
    """`model.onnx`, `model.trt.onnx` and the reference of `small_net()`; returns the rewritten file's path."""
    save_model(model or small_net(), folder / "model.onnx")
    save_model(small_net(), folder / "truth.onnx")
    subject = open_subject(folder / "truth.onnx")
    points = sample_points(SPACE, [SPEC])
    inputs = [sample_inputs([SPEC], p) for p in points]
    samples = [ReferenceSample(p, i, subject.run(i)) for p, i in zip(points, inputs, strict=True)]
    write_reference(folder / "model.reference.safetensors", ReferenceInfo(points, (SPEC,), ("y",), SPACE), samples)
    (folder / "truth.onnx").unlink()
    save_model(rewritten or model or small_net(), folder / "model.trt.onnx")
    return folder / "model.trt.onnx"


def write_engine(folder, **over):
    """An engine file with the manifest of a build from `model.trt.onnx`; it has a plan's header and nothing else."""
    engine, model = folder / "model.engine", folder / "model.trt.onnx"
    engine.write_bytes(b"trtv" + bytes(20) + bytes([1, 7, 1, 116]) + bytes(200))
    values = {
        "engine_sha256": sha256_file(engine), "engine_bytes": engine.stat().st_size,
        "model_files": {model.name: sha256_file(model)}, "backend": "tensorrt-rtx", "version": "1.7.1.116",
        "trtconv": "0.1.0", "inputs": (SPEC,), "outputs": (parse_tensor("y:float32[N,F]"),), "space": SPACE,
        "profiles": (), "precision": "fp32",
    }  # fmt: skip
    write_manifest(engine, EngineManifest(**(values | over)))
    return engine
