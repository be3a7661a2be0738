"""P-Net, the first stage of MTCNN, with its trained weights.

Structure from Zhang et al., "Joint Face Detection and Alignment using Multi-task Cascaded Convolutional Networks"
(2016): fully convolutional, run over a pyramid of image sizes, so height and width are dynamic. The weights come from
the wheel of facenet-pytorch (MIT licence); it is read as a file and never imported, since the package itself needs
torchvision and an old torch.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

INSTALL = "pip install --no-deps facenet-pytorch"


class PNet(nn.Module):
    """images [N, 3, H, W] (RGB, (value - 127.5) / 128, H and W >= 12) -> boxes and scores of every 12 x 12 window.

    boxes [N, 4, h, w] are offsets relative to the window, scores [N, 2, h, w] the probabilities of no face and face;
    h = ceil((H - 2) / 2) - 4 and w likewise: one window each 2 pixels.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 10, 3)
        self.prelu1 = nn.PReLU(10)
        # The Caffe original rounds the size after pooling up.
        self.pool1 = nn.MaxPool2d(2, stride=2, ceil_mode=True)
        self.conv2 = nn.Conv2d(10, 16, 3)
        self.prelu2 = nn.PReLU(16)
        self.conv3 = nn.Conv2d(16, 32, 3)
        self.prelu3 = nn.PReLU(32)
        self.conv4_1 = nn.Conv2d(32, 2, 1)
        self.conv4_2 = nn.Conv2d(32, 4, 1)

    def forward(self, images: Tensor) -> dict[str, Tensor]:
        x = self.pool1(self.prelu1(self.conv1(images)))
        x = self.prelu2(self.conv2(x))
        x = self.prelu3(self.conv3(x))
        return {"boxes": self.conv4_2(x), "scores": F.softmax(self.conv4_1(x), dim=1)}


def trained_weights() -> Path:
    """The file with P-Net's weights in the installed facenet-pytorch. Raises RuntimeError when it is not there."""
    try:
        path = Path(str(distribution("facenet-pytorch").locate_file("facenet_pytorch/data/pnet.pt")))
    except PackageNotFoundError:
        raise RuntimeError(f"the trained weights are in the wheel of facenet-pytorch: {INSTALL}") from None
    if not path.is_file():
        raise RuntimeError(f"the installed facenet-pytorch has no data/pnet.pt: {INSTALL} --force-reinstall")
    return path


def pnet() -> nn.Module:
    """P-Net with the trained weights."""
    model = PNet()
    model.load_state_dict(torch.load(trained_weights(), map_location="cpu", weights_only=True))
    return model.eval()
