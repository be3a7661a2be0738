"""Reductions and activations in half precision, which torch computes in FP32 inside."""

import numpy as np
import onnx
import pytest
import torch
import torch.nn.functional as F

from trtconv.export.symbolic.mode import symbolic_functions

CALLS = {
    "mean": lambda h: h.mean(1),
    "norm": lambda h: h.norm(dim=1),
    "softmax": lambda h: h.softmax(-1),
    "pool": lambda h: F.adaptive_avg_pool1d(h.mT, 1),
    "silu": lambda h: F.silu(h),
    "layer_norm": lambda h: F.layer_norm(h, h.shape[-1:]),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", CALLS)
def test_what_is_traced_gives_what_torch_gives(name: str, dtype: torch.dtype) -> None:
    h = (torch.randn(2, 700, 4, generator=torch.Generator().manual_seed(0)) + 100).to(dtype)
    with symbolic_functions():
        result = CALLS[name](h)
    assert result.dtype == dtype
    torch.testing.assert_close(result, CALLS[name](h), rtol=0.01, atol=1e-3)
    assert result.isfinite().all()


FUSED = {
    "addcmul": lambda h, g: torch.addcmul(h, g, g),
    "addcmul in place": lambda h, g: h.clone().addcmul_(g, g, value=0.25),
    "addcdiv": lambda h, g: torch.addcdiv(h, h, g),
    "lerp in place": lambda h, g: h.clone().lerp_(g, 0.3),
    "lerp by a tensor": lambda h, g: torch.lerp(h, g, g.abs()),
    "a sum": lambda h, g: h.clone().add_(g, alpha=0.3),
    "rsqrt": lambda h, g: torch.rsqrt(h.abs()),
    "softsign": lambda h, g: F.softsign(h),
    "tanhshrink": lambda h, g: F.tanhshrink(h),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", FUSED)
def test_fused_functions_are_rounded_once(name: str, dtype: torch.dtype) -> None:
    # As many elements as torch's vector kernels take: the rest is computed otherwise.
    h, g = (torch.randn(2, 4096, generator=torch.Generator().manual_seed(0)) * 3).to(dtype)
    expected = FUSED[name](h, g)
    program = torch.export.export(_Calling(FUSED[name]), (h, g)).run_decompositions()
    # torch's `lerp` fuses a multiplication with a sum.
    assert (program.module()(h, g) != expected).float().mean() < 0.004


class _Calling(torch.nn.Module):
    """Calls a function as it is traced."""

    def __init__(self, function) -> None:
        super().__init__()
        self.function = function

    def forward(self, h, g):
        with symbolic_functions():
            return self.function(h, g)


def test_writing_into_the_input_stays_a_write() -> None:
    h = torch.randn(2, 5).half()
    with symbolic_functions():
        assert F.silu(h, inplace=True) is h


def test_a_file_adds_up_in_fp32(write_module, export):
    path = write_module("class Net(nn.Module):\n    def forward(self, x):\n        return x.half().mean(1).float()\n")
    result = export(f"{path}:Net", ["x:float32[N,T,4]"], "N=1:2:3 T=4:40:500")
    graph = onnx.shape_inference.infer_shapes(onnx.load(result.model)).graph
    types = {v.name: v.type.tensor_type.elem_type for v in graph.value_info}
    [mean] = [n for n in graph.node if n.op_type == "ReduceMean"]
    assert types[mean.input[0]] == onnx.TensorProto.FLOAT
    # By the definition of the operators, 2,000 times 100 is no number of FP16.
    x = np.full((1, 400, 4), 500.0, np.float32)
    from onnx.reference import ReferenceEvaluator

    [y] = ReferenceEvaluator(onnx.load(result.model)).run(None, {"x": x})
    np.testing.assert_array_equal(y, 500.0)
