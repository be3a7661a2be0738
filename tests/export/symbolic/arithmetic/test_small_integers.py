"""Whole numbers of 8 and 16 bits and booleans, for which ONNX lacks operators, or has them in other types."""

import pytest

LINES = {
    "bytes": (
        "uint8",
        "return x.any(), x.all(1, keepdim=True), (x > 1).any(1), x.cumsum(1), x.cumsum(1, dtype=torch.uint8)",
    ),
    "products": ("int8", "y = x * 99; return y @ y.mT, torch.mm(x.mT, y), torch.matmul(y[:, None], x[..., None])"),
    "powers": ("int8", "y = x * 37; return y.square(), y ** 3, x.to(torch.uint8) ** 5, y.floor(), x.ceil().trunc()"),
    "int16": ("int16", "return (x * 9999).cumsum(1, dtype=torch.int16), x.cumsum(1)"),
    "of nothing": (
        "float32",
        "n = x.shape[1]; b = x > 0; none = b[:, n:]; return none.any(1), none.all(1), x[:, n - n // 2 * 2:].any(1)",
    ),
    "booleans": (
        "float32",
        "k = x > 0; s = k.sort(1, descending=True); return k.argsort(dim=1, stable=True), s.values, s.indices",
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", LINES)
def test_it_converts_and_is_equal(case, write_module, export):
    dtype, lines = LINES[case]
    head = "class Net(nn.Module):\n    def forward(self, x):\n"
    write_module(head + "".join(f"        {line.strip()}\n" for line in lines.split(";")))
    values = "" if dtype == "float32" else "=0:3"
    result = export("net.py:Net", [f"x:{dtype}[N,T]{values}"], "N=1:2:3 T=2:5:9")
    assert result.exporter == "dynamo"
