"""The two towers of open_clip's smallest models."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from networks.network import Network
from networks.packages.timm import REQUIREMENTS as TIMM

if TYPE_CHECKING:
    from torch import nn

REQUIREMENTS = ("open_clip_torch", "ftfy", "regex", "wcwidth", *TIMM)
TEXT = ("text:int64[N,77]=0:49407",)


def _tower(which: str, **sizes: int) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import torch
        from open_clip.model import CLIP

        class Tower(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                vision = {"layers": 3, "width": 96, "head_width": 32, "patch_size": 16, "image_size": 64, **sizes}
                text = {"context_length": 77, "vocab_size": 49408, "width": 96, "heads": 3, "layers": 3}
                self.clip = CLIP(embed_dim=64, vision_cfg=vision, text_cfg=text)

        class Image(Tower):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.clip.encode_image(x, normalize=True)

        class Text(Tower):
            def forward(self, text: torch.Tensor) -> torch.Tensor:
                return self.clip.encode_text(text, normalize=True)

        return Image() if which == "image" else Text()

    return make


NETWORKS = (
    Network("clip_image", _tower("image"), ("x:float32[N,3,64,64]",), "N=1:2:8"),
    Network("clip_text", _tower("text"), TEXT, "N=1:2:8"),
)
