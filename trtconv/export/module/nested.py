"""nn.TransformerEncoder's nested tensors, which no ONNX file has: what they make of padded positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


def nested_encoders(module: nn.Module) -> tuple[str, ...]:
    """The names of the encoders that pack a batch without its padding in eval mode.

    They do so for a `src_key_padding_mask` with the padding at the end, and return zeros at padded positions
    (torch/nn/modules/transformer.py); for any other mask, and in a traced graph, they return what attention gives.
    """
    from torch import nn

    encoder_names = []
    for name, part in module.named_modules():
        if isinstance(part, nn.TransformerEncoder) and getattr(part, "use_nested_tensor", False):
            encoder_names.append(name or type(part).__name__)
    return tuple(encoder_names)


def nested_hint(module: nn.Module) -> str:
    """What to do about them, or an empty text."""
    names = nested_encoders(module)
    if not names:
        return ""
    return (
        f"'{names[0]}' returns zeros at padded positions where torch takes its nested tensors, which ONNX lacks: "
        "build it with nn.TransformerEncoder(..., enable_nested_tensor=False); multiply by the mask where zeros matter"
    )
