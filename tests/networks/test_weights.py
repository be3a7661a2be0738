"""Networks that would compute a constant, made to compute something."""

import torch
from torch import nn

from networks.torchvision_operators import suppress
from networks.weights import enliven, settled


class Idle(nn.Module):
    """A head of zeros behind a layer scale that lets nothing through."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)
        self.scale = nn.Parameter(torch.full((4,), 1e-6))
        self.head = nn.Linear(4, 2)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.norm.weight)

    def forward(self, x):
        y = self.norm(self.conv(x)) * self.scale[:, None, None]
        return self.head(y.mean((2, 3)))


def test_no_part_is_idle_any_more():
    torch.manual_seed(0)
    module, x = Idle().eval(), torch.randn(5, 3, 8, 8)
    assert module(x).std(0).max() == 0
    module = settled(enliven(module), (x,), {})
    outputs = module(x)
    assert outputs.std(0).min() > 1e-3
    assert not any(p._forward_pre_hooks for p in module.modules())
    torch.testing.assert_close(module(x), outputs, rtol=0, atol=0)
    inputs_of_norm = module.conv(x)
    torch.testing.assert_close(module.norm.running_mean, inputs_of_norm.mean((0, 2, 3)))


def test_a_norm_that_starts_near_zero_passes_what_small_weights_give():
    torch.manual_seed(0)
    conv, norm, x = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), torch.randn(5, 3, 8, 8)
    nn.init.normal_(conv.weight, std=1e-3)
    nn.init.normal_(norm.weight, std=1e-2)
    module = settled(enliven(nn.Sequential(conv, norm).eval()), (x,), {})
    assert module(x).std((0, 2, 3)).min() > 0.1


def test_suppression():
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 10, 5]])
    scores = torch.tensor([0.5, 0.9, 0.1, 0.4])
    # 0 and 1 share 81 of 119; 3 shares 36 of 114 with 1.
    assert suppress(boxes, scores, 0.5).tolist() == [1, 3, 2]
    assert suppress(boxes, scores, 0.3).tolist() == [1, 2]
    assert suppress(boxes[:0], scores[:0], 0.5).tolist() == []
