"""Vision of transformers, made small from their configs."""

from __future__ import annotations

from typing import Any

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
QUERIES = {
    "num_queries": 10,
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
}
# Kind -> config, head, inputs and dims.
KINDS: dict[str, tuple[dict[str, Any], str, tuple[tuple[str, ...], str]]] = {
    "hgnet_v2": (
        {
            "embedding_size": 16,
            "stem_channels": [3, 8, 12],
            "stage_in_channels": [12, 16, 24, 32],
            "stage_mid_channels": [8, 8, 16, 16],
            "stage_out_channels": [16, 24, 32, 48],
            "stage_num_blocks": [1, 1, 1, 1],
            "hidden_sizes": [16, 24, 32, 48],
            "depths": [1, 1, 1, 1],
        },
        "AutoBackbone",
        (PIXEL_VALUES, MOVING),
    ),
    "hiera": (
        {"image_size": [64, 64], "embed_dim": 24, "depths": [1, 1, 1, 1], "num_heads": [1, 2, 4, 8]},
        "AutoModel",
        FIXED,
    ),
    "focalnet": (
        {"image_size": 64, "embed_dim": 24, "depths": [1, 1, 1, 1], "hidden_sizes": [24, 48, 96, 192]},
        "AutoModel",
        FIXED,
    ),
    "mobilevitv2": ({"image_size": 64, "width_multiplier": 0.25}, "AutoModel", (PIXEL_VALUES, MOVING)),
    "pvt_v2": (
        {
            "image_size": 64,
            "hidden_sizes": [16, 24, 32, 48],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 1, 2, 2],
        },
        "AutoModel",
        (PIXEL_VALUES, MOVING),
    ),
    "vit_msn": (SQUARE, "AutoModel", FIXED),
    "ijepa": (SQUARE, "AutoModel", FIXED),
    "dinov2_with_registers": (
        {**SQUARE, "patch_size": 14, "image_size": 70},
        "AutoModel",
        (PIXEL_VALUES, "N=1:1:2 H=56:70:140%14 W=56:84:140%14"),
    ),
    "dinov3_convnext": (
        {"hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1]},
        "AutoModel",
        (PIXEL_VALUES, MOVING),
    ),
    "aimv2_vision_model": (SQUARE, "AutoModel", FIXED),
    "swiftformer": (
        {"image_size": 64, "depths": [1, 1, 1, 1], "embed_dims": [16, 24, 32, 48]},
        "AutoModel",
        (PIXEL_VALUES, MOVING),
    ),
    "bit": (
        {"embedding_size": 16, "hidden_sizes": [32, 64], "depths": [1, 1], "num_groups": 4},
        "AutoModel",
        (PIXEL_VALUES, MOVING),
    ),
    "vitdet": (
        {
            **BODY,
            "image_size": 64,
            "pretrain_image_size": 64,
            "patch_size": 16,
            "window_size": 2,
            "window_block_indices": [0],
            "use_relative_position_embeddings": True,
        },
        "AutoModel",
        FIXED,
    ),
    "textnet": (
        {
            "conv_layer_kernel_sizes": [[[3, 3]], [[3, 1], [1, 3]], [[3, 3]], [[1, 3]]],
            "conv_layer_strides": [[2], [1, 2], [2], [2]],
            "hidden_sizes": [8, 8, 16, 24, 32],
            "stem_out_channels": 8,
        },
        "AutoModel", (PIXEL_VALUES, MOVING),
    ),
    "sam_vision_model": (
        {
            **BODY,
            "image_size": 64,
            "patch_size": 16,
            "output_channels": 24,
            "window_size": 2,
            "global_attn_indexes": [1],
            "mlp_dim": 96,
        },
        "AutoModel",
        FIXED,
    ),
    "sam2_hiera_det_model": (
        {
            "hidden_size": 24,
            "image_size": [64, 64],
            "blocks_per_stage": [1, 1, 2, 1],
            "embed_dim_per_stage": [24, 48, 96, 192],
            "num_attention_heads_per_stage": [1, 2, 4, 8],
            "global_attention_blocks": [3],
        },
        "AutoModel",
        FIXED,
    ),
    "siglip2_vision_model": (
        {**BODY, "num_patches": 16, "patch_size": 16},
        "AutoModel",
        (
            (
                "pixel_values:float32[N,16,768]",
                "pixel_attention_mask:int64[N,16]=1:1",
                "spatial_shapes:int64[N,2]=4:4",
            ),
            "N=1:2:6",
        ),
    ),
    "table-transformer": (
        {**QUERIES, "use_timm_backbone": False, "backbone_config": None},
        "AutoModelForObjectDetection",
        (("pixel_values:float32[N,3,96,128]",), "N=1:1:2"),
    ),
    "dab-detr": (
        {**QUERIES, "hidden_size": 32, "use_timm_backbone": False, "backbone_config": None},
        "AutoModelForObjectDetection",
        (("pixel_values:float32[N,3,96,128]",), "N=1:1:2"),
    ),
    "d_fine": (
        {
            "d_model": 32,
            "encoder_hidden_dim": 32,
            "decoder_in_channels": [32, 32, 32],
            "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 48,
            "num_queries": 12,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "num_denoising": 0,
        },
        "AutoModelForObjectDetection",
        (("pixel_values:float32[N,3,96,128]",), "N=1:1:2"),
    ),
    "maskformer": ({}, "AutoModelForInstanceSegmentation", (("pixel_values:float32[N,3,64,64]",), "N=1:1:2")),
    "zoedepth": ({}, "AutoModelForDepthEstimation", (("pixel_values:float32[N,3,64,64]",), "N=1:1:2")),
    "imagegpt": (
        {"vocab_size": 33, "n_embd": 48, "n_layer": 2, "n_head": 4, "n_positions": 64},
        "AutoModel", (("input_ids:int64[N,T]=0:31",), "N=1:1:2 T=4:16:64"),
    ),
    "mgp-str": (
        {
            "image_size": [32, 64],
            "patch_size": 8,
            "hidden_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 3,
            "max_token_length": 9,
            "num_character_labels": 20,
            "num_bpe_labels": 40,
            "num_wordpiece_labels": 40,
        },
        "AutoModel",
        (("pixel_values:float32[N,3,32,64]",), "N=1:1:4"),
    ),
    "pp_lcnet": ({}, "AutoModelForImageClassification", (PIXEL_VALUES, MOVING)),
    "pp_ocrv5_mobile_det": ({}, "AutoModelForObjectDetection", (PIXEL_VALUES, MOVING)),
    "slanet": ({}, "AutoModelForTableRecognition", (("pixel_values:float32[N,3,128,128]",), "N=1:1:2")),
    "vjepa2": (
        {
            **BODY,
            "crop_size": 64,
            "patch_size": 16,
            "frames_per_clip": 4,
            "pred_hidden_size": 48,
            "pred_num_hidden_layers": 1,
            "pred_num_attention_heads": 3,
        },
        "AutoModel",
        (("pixel_values_videos:float32[N,4,3,64,64]",), "N=1:1:2"),
    ),
}

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
    *(Network(k, configured(k, config, head), *form) for k, (config, head, form) in KINDS.items()),
)
