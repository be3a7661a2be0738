"""The shapes at which the plugins are measured, for processes with torch and without."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """One plugin at one input shape. `table` marks the shapes that the targets are set for."""

    op: str
    shape: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    table: bool = False

    @property
    def name(self) -> str:
        extra = " ".join(f"{k}={v}" for k, v in self.options.items())
        return f"{self.op} {list(self.shape)} {extra}".strip()


CASES: tuple[Case, ...] = (
    Case("l2norm", (16, 512, 64, 64), table=True),
    Case("l2norm", (1, 512, 38, 38)),
    Case("l2norm", (8, 256, 75, 75)),
    Case("l2norm", (32, 1024, 19, 19)),
    Case("l2norm", (65536, 768, 1, 1)),
    Case("instance_norm", (64, 8, 512, 512), table=True),
    Case("instance_norm", (1, 64, 256, 256)),
    Case("instance_norm", (8, 32, 255, 253)),
    Case("instance_norm", (16, 512, 32, 32)),
    Case("instance_norm", (1, 16, 2048, 2048)),
    Case("instance_norm", (4, 64, 512, 512), {"relu": True}),
    Case("reflection_pad", (64, 8, 512, 512), {"pads": (3, 3, 3, 3)}, table=True),
    Case("reflection_pad", (1, 3, 1080, 1920), {"pads": (0, 4, 8, 3)}),
    Case("reflection_pad", (8, 128, 63, 65), {"pads": (1, 1, 1, 1)}),
    Case("reflection_pad", (16, 64, 256, 256), {"pads": (1, 1, 1, 1)}),
    Case("adaptive_pool", (16, 512, 64, 64), {"size": (7, 7), "maximum": False}),
    Case("adaptive_pool", (64, 2048, 32, 32), {"size": (1, 1), "maximum": False}),
    Case("adaptive_pool", (8, 256, 255, 253), {"size": (6, 5), "maximum": True}),
    # ConvNeXt-T's stages; channels last.
    *(
        Case("depthwise_conv_layer_norm", (batch, 7 << (3 - i), 7 << (3 - i), 96 << i), {"size": 7})
        for batch in (8, 1)
        for i in range(4)
    ),
    # PVTv2-B1's stages; rows of tokens.
    *(
        Case("depthwise_conv", (batch, (56 >> i) ** 2, channels), {"width": 56 >> i})
        for batch in (8, 1)
        for i, channels in enumerate((512, 1024, 1280, 2048))
    ),
    # Windows of Swin-T's stages, of a batch of 8 and of 1, and the tokens of ViT-B, ViT-S and a longer sequence.
    *(
        Case("attention", (batch * (64 >> 2 * i), 49, 288 << i), {"heads": 3 << i, "size": 32, "groups": 64 >> 2 * i})
        for batch in (8, 1)
        for i in range(4)
    ),
    Case("attention", (8, 197, 2304), {"heads": 12, "size": 64, "groups": 0}),
    Case("attention", (1, 197, 2304), {"heads": 12, "size": 64, "groups": 0}),
    Case("attention", (8, 197, 1152), {"heads": 6, "size": 64, "groups": 0}),
    Case("attention", (4, 1500, 1536), {"heads": 8, "size": 64, "groups": 0}),
)
