"""Attention under a mask of booleans, as a recording has it, and with scores that a function of the user's changes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest import mock


def scaled_dot_product_attention(
    func: Any,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """query [..., T, D], key and value [..., S, D], the mask [..., T, S]: a row that it hides altogether gives 0.

    The recording exporter takes every NaN for such a row, also that of scores too large for FP32. Here the rows are
    those whose scores all are -inf, as torch has it (_safe_softmax in aten/src/ATen/native/transformers/attention.cpp).
    """
    import torch

    plain = isinstance(attn_mask, torch.Tensor) and attn_mask.dtype == torch.bool and not is_causal and not enable_gqa
    if not plain or dropout_p or not torch.jit.is_tracing():
        return NotImplemented
    # torch scales both factors by the root, which other sums round otherwise.
    root = (query.shape[-1] ** -0.5 if scale is None else scale) ** 0.5
    scores = (query * root) @ (key.transpose(-2, -1) * root)
    # Added, as in torch: an infinite score that is hidden is no number.
    scores = scores + torch.where(attn_mask, 0.0, float("-inf"))
    hidden = (scores == float("-inf")).all(-1, keepdim=True)
    return torch.where(hidden, 0.0, torch.softmax(scores, -1)) @ value


@contextmanager
def flexible_attention_by_steps() -> Iterator[None]:
    """In the block, `flex_attention` is what torch computes without a fused kernel; it compiles that at each call else.

    A module that was not imported yet is called by no one: the user's code ran before it is traced.
    """
    module = sys.modules.get("torch.nn.attention.flex_attention")
    if module is None:
        yield
        return
    from torch._higher_order_ops.flex_attention import math_attention

    with mock.patch.multiple(
        module,
        flex_attention_hop=math_attention,
        _FLEX_ATTENTION_DISABLE_COMPILE_DEBUG=True,
        # To compile, torch takes off the modes under which it is traced itself.
        setup_compilation_env=nullcontext,
    ):
        yield
