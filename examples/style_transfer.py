"""Fast style transfer: an image in, the same image in the style that the network was trained for out.

Structure from Johnson et al., "Perceptual Losses for Real-Time Style Transfer and Super-Resolution" (2016), in the
form in which it is used since: reflection padding in front of every convolution, instance normalisation (Ulyanov et
al., 2016) with learned scale and shift, five residual blocks, and nearest upsampling followed by a convolution where
the paper has transposed convolutions (Odena et al., 2016).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class PaddedConv(nn.Module):
    """A convolution that keeps the size (divided by the stride) by reflecting the border."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.pad = nn.ReflectionPad2d(kernel // 2)
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride=stride)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(self.pad(x))


class NormedConv(nn.Module):
    """Padded convolution, instance normalisation, ReLU; upsampled by 2 before where asked."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, upsample: bool = False) -> None:
        super().__init__()
        self.upsample = upsample
        self.conv = PaddedConv(inputs, outputs, kernel, stride)
        self.norm = nn.InstanceNorm2d(outputs, affine=True)

    def forward(self, x: Tensor) -> Tensor:
        if self.upsample:
            x = F.interpolate(x, scale_factor=2, mode="nearest")
        return F.relu(self.norm(self.conv(x)))


class ResidualBlock(nn.Module):
    """Two convolutions with instance normalisation, added to the input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = PaddedConv(channels, channels, 3)
        self.norm1 = nn.InstanceNorm2d(channels, affine=True)
        self.conv2 = PaddedConv(channels, channels, 3)
        self.norm2 = nn.InstanceNorm2d(channels, affine=True)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))


class StyleTransfer(nn.Module):
    """images [N, 3, H, W] with values 0 to 255 -> the same shape and range (H and W multiples of 4)."""

    def __init__(self, channels: int, blocks: int) -> None:
        super().__init__()
        c = channels
        self.encoder = nn.Sequential(
            NormedConv(3, c, 9), NormedConv(c, 2 * c, 3, stride=2), NormedConv(2 * c, 4 * c, 3, stride=2)
        )
        self.blocks = nn.Sequential(*(ResidualBlock(4 * c) for _ in range(blocks)))
        self.decoder = nn.Sequential(NormedConv(4 * c, 2 * c, 3, upsample=True), NormedConv(2 * c, c, 3, upsample=True))
        self.paint = PaddedConv(c, 3, 9)

    def forward(self, images: Tensor) -> Tensor:
        x = self.decoder(self.blocks(self.encoder(images / 255.0)))
        return 127.5 * (torch.tanh(self.paint(x)) + 1.0)


def _seed_weights(model: StyleTransfer, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu", generator=generator)
            nn.init.uniform_(module.bias, -0.1, 0.1, generator=generator)
        elif isinstance(module, nn.InstanceNorm2d):
            nn.init.uniform_(module.weight, 0.5, 1.0, generator=generator)
            nn.init.normal_(module.bias, std=0.2, generator=generator)
    # Smaller, so that the tanh is not saturated.
    model.paint.conv.weight.mul_(0.5)


@torch.no_grad()
def style_transfer(channels: int = 32, blocks: int = 5, seed: int = 0) -> nn.Module:
    """The network of the paper with seeded random weights."""
    model = StyleTransfer(channels, blocks)
    _seed_weights(model, seed)
    return model.eval()


def photos(dims: dict[str, int], generator: torch.Generator) -> tuple[Tensor]:
    """Images with large shapes and grain. In a flat image, which random values or photos never are, the variance is 0
    and each normalisation multiplies the rounding before it by 1 / sqrt(1e-5) = 316: nothing is left to compare.
    """
    size = (dims["N"], 3, dims["H"], dims["W"])
    coarse = torch.rand(size[0], 3, 6, 6, generator=generator)
    shapes = F.interpolate(coarse, size=size[2:], mode="bilinear", align_corners=False)
    grain = torch.randn(size, generator=generator)
    return ((shapes * 255.0 + grain * 8.0).clamp(0.0, 255.0),)
