"""Small networks of the kinds that people quantise, with weights that `train.py` made."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

WEIGHTS = Path(__file__).with_name("weights")


def conv_norm(inputs: int, outputs: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(outputs)
    )


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = conv_norm(1, 16), conv_norm(16, 32), conv_norm(32, 32)
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.second(F.relu(self.first(x))))
        x = F.relu(self.third(F.max_pool2d(x, 2)))
        return self.head(x.mean((2, 3)))


class Block(nn.Module):
    """Two convolutions and a sum; a stride takes a convolution on the other side too."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.first, self.second = conv_norm(inputs, outputs, stride=stride), conv_norm(outputs, outputs)
        self.side = conv_norm(inputs, outputs, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.second(F.relu(self.first(x))) + self.side(x))


class ResNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = conv_norm(1, 16)
        self.body = nn.Sequential(Block(16, 16), Block(16, 24, 2))
        self.head = nn.Linear(24, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(F.relu(self.stem(x))).mean((2, 3)))


class Inverted(nn.Module):
    """MobileNetV2: widen, depthwise, narrow."""

    def __init__(self, channels: int, wide: int) -> None:
        super().__init__()
        self.widen, self.depthwise = conv_norm(channels, wide, 1), conv_norm(wide, wide, groups=wide)
        self.narrow = conv_norm(wide, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.narrow(F.relu6(self.depthwise(F.relu6(self.widen(x)))))


class MobileNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = conv_norm(1, 16, stride=2)
        self.body = nn.Sequential(Inverted(16, 64), Inverted(16, 64), Inverted(16, 64))
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(F.relu6(self.stem(x))).mean((2, 3)))


class Encoder(nn.Module):
    """A pre-norm transformer layer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2) for t in self.qkv(self.before(x)).chunk(3, 2))
        weights = torch.softmax(q @ k.transpose(2, 3) / q.shape[-1] ** 0.5, 3)
        x = x + self.out((weights @ v).transpose(1, 2).flatten(2))
        return x + self.narrow(F.gelu(self.widen(self.after(x))))


class Vit(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 2, 2)
        self.position = nn.Parameter(torch.zeros(1, 16, width))
        self.layers = nn.Sequential(Encoder(width, 2), Encoder(width, 2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.layers(x)).mean(1))


class Lstm(nn.Module):
    """Reads the image row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Linear(8, 16)
        self.lstm = nn.LSTM(16, 32, batch_first=True)
        self.wide, self.head = nn.Linear(32, 32), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        states, _ = self.lstm(F.relu(self.rows(x.squeeze(1))))
        return self.head(F.relu(self.wide(states[:, -1])))


class Segmenter(nn.Module):
    """A U-Net of one step down and up again."""

    def __init__(self) -> None:
        super().__init__()
        self.fine, self.down = conv_norm(1, 16), conv_norm(16, 32, stride=2)
        self.deep, self.deeper = conv_norm(32, 32), conv_norm(32, 32)
        self.up = nn.ConvTranspose2d(32, 16, 2, 2)
        self.join, self.head = conv_norm(32, 16), nn.Conv2d(16, 11, 1)

    def forward(self, x: Tensor) -> Tensor:
        fine = F.relu(self.fine(x))
        x = F.relu(self.deeper(F.relu(self.deep(F.relu(self.down(fine))))))
        return self.head(F.relu(self.join(torch.cat([fine, F.relu(self.up(x))], 1))))


class Denoiser(nn.Module):
    """What a noisy canvas looked like before; the noise is what the layers learn."""

    def __init__(self) -> None:
        super().__init__()
        self.fine, self.down = conv_norm(1, 24), conv_norm(24, 32, stride=2)
        self.deep, self.up = conv_norm(32, 32), nn.ConvTranspose2d(32, 24, 2, 2)
        self.join, self.last = conv_norm(24, 24), nn.Conv2d(24, 1, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        fine = F.relu(self.fine(x))
        deep = F.relu(self.deep(F.relu(self.down(fine))))
        return x - self.last(F.relu(self.join(F.relu(self.up(deep)) + fine)))


class Detector(nn.Module):
    """A box, a score and a class for each of 6 by 6 cells of 4 by 4 pixels; the cell of its centre names a box."""

    cell, cells = 4, 6

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(conv_norm(1, 16), nn.ReLU(), conv_norm(16, 32, stride=2), nn.ReLU()),
            *(conv_norm(32, 48, stride=2), nn.ReLU(), conv_norm(48, 48), nn.ReLU(), conv_norm(48, 48), nn.ReLU()),
        )
        self.sides, self.kinds = nn.Conv2d(48, 4, 1), nn.Conv2d(48, 10, 1)
        centres = (torch.arange(self.cells) + 0.5) * self.cell
        y, x = torch.meshgrid(centres, centres, indexing="ij")
        self.register_buffer("centres", torch.stack([x, y, x, y]).flatten(1), persistent=False)

    def logits(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Boxes [N, 36, 4] as x1, y1, x2, y2, and what speaks for each class [N, 36, 10]."""
        x = self.body(x)
        sides = self.sides(x).flatten(2) * torch.tensor([-4.0, -4.0, 4.0, 4.0])[None, :, None]
        return (self.centres + sides).transpose(1, 2), self.kinds(x).flatten(2).transpose(1, 2)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        boxes, kinds = self.logits(x)
        scores, labels = torch.sigmoid(kinds).max(2)
        return {"boxes": boxes, "scores": scores, "labels": labels}


KINDS = {
    "cnn": Cnn,
    "resnet": ResNet,
    "mobilenet": MobileNet,
    "vit": Vit,
    "lstm": Lstm,
    "segmenter": Segmenter,
    "denoiser": Denoiser,
    "detector": Detector,
}


def make(kind: str = "resnet") -> nn.Module:
    """A trained network. Its weights are kept in half precision, to be small."""
    network = KINDS[kind]()
    stored = load_file(WEIGHTS / f"{kind}.safetensors")
    network.load_state_dict({name: t.float() for name, t in stored.items()}, strict=False)
    return network.eval()
