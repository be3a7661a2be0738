"""Decoders of segmentation-models-pytorch over small encoders."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from networks.network import Network
from networks.packages.timm import REQUIREMENTS as TIMM

if TYPE_CHECKING:
    from torch import nn

REQUIREMENTS = ("segmentation-models-pytorch==0.6.0", *TIMM)
PIXELS = "N=1:1:2 H=64:96:128%32 W=64:128:160%32"


def _of(decoder: str, encoder: str = "resnet18", **options: object) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import segmentation_models_pytorch as smp

        module: nn.Module = smp.create_model(decoder, encoder_name=encoder, encoder_weights=None, classes=3, **options)
        return module

    return make


# It pools the smallest map three times more.
LARGER = "N=1:1:2 H=256:256:320%32 W=256:288:320%32"
DECODERS = ("unet", "unetplusplus", "manet", "linknet", "fpn", "pspnet", "pan", "deeplabv3", "deeplabv3plus", "upernet")

NETWORKS = (
    *(Network(d, _of(d), space=LARGER if d == "pan" else PIXELS) for d in DECODERS),
    Network("unet_scse", _of("unet", decoder_attention_type="scse"), space=PIXELS),
    Network("unet_mobilenet", _of("unet", "mobilenet_v2"), space=PIXELS),
    Network("unet_efficientnet", _of("unet", "efficientnet-b0"), space=PIXELS),
    Network("segformer_mit_b0", _of("segformer", "mit_b0"), space=PIXELS),
    Network("unet_mit_b0", _of("unet", "mit_b0"), space=PIXELS),
)
