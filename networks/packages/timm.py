"""Classifiers of timm: one or two of each family."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from networks.network import ANY_PIXELS, PIXELS, Network, batch_only

if TYPE_CHECKING:
    from torch import nn

IMPORTS = ("timm",)
REQUIREMENTS = (
    "timm==1.0.31", "torchvision==0.28.0", "pillow", "huggingface_hub<2", "safetensors", "pyyaml", "tqdm", "httpx",
    "httpcore", "h11", "anyio", "idna", "certifi", "requests", "urllib3", "charset-normalizer", "hf-xet", "sniffio",
)  # fmt: skip


def _of(name: str, **options: object) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        import timm

        module: nn.Module = timm.create_model(name, pretrained=False, **options)
        return module

    return make


def _patches(size: int) -> str:
    return f"N=1:1:4 H={4 * size}:{7 * size}:{10 * size}%{size} W={4 * size}:{6 * size}:{9 * size}%{size}"


# Convolutional: any size of the image.
CONVOLUTIONAL = [
    "resnet18",
    "resnet26d",
    "resnext26ts",
    "seresnext26ts",
    "ecaresnet26t",
    "gcresnext26ts",
    "res2net50_14w_8s",
    "res2next50",
    "resnest14d",
    "skresnet18",
    "densenet121",
    "dpn48b",
    "dla34",
    "dla46_c",
    "dla60_res2net",
    "cspresnet50",
    "cspdarknet53",
    "darknet53",
    "ese_vovnet19b_slim",
    "hrnet_w18_small",
    "ghostnet_100",
    "ghostnetv2_100",
    "mobilenetv2_035",
    "mobilenetv3_small_050",
    "mobilenetv4_conv_small",
    "mobilenetv4_hybrid_medium",
    "mobileone_s0",
    "mnasnet_small",
    "fbnetc_100",
    "fbnetv3_b",
    "tf_efficientnet_lite0",
    "tf_efficientnet_b0",
    "efficientnet_b0",
    "efficientnetv2_rw_t",
    "tf_efficientnetv2_b0",
    "tinynet_e",
    "lcnet_050",
    "hardcorenas_a",
    "rexnet_100",
    "regnetx_002",
    "regnety_002",
    "regnetz_005",
    "repvgg_a0",
    "repghostnet_050",
    "repvit_m0_9",
    "eca_nfnet_l0",
    "nf_regnet_b0",
    "gernet_s",
    "selecsls42",
    "semnasnet_075",
    "spnasnet_100",
    "xception41",
    "legacy_xception",
    "tresnet_m",
    "convnext_atto",
    "convnextv2_atto",
    "focalnet_tiny_srf",
    "edgenext_xx_small",
    "inception_next_atto",
    "fasternet_t0",
    "starnet_s050",
    "hgnetv2_b0",
    "mambaout_femto",
    "poolformer_s12",
    "poolformerv2_s12",
    "caformer_s18",
    "convformer_s18",
    "efficientvit_b0",
    "fastvit_t8",
    "mobilevit_xxs",
    "mobilevitv2_050",
    "pvt_v2_b0",
    "rdnet_tiny",
    "swiftformer_xs",
    "shvit_s1",
    "test_resnet",
    "test_convnext",
    "test_efficientnet",
    "test_byobnet",
    "test_nfnet",
]

# Windows or strides that divide the image.
STEPPED = [
    "davit_tiny",
    "nextvit_small",
    "twins_svt_small",
    "twins_pcpvt_small",
    "xcit_nano_12_p16_224",
    "sequencer2d_s",
]

# Transformers over patches that take images of another size than the one they were made for, when told so.
PATCHES = {
    "vit_tiny_patch16_224": 16, "vit_small_patch32_224": 32, "deit_tiny_patch16_224": 16, "deit3_small_patch16_224": 16,
    "eva02_tiny_patch14_224": 14, "vit_small_patch14_dinov2": 14, "test_vit": 16, "test_vit2": 16,
}  # fmt: skip

FIXED = {
    "bat_resnext26ts": 256, "lambda_resnet26t": 256, "halonet26t": 256, "botnet26t_256": 256, "visformer_tiny": 224,
    "mixer_s32_224": 224, "gmlp_s16_224": 224, "resmlp_12_224": 224, "cait_xxs24_224": 224,
    "beit_base_patch16_224": 224,
    "swin_tiny_patch4_window7_224": 224, "swinv2_tiny_window8_256": 256, "swinv2_cr_tiny_ns_224": 224,
    "maxvit_rmlp_pico_rw_256": 256, "maxvit_tiny_tf_224": 224, "coatnet_nano_rw_224": 224, "convit_tiny": 224,
    "crossvit_tiny_240": 240, "efficientformer_l1": 224, "efficientformerv2_s0": 224, "efficientvit_m0": 224,
    "gcvit_xxtiny": 224, "hiera_tiny_224": 224, "levit_128s": 224, "mvitv2_tiny": 224, "nest_tiny": 224,
    "pit_ti_224": 224, "tiny_vit_5m_224": 224, "tnt_s_patch16_224": 224, "volo_d1_224": 224,
    "vit_relpos_small_patch16_224": 224, "vit_srelpos_small_patch16_224": 224, "flexivit_small": 240,
    "coat_lite_tiny": 224, "inception_v4": 299, "deit_tiny_distilled_patch16_224": 224,
}  # fmt: skip

NETWORKS = (
    *(Network(n, _of(n), space=ANY_PIXELS if n.startswith("test") else PIXELS) for n in CONVOLUTIONAL),
    *(Network(n, _of(n)) for n in STEPPED),
    *(Network(n, _of(n, dynamic_img_size=True), space=_patches(p)) for n, p in PATCHES.items()),
    *(Network(n, _of(n), **batch_only(s)) for n, s in FIXED.items()),
    Network("swin_tiny_moving", _of("swin_tiny_patch4_window7_224", strict_img_size=False)),
    Network("swinv2_tiny_moving", _of("swinv2_tiny_window8_256", strict_img_size=False)),
    Network("resnet18_features", _of("resnet18", features_only=True), space=ANY_PIXELS),
    Network("convnext_atto_features", _of("convnext_atto", features_only=True)),
)
