"""Speech networks of torchaudio, small."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from networks.network import Network

if TYPE_CHECKING:
    from torch import nn

# Built for CUDA; transformers and diffusers import it wherever they find it, and fail.
ALONE = True
REQUIREMENTS = ("torchaudio==2.11.0",)
# Its library does not load beside a CPU build of torch; torchaudio does without one that is not there.
REMOVED = ("torchaudio/lib/*.so",)


def _of(name: str, take: Callable[[Any], Any] = lambda m: m, **options: Any) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        from torchaudio import models

        module: nn.Module = take(getattr(models, name)(**options))
        return module

    return make


WAVE = ("x:float32[N,1,T]",)

NETWORKS = (
    Network(
        "conformer",
        _of("Conformer", input_dim=32, num_heads=4, ffn_dim=64, num_layers=2, depthwise_conv_kernel_size=7),
        # Its mask is as long as the longest of the lengths, which has to be the input's.
        ("input:float32[N,24,32]", "lengths:int64[N]=24:24"),
        "N=1:2:4",
    ),
    Network(
        "conv_tasnet",
        _of(
            "ConvTasNet",
            num_sources=2,
            enc_kernel_size=16,
            enc_num_feats=32,
            msk_kernel_size=3,
            msk_num_feats=16,
            msk_num_hidden_feats=32,
            msk_num_layers=3,
            msk_num_stacks=1,
        ),
        WAVE,
        "N=1:1:2 T=160:320:640",
    ),
    Network(
        "deepspeech",
        _of("DeepSpeech", n_feature=32, n_hidden=64, n_class=20),
        ("x:float32[N,1,T,32]",),
        "N=1:1:4 T=10:20:40",
    ),
    Network(
        "wav2letter",
        _of("Wav2Letter", num_classes=20, input_type="mfcc", num_features=13),
        ("x:float32[N,13,T]",),
        "N=1:1:4 T=50:100:200",
    ),
    Network(
        "hdemucs",
        _of("HDemucs", sources=["a", "b"], channels=8, nfft=1024, depth=5),
        ("input:float32[N,2,T]",),
        "N=1:1:1 T=8192:8192:8192",
    ),
    Network(
        "wavernn",
        _of(
            "WaveRNN",
            upsample_scales=[2, 2, 3],
            n_classes=32,
            hop_length=12,
            n_res_block=2,
            n_rnn=32,
            n_fc=32,
            n_hidden=16,
            n_output=16,
            n_freq=16,
        ),
        ("waveform:float32[N,1,96]", "specgram:float32[N,1,16,12]"),
        "N=1:1:2",
    ),
    Network("squim_objective", _of("squim_objective_base"), ("x:float32[N,T]",), "N=1:1:1 T=4000:4000:4000"),
)
