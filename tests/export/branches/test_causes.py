"""What the exporters' own errors do not say."""

import pytest

from trtconv.core.errors import TrtconvError

LOOKS_UP = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = {k: 1.0 + k for k in range(5)}

    def forward(self, x):
        return x * self.scales[min(x.shape[1] // 7, 4)]
"""
PACKS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.GRU(3, 2, batch_first=True)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.layer(packed)[1][-1]
"""


@pytest.mark.parametrize(
    ("text", "inputs", "cause"),
    [
        (LOOKS_UP, ["x:float32[2,T]"], "looks its size up in a dictionary"),
        (PACKS, ["x:float32[2,T,3]", "lengths:int64[2]=1:4"], "gets a packed sequence"),
    ],
)
def test_the_cause_is_named(write_module, export, text, inputs, cause):
    path = write_module(text)
    with pytest.raises(TrtconvError, match=cause):
        export(f"{path}:Net", inputs, "T=4:5:40")
