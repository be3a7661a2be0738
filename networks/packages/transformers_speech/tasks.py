"""Recognisers, classifiers, vocoders and decoders of speech and music, as a user ships them."""
# ruff: noqa: E501 - a network stands on one line

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from networks.network import Network
from networks.packages.transformers_speech.towers import SAMPLES, WAVE, WAVE2VEC, WHISPER, codec
from networks.packages.transformers_text import configured, of_class

if TYPE_CHECKING:
    from torch import nn

DAC = {
    "encoder_hidden_size": 8,
    "decoder_hidden_size": 64,
    "downsampling_ratios": [2, 4],
    "upsampling_ratios": [4, 2],
    "n_codebooks": 2,
    "codebook_size": 32,
}
MIMI = {
    "hidden_size": 32,
    "num_filters": 4,
    "upsampling_ratios": [4, 2],
    "codebook_size": 32,
    "codebook_dim": 16,
    "vector_quantization_hidden_dimension": 16,
    "num_quantizers": 4,
    "upsample_groups": 32,
    "num_hidden_layers": 1,
    "intermediate_size": 48,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "sliding_window": 8,
}
CONFORMER = {
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "num_mel_bins": 16,
    "subsampling_conv_channels": 16,
    "vocab_size": 32,
    "pad_token_id": 0,
}
MOONSHINE = {
    "vocab_size": 200,
    "hidden_size": 48,
    "intermediate_size": 64,
    "encoder_num_hidden_layers": 2,
    "decoder_num_hidden_layers": 2,
    "encoder_num_attention_heads": 4,
    "decoder_num_attention_heads": 4,
}
TALKER = {
    "vocab_size": 60,
    "hidden_size": 48,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "conv_dim": [16] * 7,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
VOCODER = {
    "model_in_dim": 16,
    "upsample_initial_channel": 32,
    "upsample_rates": [4, 2],
    "upsample_kernel_sizes": [8, 4],
    "resblock_kernel_sizes": [3, 5],
    "resblock_dilation_sizes": [[1, 3], [1, 3]],
}
LISTENER = {
    "d_model": 64,
    "encoder_layers": 2,
    "encoder_attention_heads": 4,
    "encoder_ffn_dim": 96,
    "num_mel_bins": 16,
    "max_source_positions": 100,
}
XVECTOR = {**WAVE2VEC, "tdnn_dim": [16, 16, 32], "tdnn_kernel": [5, 3, 1], "tdnn_dilation": [1, 2, 1], "xvector_output_dim": 24}
WRITTEN = (*WAVE, "decoder_input_ids:int64[N,S]=0:59")
MEL = "input_features:float32[N,T,16]"


def _decoded(make_codec: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    """The waveform of a codec's codes."""

    def make() -> nn.Module:
        import torch

        class Decoded(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = make_codec()

            def forward(self, x: Any) -> Any:
                return self.model.decode(x).audio_values

        return Decoded()

    return make


# Name -> how it is made, its inputs and dims.
PARTS: dict[str, tuple[Callable[[], nn.Module], tuple[str, ...], str]] = {
    "wav2vec2_masked": (configured("wav2vec2", {**WAVE2VEC, "feat_extract_norm": "layer"}, "AutoModelForCTC"), (*WAVE, "attention_mask:int64[N,T]=1:1"), SAMPLES),
    "wavlm_xvector": (configured("wavlm", XVECTOR, "AutoModelForAudioXVector"), WAVE, "N=1:1:2 T=8000:9600:16000"),
    "wav2vec2_frames": (configured("wav2vec2", WAVE2VEC, "AutoModelForAudioFrameClassification"), WAVE, SAMPLES),
    "hubert_classifier": (configured("hubert", {**WAVE2VEC, "use_weighted_layer_sum": True}, "AutoModelForAudioClassification"), WAVE, SAMPLES),
    "sew-d": (configured("sew-d", {**WAVE2VEC, "conv_kernel": [10, 3, 3, 3, 3, 2, 2], "conv_stride": [5, 2, 2, 2, 2, 2, 2]}), WAVE, SAMPLES),
    "whisper_whole": (configured("whisper", WHISPER, "AutoModelForSpeechSeq2Seq"), ("input_features:float32[N,16,200]", "decoder_input_ids:int64[N,T]=0:199"), "N=1:1:4 T=1:8:32"),
    "whisper_classifier": (configured("whisper", WHISPER, "AutoModelForAudioClassification"), ("input_features:float32[N,16,200]",), "N=1:1:4"),
    "speech_to_text": (configured("speech_to_text", {**TALKER, "d_model": 48, "input_feat_per_channel": 16, "conv_channels": 32, "max_source_positions": 400, "max_target_positions": 64}, "AutoModelForSpeechSeq2Seq"), (MEL, "decoder_input_ids:int64[N,S]=0:59"), "N=1:1:4 T=40:80:160 S=1:6:16"),
    "speecht5_to_text": (of_class("SpeechT5ForSpeechToText", {**TALKER, "use_cache": False}), WRITTEN, f"{SAMPLES} S=1:6:16"),
    "speecht5_vocoder": (of_class("SpeechT5HifiGan", VOCODER), ("spectrogram:float32[N,T,16]",), "N=1:1:2 T=8:16:40"),
    "fastspeech2_vocoder": (of_class("FastSpeech2ConformerHifiGan", VOCODER), ("spectrogram:float32[N,T,16]",), "N=1:1:2 T=8:16:40"),
    "moonshine": (configured("moonshine", MOONSHINE, "AutoModelForSpeechSeq2Seq"), (*WAVE, "decoder_input_ids:int64[N,S]=0:199"), f"{SAMPLES} S=1:6:16"),
    "parakeet_ctc": (of_class("ParakeetForCTC", {"encoder_config": CONFORMER, "vocab_size": 32, "pad_token_id": 0}), (MEL,), "N=1:1:2 T=40:80:160"),
    "parakeet_masked": (of_class("ParakeetForCTC", {"encoder_config": CONFORMER, "vocab_size": 32, "pad_token_id": 0}), (MEL, "attention_mask:int64[N,T]=0:1"), "N=1:1:2 T=40:80:160"),
    "lasr_ctc": (of_class("LasrForCTC", {"encoder_config": CONFORMER, "vocab_size": 32, "pad_token_id": 0}), (MEL,), "N=1:1:2 T=40:80:160"),
    "granite_speech_encoder": (of_class("GraniteSpeechCTCEncoder", {"input_dim": 16, "num_layers": 2, "hidden_dim": 48, "num_heads": 4, "dim_head": 12, "context_size": 16, "max_pos_emb": 32, "output_dim": 20}, "GraniteSpeechEncoderConfig"), ("hidden_states:float32[N,T,16]",), "N=1:1:2 T=20:40:100"),
    "qwen2_audio_encoder": (of_class("Qwen2AudioEncoder", LISTENER, "Qwen2AudioEncoderConfig"), ("input_features:float32[N,16,200]",), "N=1:1:4"),
    "voxtral_encoder": (of_class("VoxtralEncoder", {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_mel_bins": 16, "max_source_positions": 100}, "VoxtralEncoderConfig"), ("input_features:float32[N,16,200]",), "N=1:1:4"),
    "seamless_speech_encoder": (of_class("models.seamless_m4t.modeling_seamless_m4t.SeamlessM4TSpeechEncoder", {"hidden_size": 48, "speech_encoder_layers": 2, "speech_encoder_attention_heads": 4, "speech_encoder_intermediate_size": 64, "feature_projection_input_dim": 16, "conv_depthwise_kernel_size": 7, "max_source_positions": 200}), (MEL,), "N=1:1:2 T=20:40:80"),
    "musicgen_decoder": (of_class("MusicgenForCausalLM", {"vocab_size": 64, "max_position_embeddings": 64, "num_hidden_layers": 2, "ffn_dim": 96, "num_attention_heads": 4, "hidden_size": 64, "use_cache": False, "pad_token_id": 64, "bos_token_id": 64}), ("input_ids:int64[4,T]=0:63",), "T=1:8:32"),
    "bark_fine": (of_class("BarkFineModel", {"block_size": 64, "input_vocab_size": 40, "output_vocab_size": 40, "num_layers": 2, "num_heads": 4, "hidden_size": 48, "n_codes_total": 4, "n_codes_given": 1}), ("codebook_idx:int64[]=2:2", "input_ids:int64[N,T,4]=0:39"), "N=1:1:2 T=4:16:64"),
    "pop2piano": (of_class("Pop2PianoForConditionalGeneration", {"vocab_size": 200, "d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4, "use_cache": False}), ("inputs_embeds:float32[N,T,64]", "decoder_input_ids:int64[N,S]=0:199"), "N=1:1:2 T=8:16:40 S=1:6:16"),
    "dia_encoder": (of_class("models.dia.modeling_dia.DiaEncoder", {"vocab_size": 60, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 16, "intermediate_size": 96}, "DiaEncoderConfig"), ("input_ids:int64[N,T]=0:59",), "N=1:1:2 T=8:16:40"),
    "dac_decoder": (codec("dac", DAC, True), ("x:float32[N,32,T]",), "N=1:1:2 T=16:32:64"),
    "mimi_encoder": (codec("mimi", MIMI, False), ("x:float32[N,1,T]",), "N=1:1:2 T=256:512:1024"),
    "mimi_decoder": (_decoded(of_class("MimiModel", MIMI)), ("x:int64[N,4,T]=0:31",), "N=1:1:2 T=8:16:40"),
}

NETWORKS = tuple(Network(name, make, inputs, space) for name, (make, inputs, space) in PARTS.items())
