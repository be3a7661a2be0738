"""Whole numbers leave a file in the type that they have in the module, not only with the same values."""

import onnx
import pytest

from trtconv.core.errors import TrtconvError
from trtconv.core.model.file import load_model
from trtconv.export.symbolic import numerics

SHIFT = """
class Net(nn.Module):
    def forward(self, x):
        return x >> 3
"""


def test_bytes_stay_bytes(export, write_module):
    write_module(SHIFT)
    result = export("net.py:Net", ["x:uint8[N,T]=0:255"], "N=1:2:3 T=1:5:9")
    assert load_model(result.model).graph.output[0].type.tensor_type.elem_type == onnx.TensorProto.UINT8


def test_another_type_is_refused_by_name(export, write_module, monkeypatch):
    """torch's own translation of a shift gives bytes back as int8."""
    monkeypatch.setattr(numerics, "shift_right", lambda func, x, bits: NotImplemented)
    write_module(SHIFT)
    with pytest.raises(TrtconvError) as raised:
        export("net.py:Net", ["x:uint8[N,T]=0:255"], "N=1:2:3 T=1:5:9", exporter="dynamo")
    assert "'output' is int8 in the file and uint8 in the module" in str(raised.value)
