"""A script that casts to half precision and compares with a decimal is refused: the file would not round the number."""

from __future__ import annotations

import pytest

from trtconv.core.errors import AccuracyError

NET = """
class Net(nn.Module):
    def forward(self, x):
        n = torch.zeros_like(x[:, 0])
        for i in range(x.shape[1]):
            v = x[:, i]
            n = n + ({compared})
        return n
"""
SPACE = "N=1:1:2 T=1:5:8"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("compared", "number"),
    {
        "v.half() > 0.3": "0.3", "v.to(torch.float16) == 0.1": "0.1", "v.to(torch.bfloat16) <= 0.3": "0.3",
        "v.half() >= 0.1 * i": "0.1", "0.7 < v.half()": "0.7", "v.half() * 0.3": "0.3",
    }.items(),
)  # fmt: skip
def test_a_decimal_is_refused(write_module, export, compared, number):
    path = write_module(NET.format(compared=compared))
    with pytest.raises(AccuracyError, match=f"computes with {number}, which a file would round otherwise") as caught:
        export(f"{path}:Net", ["x:float32[N,T]"], SPACE, exporter="torchscript")
    assert caught.value.where.startswith("net.py:")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("compared", ["v.half() > 0.5", "v.half().float() > 0.3", "(v > 0.3).half()"])
def test_what_a_half_holds_is_compared(write_module, export, compared):
    path = write_module(NET.format(compared=compared))
    export(f"{path}:Net", ["x:float32[N,T]"], SPACE, exporter="torchscript")


def test_halves_that_come_in_are_compared(write_module, export):
    path = write_module(NET.format(compared="v > 0.3").replace("torch.zeros_like(x[:, 0])", "x[:, 0] * 0.0"))
    export(f"{path}:Net", ["x:float16[N,T]"], SPACE, exporter="torchscript")
