"""Whole numbers leave a file in the type that they have in the module, not only with the same values."""

import onnx
import pytest

from trtconv.core.errors import TrtconvError
from trtconv.core.model.file import load_model
from trtconv.export.symbolic import mode
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
    others = {name: handler for name, handler in mode.handlers().items() if handler is not shifts.shift_right}
    monkeypatch.setattr(mode, "handlers", lambda: others)
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


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_what_is_returned_twice_is_there_twice(export, write_module, exporter):
    """Also an input, and a tensor that is another's by `cpu()` or `real`."""
    write_module("""
class Net(nn.Module):
    def forward(self, x):
        y = x * 2
        z = y.cpu().real
        z.clamp_(max=1.0)
        return x, y, z, x, {"y": y}
""")
    result = export("net.py:Net", ["x:float32[N,3]"], "N=1:2:4", exporter=exporter)
    model = onnx.load(result.model)
    assert [o.name for o in model.graph.output] == ["output_0", "output_1", "output_2", "output_3", "output_4.y"]
    assert [i.name for i in model.graph.input] == ["x"]


@pytest.mark.parametrize("exporter", ["dynamo", "torchscript"])
def test_a_mask_that_is_full_of_a_flag(export, write_module, exporter):
    write_module("""
class Net(nn.Module):
    def forward(self, x):
        hidden, ones = torch.full(x.shape, True), torch.full((x.shape[0],), True, dtype=torch.float32)
        hidden[:, 0] = False
        return x.masked_fill(hidden, 0.0), torch.full((x.shape[0],), False), ones
""")
    result = export("net.py:Net", ["x:float32[N,3]"], "N=1:2:4", exporter=exporter)
    types = [o.type.tensor_type.elem_type for o in onnx.load(result.model).graph.output]
    assert types == [onnx.TensorProto.FLOAT, onnx.TensorProto.BOOL, onnx.TensorProto.FLOAT]
