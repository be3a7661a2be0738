"""Vision of transformers, made small from their configs."""

from __future__ import annotations

from networks.network import Network
from networks.packages.transformers_text import IMPORTS as IMPORTS
from networks.packages.transformers_text import REQUIREMENTS as TEXT
from networks.packages.transformers_text import configured

REQUIREMENTS = ("scipy", *TEXT)
PIXEL_VALUES = ("pixel_values:float32[N,3,H,W]",)
MOVING = "N=1:1:2 H=64:96:128%32 W=64:128:160%32"
BODY = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 96}
SQUARE = {**BODY, "image_size": 64, "patch_size": 16}
FIXED = (("pixel_values:float32[N,3,64,64]",), "N=1:2:6")
RESNET = {
    "embedding_size": 16,
    "hidden_sizes": [16, 24, 32, 48],
    "depths": [1, 1, 1, 1],
    "layer_type": "basic",
    "out_features": ["stage2", "stage3", "stage4"],
}
SWIN = {"image_size": 64, "patch_size": 4, "embed_dim": 24, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}

NETWORKS = (
    Network("vit", configured("vit", SQUARE), *FIXED),
    Network("deit", configured("deit", SQUARE), *FIXED),
    Network("beit", configured("beit", {**SQUARE, "use_relative_position_bias": True}), *FIXED),
    Network("data2vec-vision", configured("data2vec-vision", SQUARE), *FIXED),
    Network(
        "dinov2",
        configured("dinov2", {**SQUARE, "patch_size": 14, "image_size": 70}),
        PIXEL_VALUES,
        "N=1:1:2 H=56:70:140%14 W=56:84:140%14",
    ),
    Network("dinov3_vit", configured("dinov3_vit", SQUARE), PIXEL_VALUES, MOVING),
    Network("swin", configured("swin", SWIN), *FIXED),
    Network("swin_moving", configured("swin", SWIN), PIXEL_VALUES, MOVING),
    Network("swinv2", configured("swinv2", SWIN), *FIXED),
    Network(
        "swin2sr",
        configured(
            "swin2sr",
            {"image_size": 32, "embed_dim": 24, "depths": [2], "num_heads": [2], "window_size": 4, "upscale": 2},
            "AutoModelForImageToImage",
        ),
        ("pixel_values:float32[N,3,32,32]",),
        "N=1:1:2",
    ),
    Network(
        "resnet",
        configured("resnet", RESNET, "AutoModelForImageClassification"),
        PIXEL_VALUES,
        "N=1:1:4 H=33:64:97 W=40:64:101",
    ),
    Network(
        "convnext",
        configured("convnext", {"hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1]}),
        PIXEL_VALUES,
        MOVING,
    ),
    Network(
        "convnextv2",
        configured("convnextv2", {"hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1]}),
        PIXEL_VALUES,
        MOVING,
    ),
    Network(
        "regnet",
        configured(
            "regnet",
            {"embedding_size": 16, "hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1], "groups_width": 8},
        ),
        PIXEL_VALUES,
        MOVING,
    ),
    Network("mobilenet_v1", configured("mobilenet_v1", {"depth_multiplier": 0.25}), PIXEL_VALUES, MOVING),
    Network("mobilenet_v2", configured("mobilenet_v2", {"depth_multiplier": 0.35}), PIXEL_VALUES, MOVING),
    Network(
        "mobilevit",
        configured(
            "mobilevit",
            {
                "image_size": 64,
                "hidden_sizes": [24, 32, 48],
                "neck_hidden_sizes": [8, 16, 24, 32, 40, 48, 64],
                "num_attention_heads": 2,
            },
        ),
        PIXEL_VALUES,
        MOVING,
    ),
    Network(
        "efficientnet",
        configured("efficientnet", {"width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 320}),
        PIXEL_VALUES,
        MOVING,
    ),
    Network(
        "poolformer",
        configured("poolformer", {"hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1]}),
        PIXEL_VALUES,
        MOVING,
    ),
    Network(
        "pvt",
        configured(
            "pvt",
            {
                "image_size": 64,
                "hidden_sizes": [16, 24, 32, 48],
                "depths": [1, 1, 1, 1],
                "num_attention_heads": [1, 1, 2, 2],
            },
        ),
        *FIXED,
    ),
    Network(
        "levit",
        configured(
            "levit",
            {"image_size": 64, "hidden_sizes": [32, 48, 64], "num_attention_heads": [2, 3, 4], "depths": [1, 1, 1]},
        ),
        *FIXED,
    ),
    # It takes the rate of the stage's number from a list with one for each layer of the stage.
    Network("cvt", configured("cvt", {"embed_dim": [16, 32, 48], "num_heads": [1, 2, 3], "depth": [1, 2, 3]}), *FIXED),
    Network(
        "vitpose_backbone",
        configured("vitpose_backbone", {"image_size": [64, 48], "patch_size": [16, 16], **BODY}, "AutoBackbone"),
        ("pixel_values:float32[N,3,64,48]",),
        "N=1:1:4",
    ),
    Network("clip_vision_model", configured("clip_vision_model", SQUARE), *FIXED),
    Network("siglip_vision_model", configured("siglip_vision_model", SQUARE), *FIXED),
    Network(
        "videomae",
        configured("videomae", {**SQUARE, "num_frames": 4}),
        ("pixel_values:float32[N,4,3,64,64]",),
        "N=1:1:4",
    ),
    Network(
        "timesformer",
        configured("timesformer", {**SQUARE, "num_frames": 4}),
        ("pixel_values:float32[N,4,3,64,64]",),
        "N=1:1:4",
    ),
    Network(
        "vivit",
        configured("vivit", {**BODY, "image_size": 64, "num_frames": 4, "tubelet_size": [2, 16, 16]}),
        ("pixel_values:float32[N,4,3,64,64]",),
        "N=1:1:4",
    ),
)
