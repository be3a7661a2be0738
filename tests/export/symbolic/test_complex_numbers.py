"""Functions of complex numbers that exporters have for real ones alone, and what has no form at all."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
import torch

from trtconv.core.errors import TrtconvError
from trtconv.core.requests import ModuleSource
from trtconv.export.module.operator_lines import lacking_operator
from trtconv.export.module.source import load_module
from trtconv.export.symbolic import sizes
from trtconv.export.symbolic.complex_numbers import parts as complex_parts

HEAD = "class Net(nn.Module):\n    def forward(self, x):\n        z = torch.fft.rfft(x)\n"
LINES = {
    "a mean": "torch.view_as_real(z.mean(1))",
    "directions": "torch.view_as_real(torch.sgn(z * (x[:, :1] > 0)))",
    "padded": "torch.view_as_real(F.pad(z, (1, 2))), F.pad(z.unsqueeze(1), (1, 1), mode='reflect').abs()",
    "a diagonal": "(z[:, :, None] @ z[:, None]).diagonal(1, -2, -1).abs(), z[:, None].diagonal().real",
    "times i": "torch.view_as_real(1j * z)",
    "divided by zeros": "torch.view_as_real(torch.complex(x, 2 * x - 1) / (x[:, :1] - x[:, :1]))",
    "chosen": "torch.where(x[:, :1] > 0, z, 1 - 2j).abs(), z.masked_fill(z.abs() < 1, 0).real",
    "running sums": "z.cumsum(1).abs()",
    "laid out": "z.repeat(1, 2).imag, torch.stack([z, z], 1).chunk(2, 1)[1].imag, torch.outer(z[0], z[0]).triu().imag",
    "powers": "((z / 9) ** 2).real, (z / 9).pow(3).real, (z + 3).pow(-1).imag, (z / 9).square().imag",
    "a power of a fraction": "(z / 9 + 1j).pow(1.7).imag",
    "numbers to powers": "((0.9 + 0.1j) ** torch.arange(x.shape[1])).real, torch.pow(1 + 1j, x).real",
    "roots": "torch.view_as_real(z.sqrt()), torch.view_as_real(z.conj().sqrt()), (z + 9).rsqrt().imag",
    "logarithms": "(z + 9).log().real, (z + 1j).log2().real, (z + 1j).log10().real",
    "angles": "z.angle(), torch.atan2(z.imag, z.real), z.conj()[:, 1:2].angle()",
    "waves": "torch.view_as_real((z * 0.1).sin()), torch.view_as_real((z * 0.1).cos())",
    "norms and spread": "z.norm(dim=1), torch.linalg.vector_norm(z, dim=1), z.var(1), z.std(1)",
    "questions": "z.isnan(), z.isinf(), z.isfinite()",
    "layers": "F.linear(z[:, :3], torch.ones(2, 3, dtype=torch.complex64), z[0, :2]).imag, "
    "torch.bmm(z[:, None] / 9, z[..., None]).real, F.conv1d(z[:, None], torch.full((2, 1, 2), 1 + 2j), z[0, :2]).imag",
    "vectors": "torch.vdot(z[0], z[0]).real, torch.dot(z[0], z[0]).imag, torch.addcmul(z, z, z, value=2).imag",
    "scattered": "z.scatter(1, (x[:, :1] > 0).long(), 2j).imag, z.gather(1, (x[:, :1] > 0).long()).real",
    "in place": "z.clone().masked_fill_(z.abs() < 1, 2).real, z.clone().fill_(1j).imag",
    "equal": "(z * 0 == 0j), (z != z.conj())[:, 1:2], z[:, :1] == x.sum(1, keepdim=True) * 0 + 3",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", LINES)
def test_a_file_computes_with_complex_numbers(write_module, export, tmp_path, name):
    path = write_module(f"{HEAD}        return {LINES[name]}\n")
    export(f"{path}:Net", ["x:float32[N,T]"], "N=1:1:2 T=5:9:12", exporter="dynamo")
    session = ort.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    module = load_module(ModuleSource(f"{path}:Net", base=path.parent))
    for size in (5, 8):
        x = torch.randn(2, size, generator=torch.Generator().manual_seed(size))
        outputs = module(x)
        expected = outputs if isinstance(outputs, tuple) else (outputs,)
        for value, tensor in zip(session.run(None, {"x": x.numpy()}), expected, strict=True):
            np.testing.assert_allclose(value, tensor.numpy(), atol=3e-6)


def test_directions_are_those_of_torch():
    z = torch.tensor([3 + 4j, 0j, -2 + 0j, 1e-30j], dtype=torch.complex64)
    torch.testing.assert_close(complex_parts.direction(lambda *_: NotImplemented)(torch.sgn, z), torch.sgn(z))


@pytest.mark.parametrize("value", [None, 2.5])
def test_a_complex_tensor_is_padded_by_a_number(value):
    z = torch.randn(2, 3, dtype=torch.complex64)
    pad = torch.nn.functional.pad
    padded = complex_parts.pad(sizes.pad)(pad, z, (1, 2), "constant", value)
    assert torch.equal(padded, pad(z, (1, 2), "constant", value or 0.0))


def test_all_elements_are_dropped(write_module, export, tmp_path):
    path = write_module("class Net(nn.Module):\n    def forward(self, x):\n        return F.dropout(x, 1.0) + 1\n")
    export(f"{path}:Net", ["x:float32[N,3]"], "N=1:2:4")
    (value,) = ort.InferenceSession(str(tmp_path / "out" / "model.onnx")).run(None, {"x": np.ones((2, 3), np.float32)})
    np.testing.assert_array_equal(value, np.ones((2, 3), np.float32))


def test_a_sum_of_halves_is_a_half_beside_a_flag(write_module, export, tmp_path):
    path = write_module("class Net(nn.Module):\n    def forward(self, x):\n        return x.sum(1), x + True\n")
    export(f"{path}:Net", ["x:float16[N,3]"], "N=1:2:4", exporter="dynamo")
    x = np.array([[1, 2048, 2]], np.float16)
    total, more = ort.InferenceSession(str(tmp_path / "out" / "model.onnx")).run(None, {"x": x})
    assert total.dtype == more.dtype == np.float16
    np.testing.assert_array_equal(total, [np.float16(2051)])


REFUSED = {
    "F.interpolate(x, scale_factor=2, mode='bilinear')": ("x:uint8[N,3,4,5]", "in fixed point", "resize floats"),
    "torch.lgamma(x.abs() + 1)": ("x:float32[N,3]", "no form of lgamma", "rewrite that line"),
    "torch.gcd(x, x + 1)": ("x:int64[N,3]=0:9", "no form of gcd", "rewrite that line"),
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_has_no_form_is_named_with_its_line(write_module, export, line):
    tensor, message, hint = REFUSED[line]
    path = write_module(f"class Net(nn.Module):\n    def forward(self, x):\n        return {line}\n")
    with pytest.raises(TrtconvError) as raised:
        export(f"{path}:Net", [tensor], "N=1:2:4")
    assert message in raised.value.message
    assert hint in raised.value.hint
    assert raised.value.where is not None


@pytest.mark.slow
def test_a_view_that_fails_at_some_sizes_is_a_decision_by_size(write_module, export):
    body = "        try: return x.view(-1, 4).sum(-1)\n        except RuntimeError: return x[:, 0]\n"
    path = write_module(f"class Net(nn.Module):\n    def forward(self, x):\n{body}")
    result = export(f"{path}:Net", ["x:float32[2,T]"], "T=3:9:20")
    session = ort.InferenceSession(str(result.model))
    for size in range(3, 21):
        x = np.random.default_rng(size).normal(size=(2, size)).astype(np.float32)
        expected = x.reshape(-1, 4).sum(-1) if size % 2 == 0 else x[:, 0]
        np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, rtol=1e-5, atol=1e-6)


def test_operators_are_read_from_errors_of_torch():
    assert lacking_operator("No ONNX function found for <OpOverload(op='aten.eq', overload='Tensor')>.") == "eq"
    assert lacking_operator("Exporting the operator 'aten::complex' to ONNX opset version 17") == "complex"
    failed = "Error when calling function 'TracedOnnxFunction(<function aten_histc at 0x7f>)'"
    assert lacking_operator(failed) == "histc"
    assert lacking_operator("Constraints violated (T)!") is None
