"""A text line recogniser for lines of any height and width.

A convolutional backbone, a pooling of the height by attention, a bidirectional LSTM over the width and a classifier
per position, trained with CTC (the shape of CRNN: Shi et al., "An End-to-End Trainable Neural Network for Image-based
Sequence Recognition", 2015). CRNN wants a fixed height of 32, which its backbone reduces to 1. Here the height is
free: each column is summarised by its mean over the whole height, and the summary decides by additive attention
(Bahdanau et al., 2014) which rows of the column count.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ConvBlock(nn.Sequential):
    """3 x 3 convolution, batch normalisation, ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)
        )


class HeightAttention(nn.Module):
    """[N, C, H, W] -> [N, C, W]: a weighted mean over the height; the weights of a column add up to 1."""

    def __init__(self, channels: int, hidden: int) -> None:
        super().__init__()
        self.query = nn.Conv2d(channels, hidden, 1)
        self.key = nn.Conv2d(channels, hidden, 1, bias=False)
        self.score = nn.Conv2d(hidden, 1, 1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q = self.query(x)
        h = q.shape[2]
        column = F.avg_pool2d(q, [h, 1])
        weights = self.score(torch.tanh(self.key(x) + column)).softmax(dim=2)
        return (x * weights).sum(dim=2)


class TextRecognizer(nn.Module):
    """images [N, 1, H, W] (grey, H >= 8, W >= 4) -> log probabilities [N, W // 4, num_classes]; class 0 is the blank.

    The height is halved three times, the width twice.
    """

    def __init__(self, num_classes: int, channels: int, hidden: int) -> None:
        super().__init__()
        c = channels
        self.backbone = nn.Sequential(
            ConvBlock(1, c // 4),
            nn.MaxPool2d(2),
            ConvBlock(c // 4, c // 2),
            nn.MaxPool2d(2),
            ConvBlock(c // 2, c),
            ConvBlock(c, c),
            nn.MaxPool2d((2, 1)),
            ConvBlock(c, c),
        )
        self.attention = HeightAttention(c, hidden)
        self.sequence = nn.LSTM(c, hidden, num_layers=2, bidirectional=True, batch_first=True)
        self.classifier = nn.Linear(2 * hidden, num_classes)

    def forward(self, images: Tensor) -> Tensor:
        columns = self.attention(self.backbone(images)).transpose(1, 2)
        states, _ = self.sequence(columns)
        return self.classifier(states).log_softmax(dim=-1)


def _seed_weights(model: TextRecognizer, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu", generator=generator)
            if module.bias is not None:
                nn.init.uniform_(module.bias, -0.1, 0.1, generator=generator)
        elif isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.weight, 0.8, 1.2, generator=generator)
            nn.init.normal_(module.bias, std=0.1, generator=generator)
            nn.init.normal_(module.running_mean, std=0.1, generator=generator)
            nn.init.uniform_(module.running_var, 0.7, 1.3, generator=generator)
        elif isinstance(module, (nn.LSTM, nn.Linear)):
            for parameter in module.parameters():
                bound = (3.0 / parameter.shape[-1]) ** 0.5 if parameter.dim() > 1 else 0.1
                nn.init.uniform_(parameter, -bound, bound, generator=generator)
    # Features of about 1 leave the tanh of the attention unsaturated, and logits of a few units are a decision.
    model.attention.query.weight.mul_(0.3)
    model.attention.key.weight.mul_(0.3)
    model.classifier.weight.mul_(4.0)


@torch.no_grad()
def text_attention(num_classes: int = 37, channels: int = 256, hidden: int = 128, seed: int = 0) -> nn.Module:
    """The recogniser with seeded random weights; 37 classes are the blank, ten digits and 26 letters."""
    model = TextRecognizer(num_classes, channels, hidden)
    _seed_weights(model, seed)
    return model.eval()
