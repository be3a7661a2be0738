"""Random weights that let every part of a network show in its outputs.

Constructors start many parts at zero (heads, residual branches, layer scales of 1e-6, relative positions), so that an
untrained network computes a constant, or an identity, and equality of outputs proves nothing. Batch norms with running
statistics of 0 and 1 let the values of a deep network grow or vanish.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import nn

# A parameter all of whose elements are equal and below this is taken for one that starts a part at zero.
NEGLIGIBLE = 0.11
SPREAD = 0.05
# Normalised to a variance of 1 at every layer, a deep random network amplifies rounding to the size of its outputs; a
# trained one does not.
CONTRACTION = 2.0


def enliven(module: nn.Module) -> nn.Module:
    """Give values to parameters that are all alike, and to batch norms the statistics of their first inputs."""
    import torch

    with torch.no_grad():
        for part in module.modules():
            for name, parameter in part.named_parameters(recurse=False):
                if parameter.is_floating_point() and parameter.numel() > 1:
                    _vary(parameter, "Norm" in type(part).__name__)
                    if "BatchNorm" in type(part).__name__ and name == "weight":
                        _lift(parameter)
    module.eval()
    for part in module.modules():
        if _keeps_statistics(part):
            part.register_forward_pre_hook(_settle)
    return module


def _vary(parameter: torch.Tensor, normalises: bool) -> None:
    """Give a parameter whose elements are all equal other values, of the size that a trained one has."""
    import torch

    first = float(parameter.flatten()[0])
    if not bool((parameter == first).all()):
        return
    if parameter.dim() > 1 and first == 0:
        torch.nn.init.normal_(parameter, std=(parameter.shape[0] / parameter.numel()) ** 0.5)
        return
    base = first
    if 0 < abs(first) < NEGLIGIBLE:
        base = 0.2
    elif normalises and first == 0:
        # A norm's factor or its bias: which of them it is, only its name would tell.
        base = 0.5
    parameter.copy_(base + torch.randn_like(parameter) * SPREAD)


def _lift(factor: torch.Tensor) -> None:
    """Give a norm's factor that starts near zero, at random values, the size that a trained one has."""
    if float(factor.abs().max()) < NEGLIGIBLE:
        factor.add_(0.5)


def _keeps_statistics(part: nn.Module) -> bool:
    import torch

    mean = getattr(part, "running_mean", None)
    return isinstance(mean, torch.Tensor) and mean.dim() == 1 and bool((mean == 0).all())


def _settle(part: Any, inputs: tuple[torch.Tensor, ...]) -> None:
    """Take mean and variance of the first input for the running ones; later calls change nothing."""
    if getattr(part, "_trtconv_settled", False):
        return
    x = inputs[0].detach()
    axes = [a for a in range(x.dim()) if a != 1]
    part.running_mean.copy_(x.mean(axes))
    variance = x.var(axes, unbiased=False)
    # For channels that are constant; small beside the others', or what small weights give would be lost beside it.
    part.running_var.copy_(CONTRACTION * variance + 1e-3 * variance.mean().clamp(max=1.0))
    part._trtconv_settled = True


def settled(module: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> nn.Module:
    """Run the module once so that its batch norms take their statistics, then remove the hooks."""
    import torch

    with torch.no_grad():
        module(*arguments, **keywords)
    for part in module.modules():
        for key, hook in list(part._forward_pre_hooks.items()):
            if hook is _settle:
                del part._forward_pre_hooks[key]
        part.__dict__.pop("_trtconv_settled", None)
    return module
