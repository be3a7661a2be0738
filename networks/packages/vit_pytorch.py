"""Variants of vision transformers of vit-pytorch, small."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from networks.network import Network, batch_only

if TYPE_CHECKING:
    from torch import nn

REQUIREMENTS = ("vit-pytorch==1.26.11", "einops", "torchvision==0.28.0", "pillow")
BASE = {"image_size": 64, "patch_size": 16, "num_classes": 10, "dim": 64, "depth": 2, "heads": 2, "mlp_dim": 96}
SQUARE = {"inputs": ("x:float32[N,3,64,64]",), "space": "N=1:2:6"}


def _of(module: str, name: str, **options: object) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        network: nn.Module = getattr(importlib.import_module(f"vit_pytorch.{module}"), name)(**options)
        return network

    return make


def _without(*names: str) -> dict[str, object]:
    return {n: v for n, v in BASE.items() if n not in names}


NETWORKS = (
    Network("vit", _of("vit", "ViT", **BASE), **SQUARE),
    Network("simple_vit", _of("simple_vit", "SimpleViT", **BASE), **SQUARE),
    Network("deepvit", _of("deepvit", "DeepViT", **BASE), **SQUARE),
    Network("cait", _of("cait", "CaiT", **BASE, cls_depth=1), **SQUARE),
    Network("rvt", _of("rvt", "RvT", **BASE), **SQUARE),
    Network("vit_small_dataset", _of("vit_for_small_dataset", "ViT", **BASE), **SQUARE),
    Network("parallel_vit", _of("parallel_vit", "ViT", **BASE), **SQUARE),
    Network(
        "patch_merger",
        _of("vit_with_patch_merger", "ViT", **BASE, patch_merge_layer=1, patch_merge_num_tokens=4),
        **SQUARE,
    ),
    Network(
        "sep_vit",
        _of("sep_vit", "SepViT", num_classes=10, dim=16, dim_head=16, heads=(1, 2), depth=(1, 1), window_size=4),
        # Its blocks have windows of 7, whatever it is given.
        **batch_only(112),
    ),
    Network(
        "crossformer",
        _of(
            "crossformer",
            "CrossFormer",
            num_classes=10,
            dim=(32, 64, 64, 128),
            depth=(1, 1, 1, 1),
            global_window_size=(4, 2, 2, 1),
            local_window_size=2,
        ),
        **SQUARE,
    ),
    Network(
        "regionvit",
        _of("regionvit", "RegionViT", num_classes=10, dim=(16, 32, 64, 64), depth=(1, 1, 1, 1), window_size=2),
        **SQUARE,
    ),
    Network(
        "mobile_vit",
        _of(
            "mobile_vit",
            "MobileViT",
            image_size=(64, 64),
            dims=[16, 24, 32],
            channels=[8, 8, 12, 12, 16, 16, 24, 24, 32, 32, 48],
            num_classes=10,
        ),
        **SQUARE,
    ),
    Network(
        "max_vit",
        _of("max_vit", "MaxViT", num_classes=10, dim_conv_stem=16, dim=16, dim_head=16, depth=(1, 1), window_size=4),
        **SQUARE,
    ),
    Network(
        "nest",
        _of(
            "nest",
            "NesT",
            image_size=64,
            patch_size=4,
            dim=32,
            heads=2,
            num_hierarchies=3,
            block_repeats=(1, 1, 1),
            num_classes=10,
        ),
        **SQUARE,
    ),
    Network(
        "cct",
        _of(
            "cct",
            "CCT",
            img_size=(64, 64),
            embedding_dim=64,
            n_conv_layers=2,
            num_layers=2,
            num_heads=2,
            mlp_ratio=2.0,
            num_classes=10,
            positional_embedding="learnable",
        ),
        **SQUARE,
    ),
    Network(
        "vit_1d",
        _of("vit_1d", "ViT", seq_len=64, patch_size=8, **_without("image_size", "patch_size")),
        ("x:float32[N,3,64]",),
        "N=1:2:6",
    ),
)
