"""Classifiers, segmentation, flow, video and detectors of torchvision."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from networks.network import ANY_PIXELS, Network, batch_only

if TYPE_CHECKING:
    from torch import nn

REQUIREMENTS = ("torchvision==0.28.0", "pillow")

CLIP = ("x:float32[N,3,T,H,W]",)
CLIP_SPACE = "N=1:1:2 T=8:8:16%8 H=64:64:96%32 W=64:96:96%32"
PHOTO = ("x:float32[3,H,W]=0:1",)


def _of(name: str, **options: object) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import torchvision

        keywords = {"weights": None, **options}
        if name in ("googlenet", "inception_v3"):
            keywords |= {"init_weights": False, "aux_logits": False}
        module: nn.Module = torchvision.models.get_model(name, **keywords)
        return module

    return make


def _detector(name: str, **options: object) -> Callable[[], nn.Module]:
    """A detector takes a list of images; a user who converts one gives a single image."""

    def make() -> nn.Module:
        import torch

        class OneImage(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.detector = _of(name, weights_backbone=None, **options)()
                if name in SPREADS:
                    factor, self.detector.score_thresh = SPREADS[name]
                    head = self.detector.head.classification_head
                    for layer in getattr(head, "module_list", None) or [head.cls_logits]:
                        layer.weight.data.mul_(factor)
                if name in BOX_SPREADS:
                    heads = self.detector.roi_heads
                    factor, heads.score_thresh = BOX_SPREADS[name]
                    heads.box_predictor.cls_score.weight.data.mul_(factor)

            def forward(self, x: torch.Tensor) -> object:
                return self.detector([x])[0]

        return OneImage()

    return make


ANY_SIZE = (
    "resnet18", "resnext50_32x4d", "wide_resnet50_2", "densenet121", "squeezenet1_1", "shufflenet_v2_x0_5",
    "mobilenet_v2", "mobilenet_v3_small", "mobilenet_v3_large", "mnasnet0_5", "regnet_x_400mf", "regnet_y_400mf",
    "efficientnet_b0", "efficientnet_v2_s", "convnext_tiny", "googlenet",
)  # fmt: skip
MOVING_WINDOWS = ("swin_t", "swin_v2_t")
FIXED = {"vit_b_32": 224, "maxvit_t": 224}
LARGE_IMAGES = ("alexnet", "vgg11", "inception_v3")
SEGMENTERS = ("fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large")
VIDEO = ("r3d_18", "mc3_18", "r2plus1d_18", "swin3d_t")
# These resize every image to the size that they have anchors for.
FIXED_DETECTORS = {"ssdlite320_mobilenet_v3_large": 320, "ssd300_vgg16": 300}
# Random weights score every anchor alike to the last bits, and under these detectors' thresholds: a file without its
# suppression would be equal. Heads with weights so many times as large score further apart, and over a threshold like
# this are about ten candidates; of hundreds of random ones the order is decided by rounding. The logits of a VGG are so
# large that its best scores are 1 but for the last bits.
SPREADS = {
    "retinanet_resnet50_fpn": (15.0, 0.102),
    "fcos_resnet50_fpn": (10.0, 0.866),
    "ssd300_vgg16": (0.3, 0.85),
}
# The same of detectors in two stages, whose second one has the classes.
BOX_SPREADS = {
    "fasterrcnn_mobilenet_v3_large_320_fpn": (30.0, 0.6),
    "maskrcnn_resnet50_fpn": (3.0, 0.23),
    "keypointrcnn_resnet50_fpn": (1.0, 0.555),
}
DETECTORS = (
    "retinanet_resnet50_fpn",
    "fcos_resnet50_fpn",
    "fasterrcnn_mobilenet_v3_large_320_fpn",
    "maskrcnn_resnet50_fpn",
    "keypointrcnn_resnet50_fpn",
)

NETWORKS = (
    *(Network(n, _of(n), space=ANY_PIXELS) for n in ANY_SIZE),
    *(Network(n, _of(n)) for n in MOVING_WINDOWS),
    *(Network(n, _of(n), **batch_only(s)) for n, s in FIXED.items()),
    *(Network(n, _of(n), space="N=1:1:2 H=128:160:192 W=128:160:192") for n in LARGE_IMAGES),
    *(Network(n, _of(n, weights_backbone=None), space="N=1:1:2 H=96:128:161 W=96:128:161") for n in SEGMENTERS),
    *(Network(n, _of(n), CLIP, CLIP_SPACE) for n in VIDEO),
    # Its last pooling is over 7 by 7.
    Network("s3d", _of("s3d"), CLIP, "N=1:1:1 T=16:16:24%8 H=224:224:256%32 W=224:224:256%32"),
    Network("mvit_v1_b", _of("mvit_v1_b"), ("x:float32[N,3,16,224,224]",), "N=1:1:2"),
    Network("mvit_v2_s", _of("mvit_v2_s"), ("x:float32[N,3,16,224,224]",), "N=1:1:2"),
    Network(
        "raft_small",
        _of("raft_small"),
        ("image1:float32[N,3,H,W]", "image2:float32[N,3,H,W]"),
        "N=1:1:2 H=128:128:160%8 W=128:136:160%8",
    ),
    *(Network(n, _detector(n), (f"x:float32[3,{s},{s}]=0:1",), "") for n, s in FIXED_DETECTORS.items()),
    *(Network(n, _detector(n), PHOTO, "H=200:240:320 W=200:256:320") for n in DETECTORS),
)
