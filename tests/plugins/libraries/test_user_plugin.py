"""A plugin of the user's own, from examples/user_plugin: its values, its rule, and a model that carries its body."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from trtconv.core.errors import InvalidRequestError, UnsupportedError
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.plugins.description import PluginAttribute, PluginDescription, Tensor
from trtconv.plugins.libraries.finding import libraries_for_model
from trtconv.plugins.libraries.user_plugin import load_plugins, require_buildable
from trtconv.plugins.onnx_form import add_functions, make_node
from trtconv.rewrite import rewrite_model

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "examples" / "user_plugin"
KINDS = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16}
TOLERANCE = {"float32": 2e-5, "float16": 2e-3}
SHAPES = [(2, 3, 7, 5), (1, 1, 1, 6), (3, 2, 8, 1), (0, 2, 4, 4)]


@pytest.fixture(scope="module")
def sampler() -> PluginDescription:
    (result,) = load_plugins(FOLDER / "plugin.py")
    return result


def inputs_of(shape: tuple[int, ...], dtype: str) -> list[Any]:
    """An image and transformations that turn, stretch and move it, partly out of the frame."""
    rng = np.random.default_rng(0)
    theta = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]) + rng.uniform(-0.5, 0.5, (shape[0], 2, 3))
    return [rng.standard_normal(shape).astype(dtype), theta.astype(dtype)]


def model_of(sampler: PluginDescription, dtype: str, opset: int, align: int) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info("x", KINDS[dtype], ["N", "C", "H", "W"]),
        helper.make_tensor_value_info("theta", KINDS[dtype], ["N", 2, 3]),
    ]
    output = helper.make_tensor_value_info("y", KINDS[dtype], [None] * 4)
    node = make_node(sampler, ["x", "theta"], ["y"], "sampler", align_corners=align)
    graph = helper.make_graph([node], "g", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    add_functions(model, (sampler,))
    return model


@pytest.mark.filterwarnings("ignore:Since version 1.3.0")
@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("shape", SHAPES[:3], ids=str)
def test_the_reference_is_pytorch(sampler: PluginDescription, shape: tuple[int, ...], align: int) -> None:
    torch = pytest.importorskip("torch")
    x, theta = (torch.from_numpy(a) for a in inputs_of(shape, "float64"))
    functional = torch.nn.functional
    grid = functional.affine_grid(theta, list(shape), align_corners=bool(align))
    modes = functional.grid_sample(x, grid, padding_mode="zeros", align_corners=bool(align)).numpy()
    (actual,) = sampler.evaluate([x.numpy(), theta.numpy()], {"align_corners": align})
    assert np.abs(actual - modes).max() <= 1e-12


@pytest.mark.parametrize("align", [0, 1])
@pytest.mark.parametrize("opset", [17, 20])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_onnx_runtime_runs_the_body_as_the_reference(
    sampler: PluginDescription, shape: tuple[int, ...], dtype: str, opset: int, align: int
) -> None:
    import onnxruntime as ort

    model = model_of(sampler, dtype, opset, align)
    onnx.checker.check_model(model)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    arrays = inputs_of(shape, dtype)
    (expected,) = sampler.evaluate(arrays, {"align_corners": align})
    (actual,) = session.run(None, dict(zip(["x", "theta"], arrays, strict=True)))
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if actual.size:
        difference = np.abs(actual.astype(np.float64) - expected.astype(np.float64)).max()
        assert difference <= TOLERANCE[dtype] * np.abs(expected.astype(np.float64)).max()


def exported(path: Path, theta_dims: tuple[Any, ...] = ("N", 2, 3)) -> Path:
    """x and theta -> the grid written out as PyTorch's exporter does -> GridSample -> Relu; the theta is an input."""
    text = f"""
      <ir_version: 9, opset_import: ["" : 20]>
      g (float[N,2,H,W] x, float[{",".join(map(str, theta_dims))}] theta) => (float[N,2,H,W] y)
      <int64 i0 = {{0}}, int64 i1 = {{1}}, int64[1] v0 = {{0}}, float one = {{1.0}}, float two = {{2.0}},
       int64[4] fw = {{1,1,-1,1}}, int64[4] fh = {{1,-1,1,1}}, int64[5] ft = {{-1,3,1,1,2}}, int64 i2 = {{2}}> {{
        hs = Shape<start=2,end=3>(x)  h = Squeeze(hs, v0)
        ws = Shape<start=3,end=4>(x)  w = Squeeze(ws, v0)
        rw = Range(i0, w, i1)  fw1 = Cast<to=1>(rw)  w2 = Mul(fw1, two)  w3 = Add(w2, one)  wf = Cast<to=1>(w)
        w4 = Div(w3, wf)  w5 = Sub(w4, one)  xs = Reshape(w5, fw)
        rh = Range(i0, h, i1)  fh1 = Cast<to=1>(rh)  h2 = Mul(fh1, two)  h3 = Add(h2, one)  hf = Cast<to=1>(h)
        h4 = Div(h3, hf)  h5 = Sub(h4, one)  ys = Reshape(h5, fh)
        t = Transpose<perm=[0,2,1]>(theta)  t5 = Reshape(t, ft)
        t0 = Gather<axis=1>(t5, i0)  t1 = Gather<axis=1>(t5, i1)  t2 = Gather<axis=1>(t5, i2)
        a = Mul(xs, t0)  b = Mul(ys, t1)  c = Add(a, b)  grid = Add(c, t2)
        s = GridSample<mode="linear", padding_mode="zeros", align_corners=0>(x, grid)
        y = Relu(s)
      }}"""
    model = onnx.parser.parse_model(text)
    model.metadata_props.add(key="trtconv.space", value="N=1:2:4 H=5:9:17 W=4:7:13")
    dims = ",".join(map(str, theta_dims))
    model.metadata_props.add(key="trtconv.inputs", value=f"x:float32[N,2,H,W]\ntheta:float32[{dims}]")
    onnx.save(model, str(path))
    return path


def rewritten(folder: Path, **values: Any) -> tuple[Any, onnx.ModelProto]:
    values = {"target": "tensorrt==10", "plugins": "StnSampler", "rule_files": (FOLDER / "plugin.py",), **values}
    values["target"] = parse_target(values["target"])
    model = values.pop("model", None) or exported(folder / "model.onnx")
    result = rewrite_model(RewriteRequest(model, folder / "out.onnx", **values), SilentProgress())
    return result, onnx.load(str(folder / "out.onnx"))


@pytest.mark.parametrize("target", ["tensorrt==8.6", "tensorrt==10", "tensorrt==11"])
def test_the_rule_puts_the_plugin_in_and_is_proved(tmp_path: Path, target: str) -> None:
    result, model = rewritten(tmp_path, target=target)
    assert [n.op_type for n in model.graph.node] == ["StnSampler", "Relu"]
    entry = next(e for e in result.entries if e.rule == "stn-sampler")
    assert entry.proof.passed is True
    assert result.whole.passed is True
    (function,) = model.functions
    opset = next(o.version for o in model.opset_import if not o.domain)
    assert {o.version for o in function.opset_import if not o.domain} == {opset}
    assert opset == (17 if target.endswith("8.6") else 20)


def test_a_rewritten_model_is_rewritten_again_without_the_description(tmp_path: Path) -> None:
    _, first = rewritten(tmp_path)
    again = tmp_path / "again"
    again.mkdir()
    _, second = rewritten(again, model=tmp_path / "out.onnx", rule_files=(), plugins="never", precision="fp16")
    assert [f.name for f in second.functions] == [f.name for f in first.functions] == ["StnSampler"]
    producers = {t: n for n in second.graph.node for t in n.output}
    node = next(n for n in second.graph.node if n.op_type == "StnSampler")
    # Its types are known from the model alone: both inputs come in half precision.
    assert [producers[i].op_type for i in node.input] == ["Cast", "Cast"]
    onnx.checker.check_model(second)


def test_the_rule_waits_until_the_plugin_is_asked_for(tmp_path: Path) -> None:
    _, model = rewritten(tmp_path, plugins="never")
    assert "StnSampler" not in [n.op_type for n in model.graph.node]
    with pytest.raises(InvalidRequestError, match="StnSampler"):
        rewritten(tmp_path, plugins="StnSamplr")
    with pytest.raises(InvalidRequestError, match="no plugin 'StnSampler'"):
        rewritten(tmp_path, rule_files=())


def test_auto_has_no_measurement_of_a_users_plugin(tmp_path: Path) -> None:
    result, model = rewritten(tmp_path, plugins="auto")
    assert "StnSampler" not in [n.op_type for n in model.graph.node]
    assert any("no measurement of StnSampler" in s.reason for s in result.skipped)


def test_a_grid_that_is_no_affine_one_is_left(tmp_path: Path) -> None:
    model = onnx.load(str(exported(tmp_path / "model.onnx")))
    bend = next(n for n in model.graph.node if n.output[0] == "grid")
    bend.output[0] = "straight"
    index = list(model.graph.node).index(bend)
    model.graph.node.insert(index + 1, helper.make_node("Sin", ["straight"], ["grid"], name="bend"))
    onnx.save(model, str(tmp_path / "model.onnx"))
    result, after = rewritten(tmp_path, model=tmp_path / "model.onnx")
    assert "StnSampler" not in [n.op_type for n in after.graph.node]
    assert any("no affine grid" in s.reason for s in result.skipped)


def test_a_grid_of_other_positions_is_rejected_by_the_proof(tmp_path: Path) -> None:
    """It has the operators of an affine grid, but another scale: only running both shows it."""
    model = onnx.load(str(exported(tmp_path / "model.onnx")))
    two = next(t for t in model.graph.initializer if t.name == "two")
    two.CopyFrom(onnx.numpy_helper.from_array(np.array(1.5, np.float32), "two"))
    onnx.save(model, str(tmp_path / "model.onnx"))
    result, after = rewritten(tmp_path, model=tmp_path / "model.onnx")
    assert "StnSampler" not in [n.op_type for n in after.graph.node]
    assert [r.rule for r in result.rejected] == ["stn-sampler"]


def test_a_model_whose_library_was_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "nothing"))
    _, model = rewritten(tmp_path)
    with pytest.raises(UnsupportedError, match="StnSampler") as caught:
        libraries_for_model(model, (), "8.6.1")
    assert "--plugin" in (caught.value.hint or "")
    other = tmp_path / "libother.so"
    other.write_bytes(b"\0SomethingElse\0")
    with pytest.raises(UnsupportedError, match="StnSampler"):
        libraries_for_model(model, (other,), "8.6.1")
    own = tmp_path / "libown.so"
    own.write_bytes(b"x\0StnSampler\0y")
    assert libraries_for_model(model, (own,), "8.6.1") == (own,)


BROKEN: list[tuple[dict[str, Any], str]] = [
    ({"op_type": "TrtconvMine"}, "begin with Trtconv"),
    ({"op_type": "GridSample"}, "an ONNX operator"),
    ({"op_type": "lower"}, "op_type has to be"),
    ({"folder": "Two Words"}, "C\\+\\+ namespace"),
    ({"inputs": (Tensor("x", "U", ""),)}, "type variable U"),
    ({"outputs": (Tensor("y", "S", ""),), "inputs": (Tensor("x", "T", ""),)}, "no input has the type S"),
    ({"types": (("T", ("int8",)), ("S", ("float32",)))}, "type T may be of"),
    ({"attributes": (PluginAttribute("a", "ints", (0,) * 17, "", length=17),)}, "take 68 bytes"),
    ({"attributes": (PluginAttribute("plugin_version", "int", 0, ""),)}, "name of an attribute"),
    ({"attributes": (PluginAttribute("a", "int", 5, "", 0, 4),)}, "outside 0 to 4"),
]


@pytest.mark.parametrize(("change", "message"), BROKEN, ids=lambda v: v if isinstance(v, str) else "")
def test_a_description_that_cannot_be_built(sampler: PluginDescription, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        require_buildable(replace(sampler, **change))


@pytest.mark.parametrize(
    ("text", "message"),
    [("x = 1", "describes no plugins"), ("PLUGINS = (1,)", "not a PluginDescription"), ("1 / 0", "ZeroDivisionError")],
)
def test_a_file_that_describes_nothing(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "plugin.py").write_text(text)
    with pytest.raises(InvalidRequestError, match=message):
        load_plugins(tmp_path / "plugin.py")
