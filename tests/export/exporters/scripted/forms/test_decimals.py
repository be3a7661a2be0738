"""Whole numbers where a script wants decimals, and the exponent that a script's `norm` has to name."""

import linecache

import pytest
import torch
import torch.nn.functional as F

from trtconv.export.exporters.scripted.forms.readable import readable_forms
from trtconv.export.exporters.scripted.refused_scripts import why_no_script


def distances(x):
    return torch.cdist(x, x + 1, p=1)


def with_epsilon(x):
    return F.layer_norm(x, (3,), eps=1) + F.leaky_relu(x, -1)


def dropped(x):
    return F.dropout(x, 0, False) + F.elu(x, 2) * x.dim()


def length(x):
    return x.norm(dim=-1, keepdim=True) + x.norm(2, -1, True) + torch.norm(x, dim=-1, keepdim=True)


@pytest.mark.parametrize("function", [distances, with_epsilon, dropped, length])
def test_a_script_computes_it(function):
    with readable_forms():
        script = torch.jit.script(function)
    x = torch.linspace(-1, 1, 12).reshape(2, 2, 3)
    torch.testing.assert_close(script(x), function(x))


def unknown(x):
    return torch.cdist(x, "euclid")


def test_the_line_is_told_and_no_signature():
    linecache.checkcache()
    with readable_forms(), pytest.raises(RuntimeError) as raised:
        torch.jit.script(unknown)
    reason = why_no_script(raised.value)
    assert reason.startswith('`return torch.cdist(x, "euclid")`'), reason
    assert not reason.endswith(":")
