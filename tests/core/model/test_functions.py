"""Local functions that import another opset than their model: read where that changes nothing, else one error."""

import numpy as np
import onnx
import onnxruntime
import pytest

from trtconv.core.errors import UnsupportedError
from trtconv.core.model.file import load_model
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model

BRANCHES = """c = Constant<value_int=1>() d = Cast<to=9>(c) b = If(d) <
then_branch = t () => (o) { s = ReduceMean<axes=[1]>(a) o = Sub(a, s) },
else_branch = e () => (p) { p = Relu(a) }>"""


def write(path, model_opset, function_opset, body, more="", extra=""):
    """A model whose only node calls `own.F` with that body."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : {model_opset}, "own" : 1]>
        g (float[N,4] x) => (float[N,4] y) {{ y = own.F(x) }}
        <domain: "own", opset_import: ["" : {function_opset}{more}]>
        F (a) => (b) {{ {body} }}{extra}"""
    )
    for key, text in (("trtconv.space", "N=1:2:3"), ("trtconv.inputs", "x:float32[N,4]")):
        model.metadata_props.add(key=key, value=text)
    onnx.save(model, path)
    return path


def rewritten(path):
    output = path.with_name("out.onnx")
    rewrite_model(RewriteRequest(path, output, parse_target("tensorrt==11")), SilentProgress())
    return output


@pytest.mark.parametrize(
    ("model_opset", "function_opset", "body", "operator"),
    [(18, 17, "s = ReduceMean<axes=[1], keepdims=1>(a) b = Sub(a, s)", "ReduceMean"),
     (18, 11, "b = Softmax<axis=1>(a)", "Softmax"), (17, 20, "b = Gelu(a)", "Gelu"),
     (18, 11, "c = Unsqueeze<axes=[0]>(a) b = Squeeze<axes=[0]>(c)", "Squeeze"),
     (18, 17, BRANCHES, "ReduceMean")],
    ids=["attribute became an input", "another meaning, without a word", "newer than the model", "both", "in a branch"],
)  # fmt: skip
def test_an_operator_that_changed_between_the_two_is_one_error(tmp_path, model_opset, function_opset, body, operator):
    path = write(tmp_path / "m.onnx", model_opset, function_opset, body)
    for read in (load_model, rewritten):
        with pytest.raises(UnsupportedError) as caught:
            read(path)
        assert f"'F' is written in opset {function_opset} of 'ai.onnx' and the model in {model_opset}" in str(
            caught.value.message
        )
        assert f"where {operator} is another operator" in caught.value.message
        assert "convert_version=True" in caught.value.hint
    assert list(tmp_path.iterdir()) == [path]


G = """
<domain: "own", opset_import: ["" : 16]>
G (a) => (b) { b = Neg(a) }"""


@pytest.mark.parametrize(
    ("model_opset", "function_opset", "body", "more", "extra", "expected"),
    [(18, 17, "b = Relu(a)", "", "", lambda x: np.maximum(x, 0)),
     (17, 18, "c = Relu(a) b = Add(c, a)", "", "", lambda x: np.maximum(x, 0) + x),
     (18, 17, "b = own.G(a)", ', "own" : 2', G, np.negative),
     (18, 18, "b = Relu(a)", ', "elsewhere" : 7', "", lambda x: np.maximum(x, 0))],
    ids=["older", "newer", "one in another", "a domain that nobody uses"],
)  # fmt: skip
def test_operators_that_stayed_are_written_out(tmp_path, model_opset, function_opset, body, more, extra, expected):
    output = rewritten(write(tmp_path / "m.onnx", model_opset, function_opset, body, more, extra))
    assert not onnx.load(output).functions
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    (actual,) = onnxruntime.InferenceSession(str(output)).run(None, {"x": x})
    np.testing.assert_array_equal(actual, expected(x))
