"""Detection, segmentation, depth and keypoints of transformers, made small from their configs."""

from __future__ import annotations

from networks.network import Network
from networks.packages.transformers_images import BODY, FIXED, MOVING, PIXEL_VALUES, RESNET, SQUARE, SWIN
from networks.packages.transformers_images import REQUIREMENTS as IMAGES
from networks.packages.transformers_text import IMPORTS as IMPORTS
from networks.packages.transformers_text import configured

REQUIREMENTS = IMAGES

DETR = {
    "use_timm_backbone": False,
    "use_pretrained_backbone": False,
    "backbone": None,
    "d_model": 48,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "num_queries": 12,
}
RT_DETR: dict[str, object] = {
    "d_model": 32,
    "encoder_hidden_dim": 32,
    "encoder_in_channels": [24, 32, 48],
    "decoder_in_channels": [32, 32, 32],
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "decoder_layers": 2,
    "num_queries": 20,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
}


def _detr(kind: str, **more: object):  # type: ignore[no-untyped-def]
    def make():  # type: ignore[no-untyped-def]
        import transformers

        backbone = transformers.ResNetConfig(**RESNET)
        return configured(kind, {**DETR, "backbone_config": backbone, **more}, "AutoModelForObjectDetection")()

    return make


def _with_backbone(kind: str, head: str, config: dict[str, object], backbone: str, backbone_config: dict[str, object]):  # type: ignore[no-untyped-def]
    def make():  # type: ignore[no-untyped-def]
        import transformers

        inner = transformers.AutoConfig.for_model(backbone, **backbone_config)
        return configured(kind, {**config, "backbone_config": inner}, head)()

    return make


def _above_zero(make):  # type: ignore[no-untyped-def]
    """The same with a head whose ReLU does not cut off everything that random weights give."""

    def make_lifted():  # type: ignore[no-untyped-def]
        import torch

        module = make()
        with torch.no_grad():
            module.head.conv3.bias.fill_(0.2)
        return module

    return make_lifted


NETWORKS = (
    Network(
        "segformer",
        configured(
            "segformer",
            {"hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1], "decoder_hidden_size": 32},
            "AutoModelForSemanticSegmentation",
        ),
        PIXEL_VALUES,
        MOVING,
    ),
    Network(
        "upernet",
        _with_backbone(
            "upernet",
            "AutoModelForSemanticSegmentation",
            {"hidden_size": 32, "use_auxiliary_head": False},
            "convnext",
            {
                "hidden_sizes": [16, 24, 32, 48],
                "depths": [1, 1, 1, 1],
                "out_features": ["stage1", "stage2", "stage3", "stage4"],
            },
        ),
        PIXEL_VALUES,
        MOVING,
    ),
    Network(
        "mask2former",
        _with_backbone(
            "mask2former",
            "AutoModelForUniversalSegmentation",
            {
                "feature_size": 32,
                "mask_feature_size": 32,
                "hidden_dim": 32,
                "encoder_feedforward_dim": 48,
                "encoder_layers": 1,
                "decoder_layers": 2,
                "num_attention_heads": 4,
                "dim_feedforward": 48,
                "num_queries": 8,
            },
            "swin",
            {
                **SWIN,
                "depths": [1, 1, 1, 1],
                "num_heads": [1, 1, 2, 2],
                "out_features": ["stage1", "stage2", "stage3", "stage4"],
            },
        ),
        ("pixel_values:float32[N,3,128,128]",),
        "N=1:1:2",
    ),
    Network("detr", _detr("detr"), PIXEL_VALUES, MOVING),
    Network("conditional_detr", _detr("conditional_detr"), PIXEL_VALUES, MOVING),
    Network("deformable_detr", _detr("deformable_detr", num_feature_levels=3, d_model=64), PIXEL_VALUES, MOVING),
    Network(
        "rt_detr",
        _with_backbone(
            "rt_detr",
            "AutoModelForObjectDetection",
            RT_DETR,
            "rt_detr_resnet",
            RESNET,
        ),
        PIXEL_VALUES,
        MOVING,
    ),
    Network(
        "rt_detr_v2",
        _with_backbone(
            "rt_detr_v2",
            "AutoModelForObjectDetection",
            RT_DETR,
            "rt_detr_resnet",
            RESNET,
        ),
        PIXEL_VALUES,
        MOVING,
    ),
    Network(
        "yolos",
        configured(
            "yolos", {**SQUARE, "image_size": [64, 64], "num_detection_tokens": 8}, "AutoModelForObjectDetection"
        ),
        *FIXED,
    ),
    Network(
        "dpt",
        configured(
            "dpt",
            {
                **SQUARE,
                "num_hidden_layers": 4,
                "backbone_out_indices": [0, 1, 2, 3],
                "neck_hidden_sizes": [16, 24, 32, 32],
                "fusion_hidden_size": 16,
                "is_hybrid": False,
            },
            "AutoModelForDepthEstimation",
        ),
        ("pixel_values:float32[N,3,64,64]",),
        "N=1:1:2",
    ),
    Network(
        "depth_anything",
        _above_zero(
            _with_backbone(
                "depth_anything",
                "AutoModelForDepthEstimation",
                {
                    "reassemble_hidden_size": 48,
                    "patch_size": 14,
                    "neck_hidden_sizes": [16, 24, 32, 32],
                    "fusion_hidden_size": 16,
                },
                "dinov2",
                {
                    **BODY,
                    "num_hidden_layers": 4,
                    "image_size": 70,
                    "patch_size": 14,
                    "out_features": ["stage1", "stage2", "stage3", "stage4"],
                    "apply_layernorm": True,
                    "reshape_hidden_states": False,
                },
            )
        ),
        PIXEL_VALUES,
        "N=1:1:2 H=56:70:140%14 W=56:84:140%14",
    ),
    Network(
        "glpn",
        configured(
            "glpn",
            {
                "hidden_sizes": [16, 24, 32, 48],
                "depths": [1, 1, 1, 1],
                "num_attention_heads": [1, 2, 4, 8],
                "decoder_hidden_size": 16,
            },
            "AutoModelForDepthEstimation",
        ),
        PIXEL_VALUES,
        MOVING,
    ),
    Network(
        "superpoint",
        configured(
            "superpoint",
            {
                "encoder_hidden_sizes": [8, 16, 16, 16],
                "decoder_hidden_size": 32,
                "keypoint_decoder_dim": 65,
                "descriptor_decoder_dim": 32,
            },
            "AutoModelForKeypointDetection",
        ),
        ("pixel_values:float32[1,3,64,64]",),
        "",
    ),
)
