"""UNets, transformers and autoencoders of diffusers, made small."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from networks.network import Network
from networks.packages.timm import REQUIREMENTS as TIMM

if TYPE_CHECKING:
    from torch import nn

IMPORTS = ("diffusers.models.modeling_utils", "diffusers.models.unets.unet_2d_condition")
REQUIREMENTS = ("diffusers==0.42.1", "importlib_metadata", "zipp", "regex", *TIMM)


def _of(name: str, **options: Any) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import diffusers

        module: nn.Module = getattr(diffusers, name)(**options)
        return module

    return make


def _half(name: str, decodes: bool, **options: Any) -> Callable[[], nn.Module]:
    """The encoder or the decoder of an autoencoder."""

    def make() -> nn.Module:
        import torch

        class Half(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.vae = _of(name, **options)()

            def forward(self, x: Any) -> Any:
                return self.vae.decode(x).sample if decodes else self.vae.encode(x, return_dict=False)[0].mean

        return Half()

    return make


SAMPLE = "sample:float32[N,4,H,W]"
TIME = "timestep:int64[]=0:999"
TEXT = "encoder_hidden_states:float32[N,T,32]"
LATENT = "N=1:2:2 H=16:16:32%8 W=16:24:32%8"
BLOCKS = {"block_out_channels": (32, 64), "layers_per_block": 1, "norm_num_groups": 8}
CONDITIONED = {
    **BLOCKS,
    "in_channels": 4,
    "cross_attention_dim": 32,
    "attention_head_dim": 8,
}
DOWN, UP = ("CrossAttnDownBlock2D", "DownBlock2D"), ("UpBlock2D", "CrossAttnUpBlock2D")
VAE = {
    "block_out_channels": (16, 32),
    "norm_num_groups": 8,
    "latent_channels": 4,
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
}

NETWORKS = (
    Network(
        "unet_stable_diffusion",
        _of(
            "UNet2DConditionModel",
            **CONDITIONED,
            sample_size=16,
            out_channels=4,
            down_block_types=DOWN,
            up_block_types=UP,
        ),
        (SAMPLE, TIME, TEXT),
        f"{LATENT} T=4:8:16",
    ),
    Network(
        "unet_unconditional",
        _of(
            "UNet2DModel",
            **BLOCKS,
            in_channels=4,
            out_channels=4,
            sample_size=16,
            down_block_types=("DownBlock2D", "AttnDownBlock2D"),
            up_block_types=("AttnUpBlock2D", "UpBlock2D"),
        ),
        (SAMPLE, TIME),
        LATENT,
    ),
    Network(
        "controlnet",
        _of("ControlNetModel", **CONDITIONED, down_block_types=DOWN, conditioning_embedding_out_channels=(8, 16)),
        (SAMPLE, TIME, TEXT, "controlnet_cond:float32[N,3,H2,W2]"),
        "N=1:1:2 H=16:16:16 W=16:16:16 H2=32:32:32 W2=32:32:32 T=4:8:16",
    ),
    Network(
        "unet_1d",
        _of(
            "UNet1DModel",
            sample_size=64,
            in_channels=2,
            out_channels=2,
            block_out_channels=(32, 32, 64),
            extra_in_channels=64,
        ),
        ("sample:float32[N,2,64]", TIME),
        "N=1:2:4",
    ),
    Network("vae_decoder", _half("AutoencoderKL", True, **VAE), ("x:float32[N,4,H,W]",), "N=1:1:2 H=8:16:24 W=8:16:24"),
    Network(
        "vae_encoder",
        _half("AutoencoderKL", False, **VAE),
        ("x:float32[N,3,H,W]",),
        "N=1:1:2 H=32:32:64%8 W=32:48:64%8",
    ),
    Network(
        "tiny_decoder",
        _half(
            "AutoencoderTiny",
            True,
            encoder_block_out_channels=(16, 16),
            decoder_block_out_channels=(16, 16),
            num_encoder_blocks=(1, 1),
            num_decoder_blocks=(1, 1),
        ),
        ("x:float32[N,4,H,W]",),
        "N=1:1:2 H=8:16:24 W=8:16:24",
    ),
    Network(
        "dit",
        _of(
            "DiTTransformer2DModel",
            num_attention_heads=2,
            attention_head_dim=16,
            in_channels=4,
            out_channels=8,
            num_layers=2,
            sample_size=16,
            norm_num_groups=8,
            num_embeds_ada_norm=10,
        ),
        ("hidden_states:float32[N,4,16,16]", "timestep:int64[N]=0:999", "class_labels:int64[N]=0:9"),
        "N=1:2:4",
    ),
    Network(
        "pixart",
        _of(
            "PixArtTransformer2DModel",
            num_attention_heads=2,
            attention_head_dim=16,
            in_channels=4,
            out_channels=8,
            num_layers=2,
            sample_size=16,
            cross_attention_dim=32,
            caption_channels=32,
            norm_num_groups=8,
        ),
        ("hidden_states:float32[N,4,16,16]", "encoder_hidden_states:float32[N,T,32]", "timestep:int64[N]=0:999"),
        "N=1:2:4 T=4:8:16",
    ),
    Network(
        "sd3",
        _of(
            "SD3Transformer2DModel",
            sample_size=16,
            in_channels=4,
            out_channels=4,
            num_layers=2,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=32,
            caption_projection_dim=32,
            pooled_projection_dim=24,
            pos_embed_max_size=16,
        ),
        (
            "hidden_states:float32[N,4,16,16]",
            "encoder_hidden_states:float32[N,T,32]",
            "pooled_projections:float32[N,24]",
            "timestep:int64[N]=0:999",
        ),
        "N=1:2:4 T=4:8:16",
    ),
    Network(
        "flux",
        _of(
            "FluxTransformer2DModel",
            in_channels=4,
            num_layers=1,
            num_single_layers=1,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=32,
            pooled_projection_dim=24,
            axes_dims_rope=(4, 4, 8),
        ),
        (
            "hidden_states:float32[N,P,4]",
            "encoder_hidden_states:float32[N,T,32]",
            "pooled_projections:float32[N,24]",
            "timestep:float32[N]=0:1",
            "img_ids:float32[P,3]=0:16",
            "txt_ids:float32[T,3]=0:0",
        ),
        "N=1:2:4 T=4:8:16 P=16:64:100",
    ),
    Network(
        "prior",
        _of(
            "PriorTransformer",
            num_attention_heads=2,
            attention_head_dim=16,
            num_layers=2,
            embedding_dim=32,
            num_embeddings=7,
        ),
        (
            "hidden_states:float32[N,32]",
            "timestep:int64[N]=0:999",
            "proj_embedding:float32[N,32]",
            "encoder_hidden_states:float32[N,7,32]",
        ),
        "N=1:2:4",
    ),
)
