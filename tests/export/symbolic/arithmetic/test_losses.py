"""Cross entropy, which TensorRT lacks, with classes, smoothed labels and probabilities as its target."""

import pytest
import torch
import torch.nn.functional as F

from trtconv.export.symbolic.arithmetic.losses import (
    binary_cross_entropy_with_logits,
    cross_entropy,
    soft_margin_loss,
)

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
    torch.testing.assert_close(loss, F.cross_entropy(LOGITS, target, **options))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("smoothing", [0.0, 0.15])
def test_classes_that_are_ignored(smoothing, weight, reduction):
    options = {"weight": weight, "reduction": reduction, "label_smoothing": smoothing, "ignore_index": 3}
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


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("weight", [None, WEIGHT[:3]])
@pytest.mark.parametrize("pos_weight", [None, WEIGHT[3:6]])
def test_binary_cross_entropy_at_any_logit(pos_weight, weight, reduction):
    far = torch.tensor([[1e5, -1e5, 0.0], [-200.0, 200.0, -0.0], [3e38, -3e38, 1.0]])
    logits = torch.cat([LOGITS.reshape(-1, 3), far])
    target = (logits > 0.5).float()
    target[::4] = 0.3
    options = {"weight": weight, "reduction": reduction, "pos_weight": pos_weight}
    expected = F.binary_cross_entropy_with_logits(logits, target, **options)
    loss = binary_cross_entropy_with_logits(F.binary_cross_entropy_with_logits, logits, target, **options)
    torch.testing.assert_close(loss, expected)


def test_a_file_has_binary_cross_entropy_at_large_logits(write_module, export):
    """torch.onnx takes the logarithm of a sigmoid: an infinity from -104 on, and NaN where 0 times it is added."""
    path = write_module(
        "class Net(nn.Module):\n    def forward(self, x):\n        y = (x > 0.5).float()\n"
        "        return F.binary_cross_entropy_with_logits(x, y, reduction='none')\n"
    )
    import onnxruntime

    result = export(f"{path}:Net", ["x:float32[N,5]"], "N=1:2:4")
    x = torch.tensor([[-1e5, -200.0, 0.2, 200.0, 3e38]])
    [loss] = onnxruntime.InferenceSession(result.model).run(None, {"x": x.numpy()})
    expected = F.binary_cross_entropy_with_logits(x, (x > 0.5).float(), reduction="none")
    torch.testing.assert_close(torch.from_numpy(loss), expected)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_the_tail_of_a_soft_margin(reduction):
    x, y = torch.tensor([-90.0, -3.0, 0.0, 3.0, 12.0, 16.0, 17.0, 20.0, 80.0]), torch.ones(9)
    for inputs in ((x, y), (x[1:], -y[1:]), (x[1:], y[1:])):
        loss = soft_margin_loss(F.soft_margin_loss, *inputs, reduction=reduction)
        torch.testing.assert_close(loss, F.soft_margin_loss(*inputs, reduction=reduction), rtol=3e-6, atol=0.0)
