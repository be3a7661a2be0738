"""Matching, features and enhancement of kornia."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from networks.network import Network

if TYPE_CHECKING:
    from torch import nn

REQUIREMENTS = ("kornia==0.9.0", "kornia_rs", "packaging")
GRAY = ("x:float32[N,1,H,W]=0:1",)
PATCH = ("x:float32[N,1,32,32]=0:1",)


def _of(module: str, name: str, **options: Any) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import importlib

        network: nn.Module = getattr(importlib.import_module(module), name)(**options)
        return network

    return make


NETWORKS = (
    Network("hardnet", _of("kornia.feature", "HardNet", pretrained=False), PATCH, "N=1:4:16"),
    Network("hynet", _of("kornia.feature", "HyNet", pretrained=False), PATCH, "N=1:4:16"),
    Network("tfeat", _of("kornia.feature", "TFeat", pretrained=False), PATCH, "N=1:4:16"),
    Network("sosnet", _of("kornia.feature", "SOSNet", pretrained=False), PATCH, "N=1:4:16"),
    Network(
        "dexined",
        _of("kornia.filters.dexined", "DexiNed", pretrained=False),
        ("x:float32[N,3,H,W]=0:1",),
        "N=1:1:2 H=64:64:96%16 W=64:96:96%16",
    ),
    Network(
        "mobile_vit",
        _of("kornia.models.vit_mobile", "MobileViT", mode="xxs", patch_size=(2, 2)),
        ("x:float32[N,3,64,64]",),
        "N=1:1:4",
    ),
    Network("harris", _of("kornia.feature", "CornerHarris", k=0.04), GRAY, "N=1:1:2 H=24:32:48 W=24:40:48", plain=True),
    Network(
        "canny",
        _of("kornia.filters", "Canny", hysteresis=False),
        ("x:float32[N,3,H,W]=0:1",),
        "N=1:1:2 H=24:32:48 W=24:40:48",
        plain=True,
    ),
)
