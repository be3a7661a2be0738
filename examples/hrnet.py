"""HRNet-W18-C-Small-v2, as a classifier and for semantic segmentation.

Structure from Wang et al., "Deep High-Resolution Representation Learning for Visual Recognition" (TPAMI 2020): four
stages, each with one more branch at half the resolution, whose modules run residual blocks on every branch and then
fuse all branches into all. The small v2 configuration has 2 bottlenecks in stage 1 and 1, 3 and 2 modules in stages 2
to 4, two basic blocks per branch, and 18, 36, 72 and 144 channels.
"""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WIDTHS = (18, 36, 72, 144)
STAGE_MODULES = {2: 1, 3: 3, 4: 2}
BLOCKS = 2
STEM_CHANNELS = 64
HEAD_CHANNELS = (32, 64, 128, 256)
CLASSIFIER_CHANNELS = 2048


def conv_bn(
    inputs: int, outputs: int, kernel: int, stride: int = 1, relu: bool = False, bias: bool = False
) -> nn.Sequential:
    """Convolution, batch normalisation, and ReLU where asked."""
    layers = [
        nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=kernel // 2, bias=bias),
        nn.BatchNorm2d(outputs),
    ]
    return nn.Sequential(*layers, nn.ReLU(inplace=True)) if relu else nn.Sequential(*layers)


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions and the identity."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = conv_bn(channels, channels, 3, relu=True)
        self.conv2 = conv_bn(channels, channels, 3)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.conv2(self.conv1(x)))


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3 and 1 x 1 convolutions, four times the channels at the end, and a projected shortcut if needed."""

    def __init__(self, inputs: int, channels: int) -> None:
        super().__init__()
        outputs = 4 * channels
        self.conv1 = conv_bn(inputs, channels, 1, relu=True)
        self.conv2 = conv_bn(channels, channels, 3, relu=True)
        self.conv3 = conv_bn(channels, outputs, 1)
        self.shortcut = conv_bn(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.shortcut(x) + self.conv3(self.conv2(self.conv1(x))))


def _fuse_path(source: int, target: int) -> nn.Module:
    # To a finer branch: 1 x 1 and upsampling (in Module.forward). To a coarser one: halved as often as needed.
    if source == target:
        return nn.Identity()
    if source > target:
        return conv_bn(WIDTHS[source], WIDTHS[target], 1)
    steps = target - source
    halved = [conv_bn(WIDTHS[source], WIDTHS[source], 3, stride=2, relu=True) for _ in range(steps - 1)]
    return nn.Sequential(*halved, conv_bn(WIDTHS[source], WIDTHS[target], 3, stride=2))


class Module(nn.Module):
    """Residual blocks on each branch, then the sum over all branches for each branch.

    With `resize_to` a coarser branch is brought to a finer one's size, bilinearly (segmentation: any size will do);
    without, it is scaled by 2, 4 or 8 with nearest (classifier: sizes are multiples of 32).
    """

    def __init__(self, branches: int, resize_to: bool) -> None:
        super().__init__()
        self.resize_to = resize_to
        self.branches = nn.ModuleList(
            nn.Sequential(*(BasicBlock(WIDTHS[b]) for _ in range(BLOCKS))) for b in range(branches)
        )
        self.fuse = nn.ModuleList(
            nn.ModuleList(_fuse_path(source, target) for source in range(branches)) for target in range(branches)
        )

    def forward(self, maps: list[Tensor]) -> list[Tensor]:
        maps = [branch(x) for branch, x in zip(self.branches, maps, strict=True)]
        return [self._fused(maps, target) for target in range(len(maps))]

    def _fused(self, maps: list[Tensor], target: int) -> Tensor:
        y = maps[target]
        total = y
        for source, path in enumerate(self.fuse[target]):
            if source == target:
                continue
            x = path(maps[source])
            if source > target and self.resize_to:
                x = F.interpolate(x, size=(y.shape[2], y.shape[3]), mode="bilinear", align_corners=False)
            elif source > target:
                x = F.interpolate(x, scale_factor=2 ** (source - target), mode="nearest")
            total = total + x
        return F.relu(total)


class Backbone(nn.Module):
    """images [N, 3, H, W] -> four maps of 18, 36, 72 and 144 channels and stride 4, 8, 16 and 32."""

    def __init__(self, resize_to: bool) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            conv_bn(3, STEM_CHANNELS, 3, stride=2, relu=True),
            conv_bn(STEM_CHANNELS, STEM_CHANNELS, 3, stride=2, relu=True),
        )
        wide = 4 * STEM_CHANNELS
        self.stage1 = nn.Sequential(Bottleneck(STEM_CHANNELS, STEM_CHANNELS), Bottleneck(wide, STEM_CHANNELS))
        self.transition1 = nn.ModuleList(
            [conv_bn(wide, WIDTHS[0], 3, relu=True), conv_bn(wide, WIDTHS[1], 3, stride=2, relu=True)]
        )
        # A new branch starts from the coarsest one there is.
        self.transition2 = conv_bn(WIDTHS[1], WIDTHS[2], 3, stride=2, relu=True)
        self.transition3 = conv_bn(WIDTHS[2], WIDTHS[3], 3, stride=2, relu=True)
        self.stage2, self.stage3, self.stage4 = (
            nn.ModuleList(Module(branches, resize_to) for _ in range(count))
            for branches, count in STAGE_MODULES.items()
        )

    def forward(self, images: Tensor) -> list[Tensor]:
        x = self.stage1(self.stem(images))
        maps = [transition(x) for transition in self.transition1]
        for module in self.stage2:
            maps = module(maps)
        maps = [*maps, self.transition2(maps[-1])]
        for module in self.stage3:
            maps = module(maps)
        maps = [*maps, self.transition3(maps[-1])]
        for module in self.stage4:
            maps = module(maps)
        return maps


class Classifier(nn.Module):
    """images [N, 3, H, W] (H and W multiples of 32) -> logits [N, num_classes]."""

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.backbone = Backbone(resize_to=False)
        self.incre = nn.ModuleList(Bottleneck(w, h) for w, h in zip(WIDTHS, HEAD_CHANNELS, strict=True))
        outputs = [4 * h for h in HEAD_CHANNELS]
        self.downsample = nn.ModuleList(conv_bn(a, b, 3, stride=2, relu=True, bias=True) for a, b in pairwise(outputs))
        self.final = conv_bn(outputs[-1], CLASSIFIER_CHANNELS, 1, relu=True, bias=True)
        self.classifier = nn.Linear(CLASSIFIER_CHANNELS, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        maps = [block(x) for block, x in zip(self.incre, self.backbone(images), strict=True)]
        y = maps[0]
        for x, downsample in zip(maps[1:], self.downsample, strict=True):
            y = x + downsample(y)
        y = self.final(y)
        y = F.avg_pool2d(y, kernel_size=y.shape[2:])
        return self.classifier(y.flatten(1))


class Segmenter(nn.Module):
    """images [N, 3, H, W] -> logits [N, num_classes, ceil(H / 4), ceil(W / 4)].

    Every size is allowed: the resizing goes by the other branch's size, so that odd ones meet again.
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.backbone = Backbone(resize_to=True)
        channels = sum(WIDTHS)
        self.fuse = conv_bn(channels, channels, 1, relu=True, bias=True)
        self.classifier = nn.Conv2d(channels, num_classes, 1)

    def forward(self, images: Tensor) -> Tensor:
        y, *coarser = self.backbone(images)
        size = (y.shape[2], y.shape[3])
        upsampled = [F.interpolate(x, size=size, mode="bilinear", align_corners=False) for x in coarser]
        return self.classifier(self.fuse(torch.cat([y, *upsampled], dim=1)))


def _seed_weights(model: Classifier | Segmenter, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu", generator=generator)
            if module.bias is not None:
                nn.init.uniform_(module.bias, -0.1, 0.1, generator=generator)
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.8, 1.2, generator=generator)
            nn.init.normal_(module.bias, std=0.1, generator=generator)
            nn.init.normal_(module.running_mean, std=0.1, generator=generator)
            nn.init.uniform_(module.running_var, 0.7, 1.3, generator=generator)
    # Sums would grow with depth: what is added to an identity starts small.
    for module in model.modules():
        if isinstance(module, BasicBlock):
            module.conv2[1].weight.mul_(0.3)
        elif isinstance(module, Bottleneck):
            module.conv3[1].weight.mul_(0.3)
        elif isinstance(module, Module):
            for norm in (n for n in module.fuse.modules() if isinstance(n, nn.BatchNorm2d)):
                norm.weight.mul_(0.3)
    model.classifier.weight.mul_(0.2)


@torch.no_grad()
def hrnet_w18_small_v2(num_classes: int = 1000, seed: int = 0) -> nn.Module:
    """The classifier with seeded random weights."""
    model = Classifier(num_classes)
    _seed_weights(model, seed)
    return model.eval()


@torch.no_grad()
def hrnet_w18_small_v2_segmentation(num_classes: int = 19, seed: int = 0) -> nn.Module:
    """The segmentation network with seeded random weights; 19 classes are those of Cityscapes."""
    model = Segmenter(num_classes)
    _seed_weights(model, seed)
    return model.eval()
