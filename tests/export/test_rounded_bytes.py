"""Pictures of bytes that are resized and rounded to bytes: those half-way between two fall either way."""

import pytest

BYTES = """
class Net(nn.Module):
    def forward(self, x):
        y = F.interpolate(x.float(), size=(6, 6), mode="{mode}", align_corners=False)
        return y.round().clamp(0, 255).to(torch.uint8)
"""


@pytest.mark.parametrize(("mode", "half_way"), [("bilinear", True), ("bicubic", False)])
def test_bytes_in_and_bytes_out(export, write_module, mode, half_way):
    path = write_module(BYTES.format(mode=mode))
    result = export(f"{path}:Net", ["x:uint8[N,3,H,W]"], "N=1:2:3 H=12:16:40 W=12:16:40")
    notes = [n for n in result.notes if "'output' lie between two whole numbers" in n and "may be off by one" in n]
    assert bool(notes) is half_way
