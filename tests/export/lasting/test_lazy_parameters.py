"""Lazy layers: those that forward uses have their shapes after its first run, others never."""

import pytest

from trtconv.core.errors import InvalidRequestError

NETS = """
from torch import nn

class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.norm, self.more = nn.LazyLinear(3), nn.LazyBatchNorm1d(), nn.LazyLinear(5)

    def forward(self, x):
        return self.out(x)
"""


def test_parameters_without_a_shape_are_named(write_module, export):
    path = write_module(NETS)
    with pytest.raises(InvalidRequestError, match=r"no shape yet: norm\.weight, norm\.bias, .* and \d more$") as raised:
        export(f"{path}:Unused", ["x:float32[N,4]"], "N=1:2:4")
    assert "lazy layers" in raised.value.hint
