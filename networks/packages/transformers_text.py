"""Text encoders, decoders and encoder-decoders of transformers, made small from their configs."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from networks.network import Network
from networks.packages.timm import REQUIREMENTS as TIMM

if TYPE_CHECKING:
    from torch import nn

IMPORTS = ("transformers.modeling_utils", "transformers.models.auto.modeling_auto")
REQUIREMENTS = ("transformers==5.23.0", "tokenizers", "regex", "typer", "shellingham", "typer-slim", *TIMM)
IDS = ("input_ids:int64[N,T]=0:199", "attention_mask:int64[N,T]=1:1")
MASKED = ("input_ids:int64[N,T]=0:199", "attention_mask:int64[N,T]=0:1")
SPACE = "N=1:2:4 T=4:16:48"
SMALL = {
    "vocab_size": 200,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "max_position_embeddings": 64,
}
GROUPED = {**SMALL, "num_key_value_heads": 2, "head_dim": 16, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}


def configured(kind: str, config: dict[str, Any], head: str = "AutoModel") -> Callable[[], nn.Module]:
    """A factory of a model of a config, whose forward returns tensors only."""

    def make() -> nn.Module:
        import transformers

        settings = transformers.AutoConfig.for_model(kind, **config)
        settings.use_cache = False
        module: nn.Module = getattr(transformers, head).from_config(settings)
        return module

    return make


def of_class(model: str, config: dict[str, Any], settings: str = "") -> Callable[[], nn.Module]:
    """A factory of a model by its class, dotted where it lies deeper; `settings` names another config's class."""

    def make() -> nn.Module:
        import transformers

        of_model = attrgetter(model)(transformers)
        of_config = getattr(transformers, settings) if settings else of_model.config_class
        module: nn.Module = of_model(of_config(**config))
        return module

    return make


# Kind -> what differs from SMALL.
ENCODERS: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {"max_position_embeddings": 80},
    "albert": {"embedding_size": 32},
    "electra": {"embedding_size": 32},
    "camembert": {"max_position_embeddings": 80},
    "xlm-roberta": {"max_position_embeddings": 80},
    "ernie": {},
    "deberta": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 16},
    "mpnet": {},
    "convbert": {"embedding_size": 64},
    "roformer": {"embedding_size": 64},
    "squeezebert": {
        "embedding_size": 64,
        "q_groups": 1,
        "k_groups": 1,
        "v_groups": 1,
        "post_attention_groups": 1,
        "intermediate_groups": 1,
        "output_groups": 1,
    },
    "modernbert": {"global_attn_every_n_layers": 2, "local_attention": 8, "pad_token_id": 0},
    "megatron-bert": {},
    "rembert": {"input_embedding_size": 32},
    "mobilebert": {"embedding_size": 32, "intra_bottleneck_size": 32, "true_hidden_size": 32},
    "layoutlm": {},
    "markuplm": {"max_position_embeddings": 80},
    "esm": {"position_embedding_type": "rotary", "pad_token_id": 1, "mask_token_id": 3},
}
DECODERS: dict[str, dict[str, Any]] = {
    "llama": {},
    "mistral": {"sliding_window": 8},
    "qwen2": {},
    "qwen3": {},
    "gemma": {},
    "gemma2": {"sliding_window": 8},
    "phi": {},
    "phi3": {},
    "stablelm": {},
    "starcoder2": {},
    "olmo": {},
    "olmo2": {},
    "granite": {},
    "cohere": {},
    "glm": {},
    "smollm3": {},
    "helium": {},
    "ministral": {"sliding_window": 8},
}
OLD_DECODERS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "gpt2": ({"vocab_size": 200, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64}, MASKED),
    "gpt_neo": (
        {
            "vocab_size": 200,
            "hidden_size": 64,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 8,
            "max_position_embeddings": 64,
        },
        MASKED,
    ),
    "gptj": ({"vocab_size": 200, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64, "rotary_dim": 8}, MASKED),
    "gpt_neox": ({**SMALL}, MASKED),
    "opt": (
        {
            "vocab_size": 200,
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "ffn_dim": 96,
            "word_embed_proj_dim": 64,
            "max_position_embeddings": 64,
        },
        IDS,
    ),
    "bloom": ({"vocab_size": 200, "hidden_size": 64, "n_layer": 2, "n_head": 4}, IDS),
    "mpt": ({"vocab_size": 200, "d_model": 64, "n_layers": 2, "n_heads": 4, "max_seq_len": 64}, IDS),
    "falcon": ({"vocab_size": 200, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}, IDS),
    "codegen": ({"vocab_size": 200, "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 64, "rotary_dim": 8}, IDS),
    "xglm": (
        {
            "vocab_size": 200,
            "d_model": 64,
            "num_layers": 2,
            "attention_heads": 4,
            "ffn_dim": 96,
            "max_position_embeddings": 64,
        },
        IDS,
    ),
}
T5_INPUTS = ("input_ids:int64[N,T]=0:199", "attention_mask:int64[N,T]=1:1", "decoder_input_ids:int64[N,S]=0:199")
BART = {
    "vocab_size": 200,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 96,
    "max_position_embeddings": 64,
    "decoder_start_token_id": 2,
    "pad_token_id": 1,
}
T5 = {
    "vocab_size": 200,
    "d_model": 64,
    "d_kv": 16,
    "d_ff": 96,
    "num_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}


def _with_cache() -> Callable[[], nn.Module]:
    """One step of a decoder with its cache of keys and values as inputs and outputs."""

    def make() -> nn.Module:
        import torch
        from transformers import AutoModelForCausalLM, DynamicCache, LlamaConfig

        class Step(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = AutoModelForCausalLM.from_config(LlamaConfig(**GROUPED))

            def forward(self, input_ids: Any, keys: Any, values: Any) -> Any:
                cache = DynamicCache()
                for layer in range(2):
                    cache.update(keys[layer], values[layer], layer)
                mask = torch.ones(input_ids.shape[0], keys.shape[3] + input_ids.shape[1], dtype=torch.int64)
                output = self.model(input_ids, attention_mask=mask, past_key_values=cache, use_cache=True)
                layers = output.past_key_values.layers
                grown = torch.stack([x.keys for x in layers]), torch.stack([x.values for x in layers])
                return {"logits": output.logits, "new_keys": grown[0], "new_values": grown[1]}

        return Step()

    return make


CACHE = ("input_ids:int64[N,1]=0:199", "keys:float32[2,N,2,T,16]", "values:float32[2,N,2,T,16]")

NETWORKS = (
    *(Network(k, configured(k, {**SMALL, **more}), MASKED, SPACE) for k, more in ENCODERS.items()),
    # Its landmarks divide one length, and with a mask it fails.
    Network(
        "nystromformer",
        configured("nystromformer", {**SMALL, "segment_means_seq_len": 64, "num_landmarks": 8}),
        ("input_ids:int64[N,64]=0:199",),
        "N=1:2:4",
    ),
    Network(
        "distilbert",
        configured(
            "distilbert",
            {
                "vocab_size": 200,
                "dim": 64,
                "n_layers": 2,
                "n_heads": 4,
                "hidden_dim": 96,
                "max_position_embeddings": 64,
            },
        ),
        MASKED,
        SPACE,
    ),
    Network(
        "xlm",
        configured(
            "xlm", {"vocab_size": 200, "emb_dim": 64, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64}
        ),
        MASKED,
        SPACE,
    ),
    Network(
        "fnet",
        configured("fnet", {**SMALL, "use_tpu_fourier_optimizations": False}),
        ("input_ids:int64[N,T]=0:199",),
        "N=1:2:4 T=16:16:16",
    ),
    *(
        Network(k, configured(k, {**GROUPED, **more}, "AutoModelForCausalLM"), MASKED, SPACE)
        for k, more in DECODERS.items()
    ),
    *(
        Network(k, configured(k, config, "AutoModelForCausalLM"), inputs, SPACE)
        for k, (config, inputs) in OLD_DECODERS.items()
    ),
    Network(
        "mixtral",
        configured("mixtral", {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2}, "AutoModelForCausalLM"),
        IDS,
        SPACE,
    ),
    Network(
        "mamba",
        configured(
            "mamba",
            {"vocab_size": 200, "hidden_size": 32, "num_hidden_layers": 1, "state_size": 8},
            "AutoModelForCausalLM",
        ),
        ("input_ids:int64[N,T]=0:199",),
        "N=1:2:4 T=8:8:8",
    ),
    *(
        Network(k, configured(k, T5, "AutoModelForSeq2SeqLM"), T5_INPUTS, f"{SPACE} S=1:6:16")
        for k in ("t5", "mt5", "umt5")
    ),
    *(
        Network(k, configured(k, BART, "AutoModelForSeq2SeqLM"), T5_INPUTS, f"{SPACE} S=1:6:16")
        for k in ("bart", "mbart", "pegasus", "marian", "blenderbot", "m2m_100")
    ),
    Network("llama_step_with_cache", _with_cache(), CACHE, "N=1:1:2 T=1:16:48"),
)
