"""Image and text towers, alone and joined."""
# ruff: noqa: E501 - a network stands on one line

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from networks.network import Network
from networks.packages.transformers_images import BODY, FIXED, SQUARE, SWIN
from networks.packages.transformers_text import SMALL, configured

if TYPE_CHECKING:
    from torch import nn

PIXELS = "pixel_values:float32[N,3,64,64]"
TOKENS = "input_ids:int64[M,T]=3:199"
MASK = "attention_mask:int64[M,T]=1:1"
PAIRED = (PIXELS, "input_ids:int64[N,T]=3:199", "attention_mask:int64[N,T]=1:1")
BOTH = "N=1:2:4 M=1:3:6 T=4:8:16"
JOINED = "N=1:2:4 T=4:8:16"
TEXT = {**SMALL, "hidden_size": 48, "projection_dim": 32, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
IMAGE = {**SQUARE, "projection_dim": 32, "num_attention_heads": 4}
PAIR = {"text_config": TEXT, "vision_config": IMAGE, "projection_dim": 32}
CONDITIONED = {"extract_layers": [0, 1], "reduce_dim": 32, "decoder_num_attention_heads": 4, "decoder_intermediate_size": 64}
# Name -> kind, head, config, inputs and dims.
KINDS: dict[str, tuple[str, str, dict[str, Any], tuple[str, ...], str]] = {
    "clip": ("clip", "AutoModel", PAIR, (PIXELS, TOKENS, MASK), BOTH),
    "clip_text_projection": ("clip_text_model", "AutoModelForTextEncoding", TEXT, ("input_ids:int64[M,T]=3:199",), "M=1:3:6 T=4:8:16"),
    "siglip": ("siglip", "AutoModel", PAIR, (PIXELS, "input_ids:int64[M,T]=3:199"), BOTH),
    "altclip": ("altclip", "AutoModel", {**PAIR, "text_config": {**TEXT, "max_position_embeddings": 80, "project_dim": 32}}, (PIXELS, TOKENS, MASK), BOTH),
    "chinese_clip": ("chinese_clip", "AutoModel", PAIR, (PIXELS, TOKENS, MASK), BOTH),
    "metaclip_2": ("metaclip_2", "AutoModel", PAIR, (PIXELS, TOKENS, MASK), BOTH),
    "align": ("align", "AutoModel", {"text_config": {**TEXT, "projection_dim": 80}, "vision_config": {"image_size": 64, "hidden_dim": 80, "width_coefficient": 0.25, "depth_coefficient": 0.25}, "projection_dim": 80}, (PIXELS, TOKENS, MASK), BOTH),
    "groupvit": ("groupvit", "AutoModel", {"text_config": TEXT, "vision_config": {**IMAGE, "depths": [1, 1, 1], "num_group_tokens": [8, 4, 0], "num_output_groups": [8, 4, 4]}, "projection_dim": 32, "projection_intermediate_dim": 48}, (PIXELS, TOKENS, MASK), BOTH),
    "flava_multimodal": ("flava_multimodal_model", "", {**BODY, "num_attention_heads": 4}, ("hidden_states:float32[N,T,48]",), JOINED),
    "clipseg": ("clipseg", "CLIPSegForImageSegmentation", {**PAIR, **CONDITIONED}, PAIRED, "N=2:2:4 T=4:8:16"),
    "owlvit": ("owlvit", "AutoModelForZeroShotObjectDetection", {**PAIR, "projection_dim": 48}, (PIXELS, "input_ids:int64[N,8]=3:199", "attention_mask:int64[N,8]=1:1"), "N=1:2:4"),
    "owlv2": ("owlv2", "AutoModelForZeroShotObjectDetection", {**PAIR, "projection_dim": 48}, (PIXELS, "input_ids:int64[N,8]=3:199", "attention_mask:int64[N,8]=1:1"), "N=1:2:4"),
    "blip_retrieval": ("blip", "BlipForImageTextRetrieval", {"text_config": {**TEXT, "encoder_hidden_size": 48}, "vision_config": IMAGE, "image_text_hidden_size": 32}, PAIRED, JOINED),
    "git": ("git", "AutoModelForImageTextToText", {**TEXT, "vision_config": IMAGE}, PAIRED, JOINED),
    "bridgetower": ("bridgetower", "AutoModel", {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "text_config": {**TEXT, "max_position_embeddings": 80}, "vision_config": {"hidden_size": 64, "num_hidden_layers": 3, "image_size": 64, "patch_size": 16}}, (*PAIRED, "pixel_mask:int64[N,64,64]=1:1"), JOINED),
    "perceiver_image": ("perceiver", "PerceiverForImageClassificationConvProcessing", {"num_latents": 8, "d_latents": 48, "d_model": 64, "num_self_attends_per_block": 2, "num_self_attention_heads": 4, "num_cross_attention_heads": 1}, ("inputs:float32[N,3,224,224]",), "N=1:1:2"),
    "blip_2_qformer": ("blip_2_qformer", "", {**TEXT, "encoder_hidden_size": 48, "cross_attention_frequency": 1}, ("query_embeds:float32[N,8,48]", "encoder_hidden_states:float32[N,T,48]"), JOINED),
    "donut-swin": ("donut-swin", "AutoModel", SWIN, *FIXED),
    "trocr": ("trocr", "AutoModelForCausalLM", {"vocab_size": 200, "d_model": 48, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 64, "max_position_embeddings": 64, "cross_attention_hidden_size": 48}, ("input_ids:int64[N,T]=3:199", "encoder_hidden_states:float32[N,S,48]"), "N=1:2:4 T=1:8:16 S=4:10:20"),
    "mlcd_vision_model": ("mlcd_vision_model", "AutoModel", IMAGE, *FIXED),
    "pixio": ("pixio", "AutoModel", IMAGE, *FIXED),
    "pixtral": ("pixtral", "AutoModel", {**IMAGE, "head_dim": 12}, *FIXED),
    "internvl_vision": ("internvl_vision", "AutoModel", {**IMAGE, "image_size": [64, 64], "patch_size": [16, 16]}, *FIXED),
    "llama4_vision_model": ("llama4_vision_model", "", {**IMAGE, "vision_output_dim": 48, "projector_input_dim": 48, "projector_output_dim": 48, "intermediate_size": 192}, *FIXED),
    "idefics3_vision": ("idefics3_vision", "AutoModel", IMAGE, *FIXED),
    "pix2struct_vision_model": ("pix2struct_vision_model", "", {"hidden_size": 48, "patch_embed_hidden_size": 32, "d_ff": 64, "d_kv": 12, "num_hidden_layers": 2, "num_attention_heads": 4, "seq_len": 64}, ("flattened_patches:float32[N,T,34]=0:16",), "N=1:2:4 T=16:32:64"),
}


def _made(kind: str, head: str, config: dict[str, Any]) -> Callable[[], nn.Module]:
    """By an Auto class, by the class of a head, or by the class that the config belongs to."""

    def make() -> nn.Module:
        import transformers

        if head.startswith("Auto"):
            return configured(kind, config, head)()
        settings = transformers.AutoConfig.for_model(kind, **config)
        settings.use_cache = False
        module: nn.Module = getattr(transformers, head or type(settings).__name__.replace("Config", "Model"))(settings)
        return module

    return make


NETWORKS = tuple(
    Network(name, _made(kind, head, config), inputs, space) for name, (kind, head, config, inputs, space) in KINDS.items()
)
