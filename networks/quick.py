"""The part that the workflow `networks` converts: small ones, one for each mechanism that whole networks need."""

from __future__ import annotations

QUICK = frozenset((
    "torchvision/mobilenet_v3_small", "torchvision/squeezenet1_1", "timm/test_resnet", "timm/test_vit",
    "ultralytics/yolov8n", "ultralytics/yolo11n", "diffusers/unet_stable_diffusion", "diffusers/vae_decoder",
    "transformers_text/bert", "transformers_text/llama", "transformers_text/t5",
    "transformers_text/llama_step_with_cache", "transformers_speech/wav2vec2", "transformers_speech/whisper_decoder",
    "monai/unet_2d",
))  # fmt: skip
