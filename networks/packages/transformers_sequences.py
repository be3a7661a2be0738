"""More text of transformers (long documents, mixtures of experts, state spaces), and series; made small from their configs."""
# ruff: noqa: E501 - a network stands on one line

from __future__ import annotations

from typing import Any

from networks.network import Network
from networks.packages.transformers_text import (
    BART,
    GROUPED,
    IDS,
    MASKED,
    SMALL,
    SPACE,
    T5,
    T5_INPUTS,
    configured,
    of_class,
)
from networks.packages.transformers_text import IMPORTS as IMPORTS
from networks.packages.transformers_text import REQUIREMENTS as REQUIREMENTS

TOKENS = ("input_ids:int64[N,T]=0:199",)
CAUSAL = "AutoModelForCausalLM"
EXPERTS = {"num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
LATENT = {
    "kv_lora_rank": 16,
    "q_lora_rank": 24,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16,
    "v_head_dim": 16,
    "n_routed_experts": 4,
    "n_group": 2,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "num_key_value_heads": 4,
    "head_dim": 8,
}
# Kind -> what differs from GROUPED.
MIXTURES: dict[str, dict[str, Any]] = {
    "qwen2_moe": {**EXPERTS, "shared_expert_intermediate_size": 48},
    "qwen3_moe": EXPERTS,
    "olmoe": EXPERTS,
    "gpt_oss": {**EXPERTS, "sliding_window": 8},
    "granitemoe": EXPERTS,
    "phimoe": EXPERTS,
    "minimax": {**EXPERTS, "block_size": 8, "layer_types": ["linear_attention", "full_attention"]},
    "deepseek_v2": {**EXPERTS, **LATENT},
    "deepseek_v3": {**EXPERTS, **LATENT},
    "ernie4_5_moe": {**EXPERTS, "moe_num_experts": 4, "moe_k": 2},
    "dots1": {**EXPERTS, "n_routed_experts": 4, "n_group": 1, "topk_group": 1, "n_shared_experts": 1},
    "jamba": {**EXPERTS, "use_mamba_kernels": False, "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 8},
    "jetmoe": {**EXPERTS, "kv_channels": 16},
    "flex_olmo": EXPERTS,
    "lfm2_moe": {**EXPERTS, "num_dense_layers": 1, "layer_types": ["conv", "full_attention"]},
    "hunyuan_v1_moe": {**EXPERTS, "moe_topk": 2},
    "glm4_moe_lite": {**EXPERTS, **LATENT},
    "mimo_v2_flash": {**EXPERTS, "n_routed_experts": 4, "v_head_dim": 16, "sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"]},
    "llama4_text": {**EXPERTS, "intermediate_size_mlp": 96, "attention_chunk_size": 8, "num_experts_per_tok": 1},
    "gemma3n_text": {"sliding_window": 8, "vocab_size_per_layer_input": 200, "hidden_size_per_layer_input": 16, "laurel_rank": 8, "num_kv_shared_layers": 0, "layer_types": ["sliding_attention", "full_attention"], "intermediate_size": [96, 96], "activation_sparsity_pattern": [0.0, 0.0]},
    "gemma4_text": {"sliding_window": 8, "vocab_size_per_layer_input": 200, "hidden_size_per_layer_input": 16, "layer_types": ["sliding_attention", "full_attention"]},
    "glm4_moe": {**EXPERTS, "n_routed_experts": 4, "n_group": 1, "topk_group": 1, "n_shared_experts": 1},
}
DENSE: dict[str, dict[str, Any]] = {
    "gemma3_text": {"sliding_window": 8},
    "cohere2": {"sliding_window": 8},
    "glm4": {},
    "nemotron": {},
    "persimmon": {},
    "ernie4_5": {},
    "exaone4": {"sliding_window": 8},
    "apertus": {},
    "arcee": {},
    "hunyuan_v1_dense": {},
    "seed_oss": {},
    "olmo3": {"sliding_window": 8},
    "vaultgemma": {"sliding_window": 8},
    "diffllama": {},
    "doge": {},
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "nanochat": {},
    "helium": {},
    "olmo_hybrid": {"num_key_value_heads": 4, "layer_types": ["linear_attention", "full_attention"]},
    "modernbert-decoder": {"local_attention": 8, "num_key_value_heads": 4},
    "bitnet": {},
}
STATE: dict[str, dict[str, Any]] = {
    "mamba2": {
        "vocab_size": 200,
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "state_size": 8,
        "num_heads": 4,
        "head_dim": 16,
        "n_groups": 1,
        "chunk_size": 8,
    },
    "falcon_mamba": {"vocab_size": 200, "hidden_size": 32, "num_hidden_layers": 1, "state_size": 8},
    "recurrent_gemma": {**GROUPED, "num_hidden_layers": 3, "lru_width": 64, "attention_window_size": 8},
    "qwen3_next": {
        **GROUPED,
        **EXPERTS,
        "shared_expert_intermediate_size": 32,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
        "layer_types": ["linear_attention", "full_attention"],
    },
    "bamba": {**GROUPED, "attn_layer_indices": [1], "mamba_n_heads": 4, "mamba_d_head": 32, "mamba_d_state": 8, "mamba_chunk_size": 8},
    "falcon_h1": {**GROUPED, "mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_chunk_size": 8},
    "granitemoehybrid": {**GROUPED, "layer_types": ["mamba", "attention"], "mamba_n_heads": 4, "mamba_d_head": 32, "mamba_d_state": 8, "mamba_chunk_size": 8, "num_local_experts": 4, "shared_intermediate_size": 48},
    "rwkv": {"vocab_size": 200, "hidden_size": 32, "num_hidden_layers": 2, "context_length": 64},
}
OLD: dict[str, dict[str, Any]] = {
    "biogpt": SMALL,
    "gpt_bigcode": {"vocab_size": 200, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64, "n_inner": 96},
    "ctrl": {"vocab_size": 200, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64, "dff": 96},
    "xlnet": {"vocab_size": 200, "d_model": 64, "n_layer": 2, "n_head": 4, "d_inner": 96},
}
BOXES = (*IDS, "bbox:int64[N,T,4]=0:40")
TILED = "N=1:1:2 T=16:32:64%16"
# Kind -> what differs from SMALL, the inputs, the dims.
ENCODERS: dict[str, tuple[dict[str, Any], tuple[str, ...], str]] = {
    "longformer": ({"attention_window": 8, "max_position_embeddings": 80}, IDS, TILED),
    "big_bird": ({"attention_type": "original_full"}, MASKED, SPACE),
    "canine": ({"num_hash_buckets": 64, "num_hash_functions": 4, "local_transformer_stride": 16}, IDS, TILED),
    "ibert": ({"max_position_embeddings": 80}, IDS, SPACE),
    "layoutlmv3": (
        {"max_position_embeddings": 80, "max_2d_position_embeddings": 64, "coordinate_size": 10, "shape_size": 12},
        BOXES,
        SPACE,
    ),
    "splinter": ({}, MASKED, SPACE),
    "yoso": ({"use_expectation": True, "max_position_embeddings": 80}, IDS, SPACE),
    "nomic_bert": ({}, MASKED, SPACE),
    "eurobert": ({"pad_token_id": 0}, MASKED, SPACE),
    "data2vec-text": ({"max_position_embeddings": 80}, MASKED, SPACE),
    "xmod": ({"max_position_embeddings": 80, "default_language": "en_XX"}, MASKED, SPACE),
    "tapas": ({"type_vocab_sizes": [3, 256, 256, 2, 256, 256, 10]}, (*IDS, "token_type_ids:int64[N,T,7]=0:1"), SPACE),
    "bros": ({}, (*IDS, "bbox:float32[N,T,8]=0:1"), SPACE),
    "luke": ({"max_position_embeddings": 80, "entity_vocab_size": 50, "entity_emb_size": 32}, IDS, SPACE),
    "bert-generation": ({}, MASKED, SPACE),
    "visual_bert": ({"visual_embedding_dim": 32}, IDS, SPACE),
    "roberta-prelayernorm": ({"max_position_embeddings": 80}, MASKED, SPACE),
    "gpt_neox_japanese": ({}, IDS, SPACE),
}
PROPHET = {
    "vocab_size": 200,
    "hidden_size": 64,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 96,
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
    "num_encoder_attention_heads": 4,
    "num_decoder_attention_heads": 4,
    "max_position_embeddings": 64,
}
FORECAST = {
    "context_length": 24,
    "prediction_length": 6,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "lags_sequence": [1, 2, 3],
    "num_time_features": 2,
    "use_cache": False,
}
PATCHED = {"context_length": 32, "patch_length": 8, "patch_stride": 4, "num_input_channels": 3, "prediction_length": 6, "d_model": 32}
PAST = (
    "past_values:float32[N,27]=-2:2",
    "past_time_features:float32[N,27,2]=-0.5:0.5",
    "past_observed_mask:float32[N,27]=0:1",
    "future_values:float32[N,6]=-2:2",
    "future_time_features:float32[N,6,2]=-0.5:0.5",
)
WINDOW = ("past_values:float32[N,32,3]=-3:3",)
OBSERVED = (*WINDOW, "past_observed_mask:bool[N,32,3]")
# Name -> class, config and inputs.
SERIES: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "patchtst_prediction": ("PatchTSTForPrediction", {**PATCHED, "loss": "mse"}, OBSERVED),
    "patchtst_distribution": ("PatchTSTForPrediction", {**PATCHED, "loss": "nll", "use_cls_token": True, "norm_type": "layernorm"}, WINDOW),
    "patchtst_classification": ("PatchTSTForClassification", {**PATCHED, "channel_attention": True, "num_targets": 4}, WINDOW),
    "patchtst_regression": ("PatchTSTForRegression", {**PATCHED, "scaling": "mean", "num_targets": 2}, OBSERVED),
    "patchtsmixer_prediction": ("PatchTSMixerForPrediction", {**PATCHED, "d_model": 16}, OBSERVED),
    "patchtsmixer_mixing": ("PatchTSMixerForPrediction", {**PATCHED, "mode": "mix_channel", "self_attn": True, "norm_mlp": "BatchNorm", "scaling": "mean"}, WINDOW),
    "patchtsmixer_classification": ("PatchTSMixerForTimeSeriesClassification", {**PATCHED, "head_aggregation": "avg_pool"}, WINDOW),
    "time_series_transformer": ("TimeSeriesTransformerModel", FORECAST, PAST),
    "autoformer": ("AutoformerModel", {**FORECAST, "moving_average": 5, "label_length": 6}, PAST),
}

NETWORKS = (
    *(Network(k, configured(k, {**SMALL, **more}), inputs, space) for k, (more, inputs, space) in ENCODERS.items()),
    *(
        Network(k, configured(k, {**T5, **more}, "AutoModelForSeq2SeqLM"), T5_INPUTS, f"{SPACE} S=1:6:16")
        for k, more in {
            "switch_transformers": {"num_experts": 4, "num_decoder_layers": 2},
            "longt5": {"local_radius": 7},
        }.items()
    ),
    *(
        Network(k, configured(k, {**BART, **more}, "AutoModelForSeq2SeqLM"), T5_INPUTS, f"{SPACE} S=1:6:16")
        for k, more in {
            "plbart": {},
            "blenderbot-small": {},
            "nllb-moe": {"num_experts": 4, "encoder_sparse_step": 2, "decoder_sparse_step": 2},
            "bigbird_pegasus": {"attention_type": "original_full"},
        }.items()
    ),
    Network("prophetnet", configured("prophetnet", PROPHET), T5_INPUTS, f"{SPACE} S=2:6:16"),
    *(Network(k, configured(k, {**GROUPED, **more}, CAUSAL), IDS, SPACE) for k, more in MIXTURES.items()),
    *(Network(k, configured(k, {**GROUPED, **more}, CAUSAL), MASKED, SPACE) for k, more in DENSE.items()),
    *(Network(k, configured(k, config, CAUSAL), TOKENS, "N=1:2:4 T=8:8:8") for k, config in STATE.items()),
    *(Network(k, configured(k, config, CAUSAL), IDS, SPACE) for k, config in OLD.items()),
    *(Network(k, of_class(model, config), inputs, "N=1:2:4") for k, (model, config, inputs) in SERIES.items()),
)
