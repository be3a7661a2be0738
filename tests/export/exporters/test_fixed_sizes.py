"""An error about a size that was made a number names the user's line that did it."""

from __future__ import annotations

import pytest
import torch
from torch._dynamo.exc import UserError
from torch.export import Dim

from trtconv.export.branches.guards import requirements
from trtconv.export.exporters.tracing.program import fixing_lines


@pytest.mark.parametrize("fixes", [True, False])
def test_the_line_that_fixes_a_size(fixes):
    class Net(torch.nn.Module):
        def forward(self, x):
            y = x * 2
            return y + (int(x.shape[0]) if fixes else x.shape[0])

    def export():
        return torch.export.export(Net(), (torch.ones(5, 4),), dynamic_shapes=({0: Dim("N", min=2, max=9)},))

    with fixing_lines() as lines:
        if fixes:
            with pytest.raises(UserError, match="Constraints violated"):
                export()
        else:
            export()
    assert [line - Net.forward.__code__.co_firstlineno for _, line in lines[:1]] == ([2] if fixes else [])


def test_the_line_is_no_requirement():
    text = 'Constraints violated (N)!\nSuggested fixes:\n  N = 5\n  File "a=b.py", line 7, in forward'
    assert requirements(text) == "the module was traced for some sizes only: N must be 5"


def test_without_a_fix_the_dims_are_named() -> None:
    text = 'Constraints violated (8*T_unit, N)! For more information, run with TORCH_LOGS="+dynamic".'
    assert requirements(text) == "the module was traced for some sizes of N, T only"
