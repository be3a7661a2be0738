"""Losses that torch.onnx writes otherwise than torch computes them."""

from __future__ import annotations

from typing import Any

from trtconv.export.symbolic.arithmetic.numerics import log1p, logsigmoid


def cross_entropy(
    func: Any,
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """Classes or probabilities as the target; with smoothed labels (1 - e) nll + e / C sum_c -log p_c.

    Logits are [N, C, ...] or [C], classes [N, ...] or one.

    TensorRT has no SoftmaxCrossEntropyLoss. ATen, LossNLL.cpp, `cross_entropy_loss_label_smoothing` and
    `cross_entropy_loss_prob_target`: the mean is over the weights of the classes that are meant.
    """
    import torch
    import torch.nn.functional as F

    probabilities = target.is_floating_point()
    if size_average is not None or reduce is not None:
        return NotImplemented
    axis = 1 if input.dim() > 1 else 0
    classes = input.shape[axis]
    logarithms = F.log_softmax(input, axis)
    shape = [1] * axis + [-1] + [1] * (input.dim() - axis - 1)
    weighted = logarithms if weight is None else logarithms * weight.reshape(shape)
    if probabilities:
        meant = target * (1.0 - label_smoothing) + label_smoothing / classes if label_smoothing else target
        loss = -(weighted * meant).sum(axis)
        return reduced(loss, reduction)
    plain = nll_loss(func, logarithms, target, weight, ignore_index=ignore_index, reduction=reduction)
    if not label_smoothing:
        return plain
    ignored = target == ignore_index
    smooth = -weighted.sum(axis)
    smooth = torch.where(ignored, torch.zeros_like(smooth), smooth)
    if reduction == "sum":
        smooth = smooth.sum()
    elif reduction == "mean":
        counted = (~ignored).to(input.dtype)
        if weight is not None:
            counted = counted * weight[torch.where(ignored, torch.zeros_like(target), target)]
        smooth = smooth.sum() / counted.sum()
    return (1.0 - label_smoothing) * plain + smooth * (label_smoothing / classes)


def nll_loss(
    func: Any,
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    ignore_index: int = -100,
    reduce: Any = None,
    reduction: str = "mean",
) -> Any:
    """-w[y] log p[y] by a gather, of logarithms [N, C, ...] or [C]; TensorRT has no NegativeLogLikelihoodLoss.

    ATen, LossNLL.cpp: what is ignored counts for nothing, and the mean is over the weights.
    """
    import torch

    if size_average is not None or reduce is not None or reduction not in ("none", "mean", "sum"):
        return NotImplemented
    axis = 1 if input.dim() > 1 else 0
    ignored = target == ignore_index
    classes = torch.where(ignored, torch.zeros_like(target), target)
    loss = -input.gather(axis, classes.unsqueeze(axis)).squeeze(axis)
    counted = (~ignored).to(input.dtype)
    if weight is not None:
        counted = counted * weight[classes]
        loss = loss * weight[classes]
    loss = torch.where(ignored, torch.zeros_like(loss), loss)
    return loss.sum() / counted.sum() if reduction == "mean" else reduced(loss, reduction)


def binary_cross_entropy_with_logits(
    func: Any,
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: Any = None,
    reduce: Any = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Any:
    """(1 - y) x - w log sigmoid(x) with w = 1 + (pos_weight - 1) y, of tensors of one shape.

    The exporters take the logarithm of a sigmoid, which is log 0 from -104 on, and write the 0 of the other side as
    0 times infinity. ATen, Loss.cpp, `binary_cross_entropy_with_logits`.
    """
    if size_average is not None or reduce is not None or reduction not in ("none", "mean", "sum"):
        return NotImplemented
    likely = logsigmoid(func, input)
    if pos_weight is not None:
        likely = likely * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * input - likely
    if weight is not None:
        loss = loss * weight
    return reduced(loss, reduction)


def soft_margin_loss(
    func: Any, input: Any, target: Any, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Any:
    """log1p(exp(-y x)), of which the exporters write log(1 + exp(-y x)): that is 0 from 17 on.

    ATen, Loss.cpp, `soft_margin_loss_out`.
    """
    import torch

    if size_average is not None or reduce is not None or reduction not in ("none", "mean", "sum"):
        return NotImplemented
    loss = log1p(func, torch.exp(-target * input))
    return reduced(loss, reduction)


def reduced(loss: Any, reduction: str) -> Any:
    """The loss of each element, or their mean or sum."""
    return loss.sum() if reduction == "sum" else loss.mean() if reduction == "mean" else loss
