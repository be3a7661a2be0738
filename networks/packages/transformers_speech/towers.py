"""Encoders, decoders and codecs of speech and music."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from networks.network import Network
from networks.packages.transformers_text import configured, of_class

if TYPE_CHECKING:
    from torch import nn

WAVE = ("input_values:float32[N,T]",)
SAMPLES = "N=1:1:2 T=3200:4800:8000"
WAVE2VEC = {
    "vocab_size": 32,
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "conv_dim": [16] * 7,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
WHISPER = {
    "vocab_size": 200,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 96,
    "max_source_positions": 100,
    "max_target_positions": 64,
    "num_mel_bins": 16,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}


def _part(kind: str, config: dict[str, Any], take: Callable[[Any], Any]) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        part: nn.Module = take(configured(kind, config)())
        return part

    return make


def _decoder_step() -> Callable[[], nn.Module]:
    """Whisper's decoder for some tokens, over the encoder's states."""

    def make() -> nn.Module:
        import torch

        class Step(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.whisper = configured("whisper", WHISPER)()

            def forward(self, tokens: Any, states: Any) -> Any:
                return self.whisper.decoder(tokens, encoder_hidden_states=states, use_cache=False).last_hidden_state

        return Step()

    return make


def codec(kind: str, config: dict[str, Any], decodes: bool) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import torch

        class Codec(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.codec = configured(kind, config)()

            def forward(self, x: Any) -> Any:
                return self.codec.decoder(x) if decodes else self.codec.encoder(x)

        return Codec()

    return make


ENCODEC = {"num_filters": 4, "hidden_size": 16, "upsampling_ratios": [4, 2], "codebook_size": 32, "codebook_dim": 16}
NETWORKS = (
    *(
        Network(k, configured(k, WAVE2VEC), WAVE, SAMPLES)
        for k in ("wav2vec2", "hubert", "wavlm", "unispeech", "unispeech-sat", "data2vec-audio")
    ),
    Network("wav2vec2_ctc", configured("wav2vec2", WAVE2VEC, "AutoModelForCTC"), WAVE, SAMPLES),
    Network(
        "sew",
        configured(
            "sew",
            {
                **WAVE2VEC,
                "squeeze_factor": 2,
                "conv_kernel": [10, 3, 3, 3, 3, 2, 2],
                "conv_stride": [5, 2, 2, 2, 2, 2, 2],
            },
        ),
        WAVE,
        SAMPLES,
    ),
    Network(
        "wav2vec2-conformer",
        configured("wav2vec2-conformer", {**WAVE2VEC, "conv_depthwise_kernel_size": 7}),
        WAVE,
        SAMPLES,
    ),
    Network(
        "wav2vec2-bert",
        configured("wav2vec2-bert", {**WAVE2VEC, "feature_projection_input_dim": 32}),
        ("input_features:float32[N,T,32]",),
        "N=1:1:2 T=20:40:80",
    ),
    Network(
        "whisper_encoder",
        _part("whisper", WHISPER, lambda m: m.encoder),
        ("input_features:float32[N,16,200]",),
        "N=1:1:4",
    ),
    Network(
        "whisper_decoder", _decoder_step(), ("tokens:int64[N,T]=0:199", "states:float32[N,100,64]"), "N=1:1:4 T=1:8:32"
    ),
    Network(
        "speech_to_text_encoder",
        _part(
            "speech_to_text",
            {
                "vocab_size": 200,
                "d_model": 64,
                "encoder_layers": 2,
                "decoder_layers": 1,
                "encoder_attention_heads": 4,
                "decoder_attention_heads": 4,
                "encoder_ffn_dim": 96,
                "decoder_ffn_dim": 96,
                "max_source_positions": 400,
                "input_feat_per_channel": 16,
                "conv_channels": 32,
            },
            lambda m: m.encoder,
        ),
        ("input_features:float32[N,T,16]",),
        "N=1:1:4 T=40:80:160",
    ),
    Network(
        "audio-spectrogram-transformer",
        configured(
            "audio-spectrogram-transformer",
            {
                "hidden_size": 48,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "intermediate_size": 64,
                "max_length": 64,
                "num_mel_bins": 32,
            },
        ),
        ("input_values:float32[N,64,32]",),
        "N=1:1:4",
    ),
    Network("encodec_encoder", codec("encodec", ENCODEC, False), ("x:float32[N,1,T]",), "N=1:1:2 T=256:512:1024"),
    Network("encodec_decoder", codec("encodec", ENCODEC, True), ("x:float32[N,16,T]",), "N=1:1:2 T=16:32:64"),
    Network(
        "dac_encoder",
        codec(
            "dac",
            {
                "encoder_hidden_size": 8,
                "decoder_hidden_size": 64,
                "downsampling_ratios": [2, 4],
                "upsampling_ratios": [4, 2],
                "n_codebooks": 2,
            },
            False,
        ),
        ("x:float32[N,1,T]",),
        "N=1:1:2 T=256:512:1024%8",
    ),
    Network(
        "univnet",
        configured("univnet", {}),
        ("input_features:float32[N,T,100]", "noise_sequence:float32[N,T,64]"),
        "N=1:1:1 T=16:16:24",
    ),
    # Without its noise: a module that draws is refused.
    Network(
        "vits",
        configured("vits", {"vocab_size": 40, "noise_scale": 0.0, "noise_scale_duration": 0.0}),
        ("input_ids:int64[1,T]=0:39",),
        "T=8:12:16",
    ),
    Network(
        "clap_audio_model",
        of_class(
            "ClapAudioModel",
            {
                "spec_size": 64,
                "num_mel_bins": 16,
                "patch_embeds_hidden_size": 16,
                "hidden_size": 64,
                "depths": [1, 1],
                "num_attention_heads": [2, 2],
                "window_size": 4,
                "num_hidden_layers": 2,
            },
        ),
        ("input_features:float32[N,1,T,16]",),
        "N=1:1:2 T=256:256:256",
    ),
)
