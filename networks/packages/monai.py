"""Medical networks of MONAI, in two and three dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from networks.network import Network

if TYPE_CHECKING:
    from torch import nn

REQUIREMENTS = ("monai==1.6.1", "einops")
FLAT = ("x:float32[N,1,H,W]",)
FLAT_SPACE = "N=1:1:2 H=64:96:128%32 W=64:96:160%32"
SOLID = ("x:float32[N,1,D,H,W]",)
SOLID_SPACE = "N=1:1:2 D=32:32:64%32 H=32:64:64%32 W=32:32:64%32"


def _of(name: str, **options: object) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        from monai.networks import nets

        module: nn.Module = getattr(nets, name)(**options)
        return module

    return make


IO = {"in_channels": 1, "out_channels": 2}
SMALL = {"channels": (8, 16, 32), "strides": (2, 2), "num_res_units": 1}

NETWORKS = (
    Network("unet_2d", _of("UNet", spatial_dims=2, **IO, **SMALL), FLAT, FLAT_SPACE),
    Network("unet_3d", _of("UNet", spatial_dims=3, **IO, **SMALL), SOLID, SOLID_SPACE),
    Network(
        "attention_unet",
        _of("AttentionUnet", spatial_dims=2, **IO, channels=(8, 16, 32), strides=(2, 2)),
        FLAT,
        FLAT_SPACE,
    ),
    Network("basic_unet", _of("BasicUNet", spatial_dims=2, **IO, features=(8, 8, 16, 16, 32, 8)), FLAT, FLAT_SPACE),
    Network(
        "basic_unet_plus_plus",
        _of("BasicUNetPlusPlus", spatial_dims=2, **IO, features=(8, 8, 16, 16, 32, 8)),
        FLAT,
        FLAT_SPACE,
    ),
    Network(
        "dyn_unet",
        _of(
            "DynUNet",
            spatial_dims=3,
            **IO,
            kernel_size=[3, 3, 3],
            strides=[1, 2, 2],
            upsample_kernel_size=[2, 2],
            filters=[8, 16, 32],
        ),
        SOLID,
        SOLID_SPACE,
    ),
    Network(
        "seg_res_net",
        _of("SegResNet", spatial_dims=3, **IO, init_filters=8, blocks_down=(1, 1, 1), blocks_up=(1, 1)),
        SOLID,
        SOLID_SPACE,
    ),
    Network(
        "seg_res_net_vae_free",
        _of("SegResNetDS", spatial_dims=2, **IO, init_filters=8, blocks_down=(1, 1, 1)),
        FLAT,
        FLAT_SPACE,
    ),
    Network("vnet", _of("VNet", spatial_dims=3, **IO), SOLID, "N=1:1:1 D=32:32:64%16 H=32:32:48%16 W=32:48:48%16"),
    Network("high_res_net", _of("HighResNet", spatial_dims=2, **IO), FLAT, FLAT_SPACE),
    Network(
        "unetr",
        _of("UNETR", **IO, img_size=(32, 32, 32), feature_size=8, hidden_size=48, mlp_dim=96, num_heads=3),
        ("x:float32[N,1,32,32,32]",),
        "N=1:1:2",
    ),
    Network("swin_unetr", _of("SwinUNETR", **IO, feature_size=12, spatial_dims=2), FLAT, FLAT_SPACE),
    Network(
        "densenet_3d",
        _of("DenseNet", spatial_dims=3, **IO, init_features=8, growth_rate=8, block_config=(2, 2)),
        SOLID,
        SOLID_SPACE,
    ),
    Network(
        "autoencoder", _of("AutoEncoder", spatial_dims=2, **IO, channels=(8, 16), strides=(2, 2)), FLAT, FLAT_SPACE
    ),
    Network("flexible_unet", _of("FlexibleUNet", **IO, backbone="efficientnet-b0"), FLAT, FLAT_SPACE),
)
