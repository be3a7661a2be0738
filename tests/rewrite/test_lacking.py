"""Operators that the target has not and that no rule rewrites are told by rewrite, not by build alone."""

from __future__ import annotations

import onnx
import pytest

from tests.rewrite.test_room import ask
from trtconv.frontend.summary import rewrite_summary

MODEL = """<ir_version: 8, opset_import: ["": {opset}, "ai.onnx.ml": 3, "com.microsoft": 1, "mine": 1]>
g (float[N,8] x) => (float[N,8] y) {{ {body} }}"""


def notes_of(body, folder, target="tensorrt-rtx", opset=17):
    model = onnx.parser.parse_model(MODEL.format(body=body, opset=opset))
    return ask(model, folder, target=target)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("y = ai.onnx.ml.Scaler <offset = [0.0], scale = [2.0]> (x)", "Scaler (ai.onnx.ml)"),
        ("y = com.microsoft.Inverse2 (x)", "Inverse2 (com.microsoft)"),
    ],
)
def test_what_stays_and_the_target_has_not_is_named(tmp_path, body, name):
    result = notes_of(body, tmp_path)
    (note,) = [n for n in result.notes if "build refuses the graph" in n]
    assert note.startswith(f"tensorrt-rtx has no {name}, and no rule writes it otherwise")
    assert ("rewrites", "none") in rewrite_summary(result).lines


@pytest.mark.parametrize("body", ["y = Relu(x)", "y = mine.Special (x)", "y = EfficientThing_TRT (x)"])
def test_what_it_has_or_a_plugin_may_have_is_not(tmp_path, body):
    model = onnx.parser.parse_model(MODEL.format(body=body, opset=17))
    result = ask(model, tmp_path, proof=False)
    assert not [n for n in result.notes if "build refuses" in n]
