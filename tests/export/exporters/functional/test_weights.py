"""What operators without an ONNX form compute from weights alone is a constant of the file."""

from __future__ import annotations

import onnx
import pytest

from trtconv.core.errors import TrtconvError

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(4, 4)
        self.register_buffer("calls", torch.zeros(4, 4))

    def forward(self, x):
        {body}
"""
OF_WEIGHTS = {
    "a matrix exponential": "return F.linear(x, torch.matrix_exp(self.f.weight - self.f.weight.t()), self.f.bias)",
    "several results": "u, s, _ = torch.linalg.svd(self.f.weight); return x @ u * s, torch.linalg.pinv(self.f.weight)",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("body", OF_WEIGHTS.values(), ids=list(OF_WEIGHTS))
def test_what_is_computed_from_weights_is_a_constant(body, write_module, export):
    result = export(f"{write_module(NET.format(body=body))}:Net", ["x:float32[N,4]"], "N=1:2:5")
    assert result.exporter == "dynamo"
    operators = {n.op_type for n in onnx.load(result.model).graph.node}
    assert operators <= {"Gemm", "MatMul", "Mul", "Identity", "Transpose", "Add"}


def test_what_is_computed_from_inputs_has_to_have_a_form(write_module, export):
    body = "return torch.matrix_exp(x @ x.mT + self.f.weight)"
    with pytest.raises(TrtconvError, match="has no form of linalg_matrix_exp"):
        export(f"{write_module(NET.format(body=body))}:Net", ["x:float32[N,4,4]"], "N=1:2:5")


def test_a_buffer_that_forward_writes_is_no_weight(write_module, export):
    body = "self.calls += 1\n        return x @ torch.matrix_exp(self.calls * 0.01)"
    with pytest.raises(TrtconvError):
        export(f"{write_module(NET.format(body=body))}:Net", ["x:float32[N,4]"], "N=1:2:5")
