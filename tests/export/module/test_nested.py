"""A TransformerEncoder that packs its batch: the zeros at padded positions are not part of any graph."""

import pytest

pytest.importorskip("torch")

from trtconv.core.errors import AccuracyError

ENCODER = """
class Padded(nn.Module):
    def __init__(self, nested):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 1, enable_nested_tensor=nested)

    def forward(self, x, lengths):
        return self.body(x, src_key_padding_mask=torch.arange(x.shape[1])[None] >= lengths[:, None])


def make(nested):
    torch.manual_seed(0)
    return Padded(nested)


def sample(dims, generator):
    n, t = dims["N"], dims["T"]
    return torch.randn(n, t, 8, generator=generator), torch.randint(1, t + 1, (n,), generator=generator)
"""
INPUTS = ["x:float32[N,T,8]", "lengths:int64[N]"]


def test_the_error_says_how_to_build_the_encoder(write_module, export):
    path = write_module(ENCODER)
    with pytest.raises(AccuracyError) as caught:
        export(f"{path}:make", INPUTS, "N=1:2:3 T=4:6:9", args={"nested": True}, sample=f"{path}:sample")
    assert "'body' returns zeros at padded positions" in (caught.value.hint or "")
    result = export(f"{path}:make", INPUTS, "N=1:2:3 T=4:6:9", args={"nested": False}, sample=f"{path}:sample")
    assert all(c.passed for c in result.comparisons)
