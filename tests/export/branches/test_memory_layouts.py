"""How a tensor lies in memory is no condition of a trace."""

import pytest
import torch
from torch import nn
from torch.export import Dim

from trtconv.export.branches.memory_layouts import without_layout_guards


class Unpadded(nn.Module):
    """Cut to its own size: contiguous at multiples of eight alone."""

    def forward(self, x):
        padded = nn.functional.pad(x, (0, -x.shape[-1] % 8))
        return padded[..., : x.shape[-1]].contiguous() * 2


def traced(x):
    return torch.export.export(Unpadded(), (x,), dynamic_shapes=({1: Dim("W", min=9, max=40)},), strict=False)


def test_a_cut_that_is_contiguous_at_some_sizes_is_traced_for_all():
    with pytest.raises(Exception, match="Constraints violated"):
        traced(torch.randn(3, 16))
    with without_layout_guards():
        program = traced(torch.randn(3, 16))
    for width in (9, 16, 23):
        x = torch.randn(3, width)
        torch.testing.assert_close(program.module()(x), Unpadded()(x))


def test_the_functions_are_put_back():
    before = torch.Tensor.contiguous
    with without_layout_guards():
        assert torch.Tensor.contiguous is not before
    assert torch.Tensor.contiguous is before
