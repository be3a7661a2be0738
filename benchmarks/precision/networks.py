"""ResNet-50, MobileNetV2 and ViT-S/16 by their papers, with random weights: of use is how fast they are.

He et al., "Deep Residual Learning for Image Recognition", 2015, table 1 (stride in the 3 by 3 convolution, as
everybody has it today); Sandler et al., "MobileNetV2", 2018, table 2; Dosovitskiy et al., "An Image is Worth 16x16
Words", 2020, with the sizes of ViT-S (Touvron et al., 2020).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.precision.recipes import Drawn

CLASSES = 1000


def normed(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """A convolution and a norm that divides by exactly 1, so that folding it changes no weight."""
    norm = nn.BatchNorm2d(outputs)
    norm.running_var.fill_(1.0 - norm.eps)
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), norm)


class Bottleneck(nn.Module):
    """1 by 1, 3 by 3, 1 by 1, and a sum."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = 4 * width
        self.narrow, self.middle = normed(inputs, width, 1), normed(width, width, 3, stride)
        self.widen = normed(width, outputs, 1)
        self.side = normed(inputs, outputs, 1, stride) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = self.widen(F.relu(self.middle(F.relu(self.narrow(x)))))
        return F.relu(y + self.side(x))


class ResNet50(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.pool = normed(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)
        blocks: list[nn.Module] = []
        inputs = 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for index in range(count):
                blocks.append(Bottleneck(inputs, width, stride if index == 0 else 1))
                inputs = 4 * width
        self.body, self.mean, self.head = nn.Sequential(*blocks), nn.AdaptiveAvgPool2d(1), nn.Linear(inputs, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.mean(self.body(self.pool(F.relu(self.stem(x))))).flatten(1))


class Inverted(nn.Module):
    """Widen, depthwise, narrow, and a sum where the sizes are equal."""

    def __init__(self, inputs: int, outputs: int, stride: int, factor: int) -> None:
        super().__init__()
        wide = inputs * factor
        self.widen = normed(inputs, wide, 1) if factor > 1 else None
        self.depthwise, self.narrow = normed(wide, wide, 3, stride, wide), normed(wide, outputs, 1)
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu6(self.widen(x)) if self.widen is not None else x
        y = self.narrow(F.relu6(self.depthwise(y)))
        return x + y if self.adds else y


class MobileNetV2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, inputs = normed(3, 32, 3, 2), 32
        blocks = []
        for factor, outputs, count, stride in (
            (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)
        ):  # fmt: skip
            for index in range(count):
                blocks.append(Inverted(inputs, outputs, stride if index == 0 else 1, factor))
                inputs = outputs
        self.body, self.last = nn.Sequential(*blocks), normed(inputs, 1280, 1)
        self.mean, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(1280, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu6(self.last(self.body(F.relu6(self.stem(x)))))
        return self.head(self.mean(x).flatten(1))


class Encoder(nn.Module):
    """A pre-norm transformer layer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.before(x)).chunk(3, 2))
        weights = torch.softmax(q @ k.transpose(2, 3) / q.shape[-1] ** 0.5, 3)
        x = x + self.out((weights @ v).transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.widen(self.after(x))))


class VitSmall(nn.Module):
    def __init__(self, width: int = 384, depth: int = 12, heads: int = 6) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.position = nn.Parameter(torch.zeros(1, 196, width))
        self.layers = nn.Sequential(*(Encoder(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.layers(x)).mean(1))


KINDS = {"resnet50": ResNet50, "mobilenetv2": MobileNetV2, "vit_small": VitSmall}


def drawn_weights(network: nn.Module) -> dict[str, Drawn]:
    """He's rule for what a ReLU follows; the last layer before each sum at a quarter of it, so that sums stay small."""
    weights = {}
    for name, module in network.named_modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            shape = tuple(module.weight.shape)
            last = name.split(".")[-1] in ("out", "narrow") or name.endswith(("widen.0", "narrow.0"))
            deviation = math.sqrt(2.0 / math.prod(shape[1:])) * (0.25 if last else 1.0)
            weights[f"{name}.weight"] = Drawn(f"{name}.weight", shape, deviation)
    return weights


def make(kind: str = "resnet50") -> nn.Module:
    """The network in eval mode, with weights that any machine can draw again."""
    network = KINDS[kind]().eval()
    parameters = dict(network.named_parameters())
    for name, drawn in drawn_weights(network).items():
        parameters[name].data.copy_(torch.from_numpy(drawn.values()))
        bias = parameters.get(name.replace(".weight", ".bias"))
        if bias is not None:
            nn.init.zeros_(bias)
    return network
