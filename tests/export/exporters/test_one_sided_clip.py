"""A clamp of one side leaves infinities on the other."""

import numpy as np
import onnx
import pytest
import torch

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.export.exporters.one_sided_clip import write_one_sided_clips

X = np.array([-np.inf, -1.0, 0.0, 1.0, np.inf], np.float32)
HEADER = '<ir_version: 8, opset_import: ["" : 17]> '
BOUND = {
    "initializer": ("<float b = {0.5}>", ""),
    "number": ("", "b = Constant<value_float=0.5>()"),
    "tensor": ("", "b = Constant<value = float {0.5}>()"),
}


def model_with(body, initializers=""):
    model = onnx.parser.parse_model(f"{HEADER}agraph (float[5] x) => (float[5] y) {initializers} {{ {body} }}")
    onnx.checker.check_model(model)
    return model


@pytest.mark.parametrize("form", BOUND)
@pytest.mark.parametrize(
    ("clip", "op", "expected"),
    [
        ("Clip(x, b)", "Max", np.maximum(X, 0.5)),
        ("Clip(x, , b)", "Min", np.minimum(X, 0.5)),
    ],
)
def test_infinities_pass_the_side_without_a_bound(form, clip, op, expected):
    initializers, constant = BOUND[form]
    model = model_with(f"{constant} y = {clip}", initializers)
    assert write_one_sided_clips(model) == 1
    onnx.checker.check_model(model)
    assert model.graph.node[-1].op_type == op
    np.testing.assert_array_equal(OnnxRuntimeRunner(model.SerializeToString())({"x": X})["y"], expected)


@pytest.mark.parametrize(
    "body",
    [
        "b = Constant<value_float=0.5>() y = Clip(x, b, b)",
        "b = Constant<value_int=3>() i = Cast<to=7>(x) j = Clip(i, b) y = Cast<to=1>(j)",
    ],
)
def test_two_bounds_and_integers_stay(body):
    model = model_with(body)
    assert write_one_sided_clips(model) == 0


def test_clips_in_bodies_are_written_too():
    branch = "float[5] z) { b = Constant<value_float=0.5>() z = Clip(x, b) }"
    condition = "c = Constant<value = bool {1}>()"
    body = f"{condition} y = If(c) <then_branch = t () => ({branch}, else_branch = e () => ({branch}>"
    assert write_one_sided_clips(model_with(body)) == 2


@pytest.mark.parametrize(("clip", "op", "side"), [("Clip(x, b)", "Relu", "min"), ("Clip(x, , b)", "Where", "max")])
def test_a_zero_keeps_its_sign_beside_a_bound_of_zero(clip, op, side):
    x = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan] * 9, np.float32)
    text = f"{HEADER}agraph (float[n] x) => (float[n] y) <float b = {{0.0}}> {{ y = {clip} }}"
    model = onnx.parser.parse_model(text)
    assert write_one_sided_clips(model) == 1
    onnx.checker.check_model(model)
    assert model.graph.node[-1].op_type == op
    expected = torch.from_numpy(x).clamp(**{side: 0.0}).numpy()
    actual = OnnxRuntimeRunner(model.SerializeToString())({"x": x})["y"]
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(np.signbit(actual[~np.isnan(x)]), np.signbit(expected[~np.isnan(x)]))
