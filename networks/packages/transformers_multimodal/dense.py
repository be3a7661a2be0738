"""Detectors, segmenters, depth, key points and matching."""
# ruff: noqa: E501 - a network stands on one line

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from networks.network import Network
from networks.packages.transformers_detectors import DETR, RT_DETR
from networks.packages.transformers_images import BODY, FIXED, MOVING, PIXEL_VALUES, RESNET, SQUARE, SWIN
from networks.packages.transformers_text import SMALL

if TYPE_CHECKING:
    from torch import nn

STAGES = {"out_features": ["stage1", "stage2", "stage3", "stage4"]}
SWIN_OF_FOUR = {**SWIN, "depths": [1, 1, 1, 1], "num_heads": [1, 1, 2, 2], **STAGES}
PLAIN = {**BODY, "num_hidden_layers": 4, "num_attention_heads": 4}
DINOV2 = {**PLAIN, "image_size": 56, "patch_size": 14, **STAGES, "reshape_hidden_states": False}
QUERIES = {
    "d_model": 32,
    "decoder_ffn_dim": 48,
    "decoder_layers": 2,
    "decoder_n_points": 2,
    "decoder_self_attention_heads": 4,
    "decoder_cross_attention_heads": 4,
    "num_queries": 10,
    "group_detr": 1,
    "c2f_num_blocks": 1,
}
PROMPTS = {"hidden_size": 32, "image_size": 64, "patch_size": 16, "mask_input_channels": 4}
MASKS = {"hidden_size": 32, "mlp_dim": 48, "num_attention_heads": 4, "iou_head_hidden_dim": 32}
SAM_TOWER = {**BODY, "num_attention_heads": 4, "output_channels": 32, "image_size": 64, "patch_size": 16, "window_size": 2, "global_attn_indexes": [1], "mlp_dim": 64, "num_pos_feats": 16}
SAM = {"vision_config": SAM_TOWER, "prompt_encoder_config": PROMPTS, "mask_decoder_config": MASKS}
PROMPTED = ("pixel_values:float32[N,3,64,64]", "input_points:float32[N,1,P,2]=0:64", "input_labels:int64[N,1,P]=0:1")
FOUR = {"hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1]}
GROUNDED = {
    **{k: v for k, v in DETR.items() if k.startswith(("encoder", "decoder"))},
    "d_model": 32,
    "num_queries": 8,
    "num_feature_levels": 4,
    "max_text_len": 16,
    "text_config": {**SMALL, "hidden_size": 32, "model_type": "bert"},
}
SQUARE_64 = (("pixel_values:float32[N,3,64,64]",), "N=1:1:2")
# Name -> kind, head, config, backbone and its config, inputs and dims.
KINDS: dict[str, tuple[str, str, dict[str, Any], tuple[str, dict[str, Any]] | None, tuple[tuple[str, ...], str]]] = {
    "rf_detr": ("rf_detr", "RfDetrForObjectDetection", QUERIES, ("rf_detr_dinov2", {**PLAIN, "image_size": 112, "patch_size": 14, "num_windows": 2, "out_features": ["stage2", "stage4"]}), (("pixel_values:float32[N,3,112,112]",), "N=1:1:2")),
    "lw_detr": ("lw_detr", "LwDetrForObjectDetection", {**QUERIES, "projector_scale_factors": [1.0]}, ("lw_detr_vit", {**PLAIN, "image_size": 128, "pretrain_image_size": 128, "num_windows": 4, "window_block_indices": [0, 2], "out_features": ["stage2", "stage4"]}), (("pixel_values:float32[N,3,128,128]",), "N=1:1:2")),
    "grounding_dino": ("grounding-dino", "GroundingDinoForObjectDetection", GROUNDED, ("swin", {**SWIN_OF_FOUR, "out_features": ["stage2", "stage3", "stage4"]}), (("pixel_values:float32[N,3,128,128]", "input_ids:int64[N,T]=3:199"), "N=1:1:2 T=4:8:16")),
    "deimv2": ("deimv2", "Deimv2ForObjectDetection", RT_DETR, ("hgnet_v2", {**FOUR, "embedding_size": 16, "stem_channels": [3, 8, 12], "stage_in_channels": [12, 16, 24, 32], "stage_mid_channels": [8, 8, 16, 16], "stage_out_channels": [16, 24, 32, 48], "stage_num_blocks": [1, 1, 1, 1], "out_features": ["stage2", "stage3", "stage4"]}), SQUARE_64),
    "oneformer": ("oneformer", "OneFormerForUniversalSegmentation", {"num_queries": 8, "strides": [4, 8, 16, 32], "conv_dim": 32, "mask_dim": 32, "hidden_dim": 32, "encoder_feedforward_dim": 48, "encoder_layers": 1, "decoder_layers": 3, "num_attention_heads": 4, "dim_feedforward": 48, "text_encoder_width": 32, "text_encoder_num_layers": 1, "text_encoder_vocab_size": 200, "task_seq_len": 16}, ("swin", SWIN_OF_FOUR), (("pixel_values:float32[N,3,64,64]", "task_inputs:float32[N,16]=0:199"), "N=1:1:2")),
    "eomt": ("eomt", "EomtForUniversalSegmentation", {**PLAIN, "image_size": 64, "patch_size": 16, "num_blocks": 2, "num_queries": 6, "num_upscale_blocks": 1}, None, SQUARE_64),
    "seggpt": ("seggpt", "SegGptForImageSegmentation", {**PLAIN, "num_hidden_layers": 5, "image_size": [64, 32], "pretrain_image_size": 32, "decoder_hidden_size": 8, "merge_index": 0, "intermediate_hidden_state_indices": [1, 2, 3, 4]}, None, (("pixel_values:float32[N,3,32,32]", "prompt_pixel_values:float32[N,3,32,32]", "prompt_masks:float32[N,3,32,32]"), "N=1:1:2")),
    "prompt_depth_anything": ("prompt_depth_anything", "PromptDepthAnythingForDepthEstimation", {"reassemble_hidden_size": 48, "neck_hidden_sizes": [16, 24, 32, 32], "fusion_hidden_size": 16, "depth_estimation_type": "metric"}, ("dinov2", DINOV2), (("pixel_values:float32[N,3,H,W]", "prompt_depth:float32[N,1,12,16]=0.5:4"), "N=1:1:2 H=56:70:112%14 W=56:84:112%14")),
    "depth_pro": ("depth_pro", "DepthProForDepthEstimation", {"fusion_hidden_size": 16, "patch_size": 32, "intermediate_hook_ids": [1, 0], "intermediate_feature_dims": [16, 16], "scaled_images_feature_dims": [24, 24, 16], "image_model_config": {"model_type": "dinov2", **BODY, "num_attention_heads": 4, "image_size": 32, "patch_size": 8}, "patch_model_config": {"model_type": "dinov2", **BODY, "num_attention_heads": 4, "image_size": 32, "patch_size": 8}, "fov_model_config": {"model_type": "dinov2", **BODY, "num_attention_heads": 4, "image_size": 32, "patch_size": 8}}, None, (("pixel_values:float32[N,3,128,128]",), "N=1:1:2")),
    "sam_prompted": ("sam", "SamModel", SAM, None, (PROMPTED, "N=1:1:2 P=1:2:4")),
    "sam_hq": ("sam_hq", "SamHQModel", {**SAM, "mask_decoder_config": {**MASKS, "vit_dim": 48}}, None, (PROMPTED, "N=1:1:2 P=1:2:4")),
    "vitpose_head": ("vitpose", "VitPoseForPoseEstimation", {"use_simple_decoder": False, "num_labels": 7}, ("vitpose_backbone", {**BODY, "num_attention_heads": 4, "image_size": [64, 48], "out_indices": [2]}), (("pixel_values:float32[N,3,64,48]",), "N=1:2:4")),
    "beit_segmentation": ("beit", "BeitForSemanticSegmentation", {**SQUARE, "num_hidden_layers": 4, "num_attention_heads": 4, "out_indices": [1, 2, 3, 4], "use_relative_position_bias": True}, None, SQUARE_64),
    "mobilevit_segmentation": ("mobilevit", "MobileViTForSemanticSegmentation", {"image_size": 64, "hidden_sizes": [24, 32, 40], "neck_hidden_sizes": [8, 16, 24, 24, 32, 40, 48], "aspp_out_channels": 24}, None, (PIXEL_VALUES, MOVING)),
    "mobilenet_v2_segmentation": ("mobilenet_v2", "MobileNetV2ForSemanticSegmentation", {"depth_multiplier": 0.25, "image_size": 64}, None, (PIXEL_VALUES, MOVING)),
    "detr_segmentation": ("detr", "DetrForSegmentation", {**DETR, "d_model": 64, "encoder_attention_heads": 8, "decoder_attention_heads": 8}, ("resnet", {**RESNET, "out_features": ["stage1", "stage2", "stage3", "stage4"]}), SQUARE_64),
    "superglue": ("superglue", "SuperGlueForKeypointMatching", {"hidden_size": 32, "keypoint_encoder_sizes": [16, 32], "gnn_layers_types": ["self", "cross"], "sinkhorn_iterations": 5, "keypoint_detector_config": {"model_type": "superpoint", "encoder_hidden_sizes": [8, 16, 16, 16], "decoder_hidden_size": 32, "descriptor_decoder_dim": 32}}, None, (("pixel_values:float32[1,2,3,64,64]",), "")),
    "upernet_swin": ("upernet", "UperNetForSemanticSegmentation", {"hidden_size": 32, "use_auxiliary_head": True, "auxiliary_in_channels": 96, "auxiliary_channels": 16}, ("swin", SWIN_OF_FOUR), SQUARE_64),
    "perceiver_flow": ("perceiver", "PerceiverForOpticalFlow", {"num_latents": 8, "d_latents": 32, "d_model": 322, "num_self_attends_per_block": 1, "num_self_attention_heads": 4, "num_cross_attention_heads": 1, "train_size": [16, 24]}, None, (("inputs:float32[N,2,27,16,24]",), "N=1:1:2")),
    "videomae_classifier": ("videomae", "VideoMAEForVideoClassification", {**BODY, "num_attention_heads": 4, "image_size": 32, "patch_size": 16, "num_frames": 4}, None, (("pixel_values:float32[N,4,3,32,32]",), "N=1:1:2")),
    "layoutlmv3_images": ("layoutlmv3", "LayoutLMv3ForTokenClassification", {**SMALL, "max_position_embeddings": 80, "max_2d_position_embeddings": 64, "coordinate_size": 10, "shape_size": 12, "input_size": 64}, None, (("input_ids:int64[N,T]=3:199", "bbox:int64[N,T,4]=0:40", "attention_mask:int64[N,T]=1:1", "pixel_values:float32[N,3,64,64]"), "N=1:1:2 T=4:16:40")),
    "swin_classifier": ("swin", "SwinForImageClassification", SWIN, None, FIXED),
}


def _made(kind: str, head: str, config: dict[str, Any], backbone: tuple[str, dict[str, Any]] | None) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import transformers

        inner = {} if backbone is None else {"backbone_config": transformers.AutoConfig.for_model(backbone[0], **backbone[1])}
        settings = transformers.AutoConfig.for_model(kind, **{**config, **inner})
        module: nn.Module = attrgetter(head)(transformers)(settings)
        return module

    return make


NETWORKS: tuple[Network, ...] = tuple(
    Network(name, _made(kind, head, config, backbone), *sizes) for name, (kind, head, config, backbone, sizes) in KINDS.items()
)
