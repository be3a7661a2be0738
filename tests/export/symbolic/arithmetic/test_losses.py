"""Cross entropy with smoothed labels and with probabilities as its target, of which ONNX has neither."""

import pytest
import torch
import torch.nn.functional as F

from trtconv.export.symbolic.arithmetic.losses import cross_entropy

LOGITS = torch.randn(5, 7, 3, generator=torch.Generator().manual_seed(0))
CLASSES = torch.tensor([[0, 3, 6], [3, 3, 3], [1, 2, 4], [5, 5, 0], [6, 3, 1]])
WEIGHT = torch.rand(7, generator=torch.Generator().manual_seed(1)) + 0.5


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("target", [CLASSES, LOGITS.flip(0).softmax(1)])
@pytest.mark.parametrize("smoothing", [0.0, 0.15])
def test_it_is_what_torch_computes(smoothing, target, weight, reduction):
    options = {"weight": weight, "reduction": reduction, "label_smoothing": smoothing}
    loss = cross_entropy(F.cross_entropy, LOGITS, target, **options)
    if smoothing == 0.0 and not target.is_floating_point():
        assert loss is NotImplemented
        return
    torch.testing.assert_close(loss, F.cross_entropy(LOGITS, target, **options))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_classes_that_are_ignored(weight, reduction):
    options = {"weight": weight, "reduction": reduction, "label_smoothing": 0.15, "ignore_index": 3}
    torch.testing.assert_close(
        cross_entropy(F.cross_entropy, LOGITS, CLASSES, **options), F.cross_entropy(LOGITS, CLASSES, **options)
    )


def test_logits_of_one_row():
    loss = cross_entropy(F.cross_entropy, LOGITS[0, :, 0], CLASSES[0, 1], label_smoothing=0.2)
    torch.testing.assert_close(loss, F.cross_entropy(LOGITS[0, :, 0], CLASSES[0, 1], label_smoothing=0.2))


def test_it_is_exported(write_module, export):
    write_module(
        """
class Loss(nn.Module):
    def forward(self, x, y):
        classes = F.cross_entropy(x.transpose(1, 2), y, label_smoothing=0.1, ignore_index=2)
        return classes, F.cross_entropy(x, x.softmax(1))
"""
    )
    result = export("net.py:Loss", ["x:float32[N,T,4]", "y:int64[N,T]=0:3"], "N=1:2:3 T=3:5:9")
    assert result.exporter == "dynamo"
