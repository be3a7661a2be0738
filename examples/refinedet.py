"""RefineDet with the VGG-16 backbone, for images of 320 x 320 and larger.

Structure from Zhang et al., "Single-Shot Refinement Neural Network for Object Detection" (CVPR 2018): VGG-16 with
fc6 and fc7 as convolutions, conv6_1 and conv6_2, L2Norm of conv4_3 (initial scale 10) and conv5_3 (initial scale 8),
an anchor refinement module (ARM), transfer connection blocks (TCB) and an object detection module (ODM), each on
four maps of stride 8, 16, 32 and 64 with three anchors per location. The decoding of boxes and the non-maximum
suppression come after the network and are not part of it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ANCHORS = 3
TCB_CHANNELS = 256
SOURCE_CHANNELS = (512, 512, 1024, 512)
VGG16_STAGES = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


class L2Norm(nn.Module):
    """x / (sqrt(sum over channels of x^2) + eps), times a learned weight per channel. [N, C, H, W] in and out."""

    def __init__(self, channels: int, scale: float, eps: float = 1e-10) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((channels,), scale))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        norm = x.pow(2).sum(dim=1, keepdim=True).sqrt() + self.eps
        return x / norm * self.weight.view(1, -1, 1, 1)


class Vgg16(nn.Module):
    """The four source maps: conv4_3, conv5_3 (before their pooling and L2Norm), fc7 and conv6_2."""

    def __init__(self) -> None:
        super().__init__()
        channels = 3
        self.stages = nn.ModuleList()
        for widths in VGG16_STAGES:
            layers: list[nn.Module] = []
            for width in widths:
                layers += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(inplace=True)]
                channels = width
            self.stages.append(nn.Sequential(*layers))
        self.pool = nn.MaxPool2d(2, stride=2)
        # The fully connected fc6 and fc7 as convolutions; the dilation keeps the field of view of the 7 x 7 window.
        self.fc6 = nn.Conv2d(512, 1024, 3, padding=3, dilation=3)
        self.fc7 = nn.Conv2d(1024, 1024, 1)
        self.conv6_1 = nn.Conv2d(1024, 256, 1)
        self.conv6_2 = nn.Conv2d(256, 512, 3, stride=2, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        for stage in self.stages[:3]:
            x = self.pool(stage(x))
        conv4_3 = self.stages[3](x)
        conv5_3 = self.stages[4](self.pool(conv4_3))
        fc7 = F.relu(self.fc7(F.relu(self.fc6(self.pool(conv5_3)))))
        conv6_2 = F.relu(self.conv6_2(F.relu(self.conv6_1(fc7))))
        return conv4_3, conv5_3, fc7, conv6_2


class TransferConnection(nn.Module):
    """Carries a map from the ARM to the ODM, adding the upsampled map of the next coarser level where there is one."""

    def __init__(self, channels: int, coarsest: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, TCB_CHANNELS, 3, padding=1)
        self.conv2 = nn.Conv2d(TCB_CHANNELS, TCB_CHANNELS, 3, padding=1)
        self.deconv = None if coarsest else nn.ConvTranspose2d(TCB_CHANNELS, TCB_CHANNELS, 2, stride=2)
        self.conv3 = nn.Conv2d(TCB_CHANNELS, TCB_CHANNELS, 3, padding=1)

    def forward(self, x: Tensor, coarser: Tensor | None) -> Tensor:
        x = self.conv2(F.relu(self.conv1(x)))
        if self.deconv is not None and coarser is not None:
            x = x + self.deconv(coarser)
        return F.relu(self.conv3(F.relu(x)))


class Heads(nn.Module):
    """Box offsets and class probabilities of all anchors of all maps: [N, anchors, 4] and [N, anchors, classes]."""

    def __init__(self, channels: tuple[int, ...], num_classes: int) -> None:
        super().__init__()
        self.loc = nn.ModuleList(nn.Conv2d(c, ANCHORS * 4, 3, padding=1) for c in channels)
        self.conf = nn.ModuleList(nn.Conv2d(c, ANCHORS * num_classes, 3, padding=1) for c in channels)
        self.num_classes = num_classes

    def forward(self, maps: list[Tensor]) -> tuple[Tensor, Tensor]:
        loc = [_flat(head(x), 4) for head, x in zip(self.loc, maps, strict=True)]
        conf = [_flat(head(x), self.num_classes) for head, x in zip(self.conf, maps, strict=True)]
        return torch.cat(loc, dim=1), torch.cat(conf, dim=1).softmax(dim=-1)


def _flat(x: Tensor, size: int) -> Tensor:
    # [N, anchors * size, H, W] -> [N, H * W * anchors, size]: the order in which the anchors are laid out.
    return x.permute(0, 2, 3, 1).reshape(x.shape[0], -1, size)


class RefineDet(nn.Module):
    """images [N, 3, H, W] (H and W multiples of 64, mean subtracted) -> arm_loc, arm_conf, odm_loc, odm_conf.

    With H = W = 320 there are 3 * (40^2 + 20^2 + 10^2 + 5^2) = 6375 anchors.
    """

    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.backbone = Vgg16()
        self.conv4_3_norm = L2Norm(512, 10.0)
        self.conv5_3_norm = L2Norm(512, 8.0)
        self.arm = Heads(SOURCE_CHANNELS, 2)
        coarsest = len(SOURCE_CHANNELS) - 1
        self.tcb = nn.ModuleList(TransferConnection(c, i == coarsest) for i, c in enumerate(SOURCE_CHANNELS))
        self.odm = Heads((TCB_CHANNELS,) * len(SOURCE_CHANNELS), num_classes)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        conv4_3, conv5_3, fc7, conv6_2 = self.backbone(images)
        sources = [self.conv4_3_norm(conv4_3), self.conv5_3_norm(conv5_3), fc7, conv6_2]
        arm_loc, arm_conf = self.arm(sources)
        refined: list[Tensor] = []
        coarser: Tensor | None = None
        for block, source in zip(reversed(self.tcb), reversed(sources), strict=True):
            coarser = block(source, coarser)
            refined.insert(0, coarser)
        odm_loc, odm_conf = self.odm(refined)
        return {"arm_loc": arm_loc, "arm_conf": arm_conf, "odm_loc": odm_loc, "odm_conf": odm_conf}


def _seed_weights(model: RefineDet, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu", generator=generator)
            # Zero as VGG is initialised: a black image then gives pixels whose norm is exactly 0, so eps matters.
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.ConvTranspose2d):
            # Each output pixel of a 2 x 2 stride 2 deconvolution sees one input pixel.
            nn.init.normal_(module.weight, std=module.in_channels**-0.5, generator=generator)
            nn.init.uniform_(module.bias, -0.1, 0.1, generator=generator)
        elif isinstance(module, L2Norm):
            # Training moves the weights down a little, each channel on its own (10 to 9.x, 8 to 7.x).
            module.weight.sub_(torch.rand(module.weight.shape, generator=generator))
    for head in (*model.arm.loc, *model.arm.conf, *model.odm.loc, *model.odm.conf):
        head.weight.mul_(0.3)
        nn.init.uniform_(head.bias, -0.1, 0.1, generator=generator)


@torch.no_grad()
def refinedet320(num_classes: int = 21, seed: int = 0) -> nn.Module:
    """RefineDet320 with seeded random weights; 21 classes are the 20 of PASCAL VOC and the background."""
    model = RefineDet(num_classes)
    _seed_weights(model, seed)
    return model.eval()
