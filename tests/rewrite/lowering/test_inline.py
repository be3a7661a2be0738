"""Local functions written out at their calls."""

import numpy as np
import onnx

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.rewrite.lowering.inline import inline_functions

TEXT = """<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
g (float[N,6] x) => (float[N,6] y) { h = own.Lean<alpha=0.3>(x) y = own.Outer(h) }
<domain: "own", opset_import: ["" : 17]> Lean <alpha: float = 0.7> (a) => (b)
{ b = LeakyRelu<alpha: float = @alpha>(a) }
<domain: "own", opset_import: ["" : 17, "own" : 1]> Outer (a) => (b) { b = own.Lean(a) }
"""


def test_defaults_of_attributes_are_not_forgotten():
    """At the call that gives none, and at one inside of another function."""
    model = onnx.parser.parse_model(TEXT)
    inlined, count = inline_functions(model)
    assert count == 2
    x = np.array([[-1.0, -2.0, 3.0, 0.5, -0.1, 4.0]], np.float32)
    expected = np.where(x < 0, x * np.float32(0.3) * np.float32(0.7), x)
    np.testing.assert_allclose(OnnxRuntimeRunner(inlined.SerializeToString())({"x": x})["y"], expected, rtol=1e-6)
