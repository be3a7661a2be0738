"""Divisions of whole numbers by zero: an error of the run, and no end of the process."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import parser

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.onnxruntime.whole_division import with_guarded_divisions
from trtconv.core.errors import TrtconvError

INT32, INT64 = np.iinfo(np.int32), np.iinfo(np.int64)


def model(operator: str, kind: str, attributes: str = "", body: str = "", opset: int = 17) -> onnx.ModelProto:
    """One division of two inputs; the names in `body` lie between."""
    text = f"""<ir_version: 8, opset_import: ["" : {opset}]> g ({kind}[N] a, {kind}[M] b) => ({kind}[K] y) {{
        {body or f"y = {operator}{attributes}(a, b)"} }}"""
    parsed = parser.parse_model(text)
    parsed.graph.node[-1].name = "ratio"
    return parsed


def run(subject: onnx.ModelProto, a: object, b: object) -> np.ndarray:
    """The output, whichever of the two forms ran."""
    return OnnxRuntimeRunner(subject.SerializeToString(), threads=1)({"a": np.asarray(a), "b": np.asarray(b)})["y"]


@pytest.mark.parametrize(
    ("operator", "dtype"),
    [("Div", "int32"), ("Div", "int64"), *(("Mod", t) for t in ("int8", "uint8", "int16", "int32", "int64", "uint64"))],
)
def test_by_zero_is_an_error_that_names_the_node(operator: str, dtype: str) -> None:
    subject = model(operator, dtype)
    a = np.array([7, 9], dtype)
    np.testing.assert_array_equal(
        run(subject, a, np.array([2, 4], dtype)), a // [2, 4] if operator == "Div" else [1, 1]
    )
    with pytest.raises(TrtconvError, match="'ratio' divides whole numbers by zero"):
        run(subject, a, np.array([2, 0], dtype))


@pytest.mark.parametrize(("dtype", "smallest"), [(np.int32, INT32.min), (np.int64, INT64.min)])
def test_the_smallest_number_by_minus_one_too(dtype: type, smallest: int) -> None:
    subject = model("Div", np.dtype(dtype).name)
    assert run(subject, np.array([smallest + 1], dtype), np.array([-1], dtype)) == [-(smallest + 1)]
    assert run(subject, np.array([smallest], dtype), np.array([2], dtype)) == [smallest // 2]
    with pytest.raises(TrtconvError, match="'ratio' divides"):
        run(subject, np.array([smallest], dtype), np.array([-1], dtype))


@pytest.mark.parametrize("opset", [11, 13, 14, 18])
def test_empty_and_broadcast(opset: int) -> None:
    subject = model("Div", "int64", opset=opset)
    with pytest.raises(TrtconvError, match="'ratio' divides"):
        run(subject, np.array([7, 9]), np.array([0]))
    assert run(subject, np.zeros(0, np.int64), np.zeros(0, np.int64)).shape == (0,)
    np.testing.assert_array_equal(run(subject, np.array([7, 9]), np.array([2])), [3, 4])


def test_floats_are_left_alone() -> None:
    assert not with_guarded_divisions(model("Div", "float"))
    assert not with_guarded_divisions(model("Mod", "float", "<fmod=1>"))
    np.testing.assert_array_equal(run(model("Div", "float"), np.float32([1]), np.float32([0])), [np.inf])


def test_of_unknown_type_lets_floats_pass() -> None:
    """What no table follows is guarded by the type that it has when it runs."""
    unknown = model("Div", "float", body="p = CastLike(a, b) q = CastLike(b, a) y = Div(p, q)")
    del unknown.graph.output[0].type.tensor_type.shape.dim[:]
    unknown.graph.node[-1].output[0] = "z"
    unknown.graph.node.append(onnx.helper.make_node("Abs", ["z"], ["y"]))
    assert with_guarded_divisions(onnx.ModelProto.FromString(unknown.SerializeToString()))
    np.testing.assert_array_equal(run(unknown, np.float32([1, 3]), np.float32([0, 2])), [np.inf, 1.5])


def test_by_a_constant_that_is_harmless() -> None:
    for divisor in ("value_int = 4", "value = int64[2] {3, 5}"):
        assert not with_guarded_divisions(model("Div", "int64", body=f"c = Constant<{divisor}>() y = Div(a, c)"))
    assert with_guarded_divisions(model("Div", "int64", body="c = Constant<value_int = 0>() y = Div(a, c)"))


def test_inside_a_loop() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (int64 n, int64[M] b, int64[M] a) => (int64[M] y) {
        t = Constant<value = bool {1}>()
        y = Loop(n, t, a) <body = inner (int64 i, bool c, int64[M] v) => (bool d, int64[M] w) {
            d = Identity(c)
            w = Div(v, b)
        }>
    }"""
    runner = OnnxRuntimeRunner(parser.parse_model(text).SerializeToString(), threads=1)
    feed = {"n": np.array(2), "a": np.array([16, 81]), "b": np.array([2, 3])}
    np.testing.assert_array_equal(runner(feed)["y"], [4, 9])
    with pytest.raises(TrtconvError, match="divides whole numbers by zero"):
        runner({**feed, "b": np.array([2, 0])})
