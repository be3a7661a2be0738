"""The networks that are timed beside torch: timm's, with weights that any machine can draw again."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from benchmarks.precision.recipes import LARGE, Drawn

if TYPE_CHECKING:
    from torch import nn

# Short names, and what timm calls them.
NETWORKS = {
    "convnext_t": "convnext_tiny",
    "vit_s": "vit_small_patch16_224",
    "vit_b": "vit_base_patch16_224",
    "swin_t": "swin_tiny_patch4_window7_224",
    "resnet50": "resnet50",
    "efficientnet_b0": "efficientnet_b0",
    "mobilenetv3_l": "mobilenetv3_large_100",
    "regnety_032": "regnety_032",
    "deit3_s": "deit3_small_patch16_224",
    "mixer_b": "mixer_b16_224",
    "resnet18": "resnet18",
    "resnext50": "resnext50_32x4d",
    "regnetx_032": "regnetx_032",
    "densenet121": "densenet121",
    "vgg16": "vgg16",
    "mobilenetv2": "mobilenetv2_100",
    "hrnet_w18": "hrnet_w18_small_v2",
    "pvt_v2_b1": "pvt_v2_b1",
    "poolformer_s12": "poolformer_s12",
    "mobilevit_s": "mobilevit_s",
}
INPUT = "x:float32[N,3,224,224]=-2:2"
SIZE = (3, 224, 224)


def drawn_weights(network: nn.Module) -> dict[str, Drawn]:
    """A normal distribution of variance 1 / fan-in for every large matrix and kernel, by the name of its parameter."""
    weights = {}
    for name, parameter in network.named_parameters():
        shape = tuple(parameter.shape)
        if parameter.ndim >= 2 and parameter.numel() > LARGE:
            weights[name] = Drawn(name, shape, math.sqrt(1.0 / math.prod(shape[1:])))
    return weights


def make(kind: str = "vit_s") -> nn.Module:
    """The network in eval mode; what is not drawn is as timm sets it, but for what hides a block: layer scales of 1e-6,
    and norms that begin with zeros.
    """
    import timm
    import torch

    torch.manual_seed(0)
    network: nn.Module = timm.create_model(NETWORKS[kind], pretrained=False).eval()
    parameters = dict(network.named_parameters())
    scales = ("gamma", "gamma_1", "gamma_2", "layer_scale1.scale", "layer_scale2.scale")
    for name, drawn in drawn_weights(network).items():
        parameters[name].data.copy_(torch.from_numpy(drawn.values()))
    for name, parameter in parameters.items():
        if name.endswith(scales) or (name.endswith("weight") and not parameter.any()):
            parameter.data.fill_(0.5)
    return network
