"""Whole numbers leave a file in the type that they have in the module, not only with the same values."""

import onnx
import pytest

from trtconv.core.errors import TrtconvError
from trtconv.core.model.file import load_model
from trtconv.export.symbolic.arithmetic import shifts

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
    monkeypatch.setattr(shifts, "shift_right", lambda func, x, bits: NotImplemented)
    write_module(SHIFT)
    with pytest.raises(TrtconvError) as raised:
        export("net.py:Net", ["x:uint8[N,T]=0:255"], "N=1:2:3 T=1:5:9", exporter="dynamo")
    assert "'output' is int8 in the file and uint8 in the module" in str(raised.value)


DOUBLE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("gain", torch.tensor(1.5, dtype=torch.float64))

    def forward(self, x):
        return (x > 0) * self.gain
"""


def test_doubles_stay_doubles(export, write_module):
    """TorchScript takes a number of no dims for one of float32, as where it stands beside a float tensor."""
    write_module(DOUBLE)
    inputs, dims = ["x:float32[N,T]=-50:50"], "N=1:2:3 T=1:5:9"
    result = export("net.py:Net", inputs, dims)
    assert load_model(result.model).graph.output[0].type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
    with pytest.raises(TrtconvError) as raised:
        export("net.py:Net", inputs, dims, exporter="torchscript")
    assert "'output' is float32 in the file and float64 in the module" in str(raised.value)
