"""Targets that take a whole model: ONNX as it is read, rewritten and checked, and the programs of torch.export."""

from __future__ import annotations

import functools
import json
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from tests.fuzz.strategies import changed_bytes, changed_json, changed_message
from tests.fuzz.target import Finding, Target, audited
from trtconv.core.model.facts import onnx_facts
from trtconv.core.model.file import load_model, load_weights, save_model, signature
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.plugins.described.l2norm import L2NORM
from trtconv.plugins.onnx_form import add_functions, make_node

MOST_ELEMENTS = 10**7
SECRET = b"a file outside of the model's folder"


def _model(nodes: list[Any], weights: list[Any] = [], functions: list[Any] = [], **more: Any) -> Any:  # noqa: B006
    value = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [value("x", T.FLOAT, ["N", 4])], [value("y", T.FLOAT, None)], weights, **more)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=functions)
    for key, text in (("trtconv.space", "N=1:2:3"), ("trtconv.inputs", "x:float32[N,4]")):
        model.metadata_props.add(key=key, value=text)
    return model


def _weight(name: str, *shape: int) -> Any:
    return numpy_helper.from_array(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape), name)


def _body(name: str, op: str) -> Any:
    output = helper.make_tensor_value_info(f"{name}_y", T.FLOAT, None)
    return helper.make_graph([helper.make_node(op, ["x"], [f"{name}_y"])], name, [], [output])


def _loop() -> Any:
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Relu", ["a"], ["b"]), helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [value("i", T.INT64, []), value("c", T.BOOL, []), value("a", T.FLOAT, None)],
        [value("d", T.BOOL, []), value("b", T.FLOAT, None)],
    )
    return _model(
        [helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)],
        [numpy_helper.from_array(np.array(3), "trips")],
    )


@functools.cache
def seeds() -> tuple[Any, ...]:
    """Small models with what mutations bite on: bodies, functions, constants, sizes that are computed, wide outputs."""
    node = helper.make_node
    steps = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "zero"], ["n"], axis=0),
        node("Range", ["zero", "n", "one"], ["r"]),
        node("Cast", ["r"], ["f"], to=T.FLOAT),
        node("Unsqueeze", ["f", "axes"], ["u"]),
        node("Mul", ["x", "u"], ["y"]),
    ]
    sizes = [numpy_helper.from_array(np.array(v), n) for n, v in (("zero", 0), ("one", 1), ("axes", [1]))]
    function = helper.make_function(
        "own", "Twice", ["a"], ["b"], [node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 18)]
    )
    external = _weight("w", 4, 4)
    external.ClearField("raw_data")
    external.data_location = T.EXTERNAL
    for key, text in (("location", "w.data"), ("offset", "0"), ("length", "64")):
        external.external_data.add(key=key, value=text)
    condition = [
        node("ReduceMax", ["x"], ["m"], keepdims=0),
        node("Greater", ["m", "limit"], ["c"]),
        node("If", ["c"], ["y"], then_branch=_body("t", "Relu"), else_branch=_body("e", "Neg")),
    ]
    plugin = _model([make_node(L2NORM, ["x", "k"], ["y"], name="norm")], [_weight("k", 4)])
    add_functions(plugin)
    return (
        plugin,
        _model([node("Gemm", ["x", "w", "b"], ["h"], transB=1), node("Softmax", ["h"], ["y"], axis=1)],
               [_weight("w", 4, 4), _weight("b", 4)]),
        _model(steps, sizes),
        _model(condition, [_weight("limit")]),
        _loop(),
        _model([node("Einsum", ["x", "w"], ["y"], equation="ni,ij->nj")], [_weight("w", 4, 4)]),
        _model([node("Twice", ["x"], ["y"], domain="own")], functions=[function]),
        _model([node("MatMul", ["x", "w"], ["y"])], [external]),
        _model([node("Constant", [], ["k"], value=_weight("k", 2, 4)), node("Tile", ["x", "reps"], ["t"]),
                node("Concat", ["t", "k"], ["y"], axis=0)], [numpy_helper.from_array(np.array([2, 1]), "reps")]),
    )  # fmt: skip


def _put(data: bytes, folder: Path) -> Path:
    """The model in a folder with its weights, and a secret beside that folder."""
    (folder / "secret").write_bytes(SECRET)
    inner = folder / "model"
    inner.mkdir(exist_ok=True)
    (inner / "w.data").write_bytes(bytes(64))
    path = inner / "m.onnx"
    path.write_bytes(data)
    return path


def _read(data: bytes, folder: Path) -> None:
    path = _put(data, folder)
    model = load_model(path)
    signature(model)
    onnx_facts(path, layers=True)
    load_weights(model, path.parent)
    if SECRET in model.SerializeToString():
        raise Finding("a file outside of the folder was read")
    save_model(model, folder / "model" / "again.onnx")


def _rewrite(data: bytes, folder: Path) -> None:
    """The rewrite room and, on what came out, the check against the model itself; what is written loads again."""
    from trtconv.rewrite import rewrite_model

    path = _put(data, folder)
    output = path.with_name("m.trt.onnx")
    rewrite_model(RewriteRequest(path, output, parse_target("tensorrt==11"), proof=True), SilentProgress())
    load_model(output)


def _check(data: bytes, folder: Path) -> None:
    """What `trtconv check` does with a graph: it runs it, at inputs that fit what the graph says of itself."""
    from trtconv.check.compare.subjects import open_subject

    subject = open_subject(_put(data, folder))
    try:
        shapes = {s.name: [d if isinstance(d, int) else 2 for d in s.dims] for s in subject.inputs}
        if sum(math.prod(shape) for shape in shapes.values()) > MOST_ELEMENTS:
            return
        subject.run({s.name: np.ones(shapes[s.name], s.dtype.numpy()) for s in subject.inputs})
    finally:
        subject.close()


def model_bytes() -> st.SearchStrategy[bytes]:
    """A model whose fields were changed, or whose bytes were."""
    messages = st.deferred(lambda: changed_message(seeds())).map(lambda m: m.SerializePartialToString())
    plain = st.deferred(lambda: st.sampled_from([m.SerializeToString() for m in seeds()]))
    return st.one_of(messages, messages, messages, changed_bytes(plain))


@functools.cache
def program_members() -> dict[str, bytes]:
    """The members of a `.pt2` that torch wrote."""
    from tests.export.program.programs import members, save_program

    with tempfile.TemporaryDirectory() as folder:
        return members(save_program(Path(folder) / "p.pt2"))


@st.composite
def programs(draw: st.DrawFn) -> dict[str, bytes]:
    """The members with the JSON or the bytes of one changed, or one of them missing, twice or under another name."""
    content = dict(program_members())
    name = draw(st.sampled_from(["models/model.json"] * 6 + sorted(content)))
    kind = draw(st.sampled_from(("json", "json", "json", "bytes", "rename", "remove")))
    if kind == "remove":
        del content[name]
    elif kind == "rename":
        other = draw(st.sampled_from(("../x", "models/other.json", "data/weights/x.py", "extra/x")))
        content[other] = content.pop(name)
    elif kind == "json" and name.endswith(".json"):
        content[name] = json.dumps(draw(changed_json(json.loads(content[name])))).encode("utf-8", "surrogatepass")
    else:
        content[name] = draw(changed_bytes(st.just(content[name])))
    return content


def _program(content: dict[str, bytes], folder: Path) -> None:
    from tests.export.program.programs import write_archive
    from trtconv.export.module.exported_program import read_program

    path = write_archive(folder / "p.pt2", content)
    with audited() as events:
        read_program(path)
    if events:
        raise Finding(f"reading a program did {events}")


READ = Target("onnx", model_bytes(), _read)
PROGRAM = Target("program", st.deferred(programs), _program)
LONG = (
    Target("rewrite", model_bytes(), _rewrite),
    Target("check", model_bytes(), _check),
)
