"""nn.TransformerEncoder with padding as it runs in eval mode, where torch takes a way that no trace takes.

With a padding mask and nothing else torch packs the tokens that count into a nested tensor, if they stand in front in
every row, and fills what it leaves out with zeros behind the last layer. While it exports it asks for none of that, so
that padded places would hold what the layers make of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    from torch import nn


@contextmanager
def padded_encoders() -> Iterator[None]:
    """Encoders give zeros at padded places where they do so in a run without gradients, for the time of the block."""
    import torch

    forward = torch.nn.TransformerEncoder.forward

    def padded(
        encoder: nn.TransformerEncoder,
        src: Any,
        mask: Any = None,
        src_key_padding_mask: Any = None,
        is_causal: Any = None,
    ) -> Any:
        if mask is not None or src_key_padding_mask is None or not _packs(encoder, src):
            return forward(encoder, src, mask, src_key_padding_mask, is_causal)
        hidden = src_key_padding_mask
        hidden = hidden if hidden.dtype == torch.bool else hidden != 0
        left_out = hidden
        if getattr(encoder, "mask_check", True):
            returns = torch.logical_and(hidden[:, :-1], torch.logical_not(hidden[:, 1:]))
            left_out = torch.logical_and(hidden, torch.logical_not(returns.any()))
        left_out = left_out.unsqueeze(-1)
        # What is left out reaches nothing, whatever it holds: a weight of zero would not keep an infinity away.
        output = torch.where(left_out, 0.0, src)
        for layer in encoder.layers:
            output = layer(output, src_mask=None, is_causal=False, src_key_padding_mask=src_key_padding_mask)
        output = torch.where(left_out, 0.0, output)
        return output if encoder.norm is None else encoder.norm(output)

    def said_to_be_causal(mask: Any, is_causal: bool | None = None, size: int | None = None) -> bool:
        """Torch compares the mask with a causal one in order to choose a kernel, which no file has."""
        return is_causal is True

    with (
        mock.patch.object(torch.nn.TransformerEncoder, "forward", padded),
        mock.patch.object(torch.nn.modules.transformer, "_detect_is_causal_mask", said_to_be_causal),
    ):
        yield


def _packs(encoder: nn.TransformerEncoder, src: Any) -> bool:
    """The conditions of torch's own forward, but for the mask's (torch/nn/modules/transformer.py)."""
    import torch

    return bool(
        torch.backends.mha.get_fastpath_enabled()
        and getattr(encoder, "use_nested_tensor", False)
        and not encoder.layers[0].training
        and src.dim() == 3
        and not src.is_nested
        and not torch.is_autocast_enabled()
    )
