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


def test_the_cause_is_named(write_module, export):
    path = write_module(LOOKS_UP)
    with pytest.raises(TrtconvError, match="looks its size up in a dictionary"):
        export(f"{path}:Net", ["x:float32[2,T]"], "T=4:5:40")
