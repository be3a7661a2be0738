"""Attention under a mask of booleans, as a recording has it, and with scores that a function of the user's changes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
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

    if query.dim() == key.dim() == value.dim() == 3 and not torch.jit.is_tracing():
        # The dynamo exporter has attention of four dims alone.
        mask = attn_mask[:, None] if isinstance(attn_mask, torch.Tensor) and attn_mask.dim() == 3 else attn_mask
        heads = (x[:, None] for x in (query, key, value))
        return func(*heads, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)[:, 0]
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


@contextmanager
def causal_by_size() -> Iterator[None]:
    """In the block, `is_causal=t > 1` of attention is decided like any condition on a size.

    torch's parser of arguments takes a bool alone, and says so before a mode sees the call.
    """
    import torch
    from torch.nn import functional

    function = functional.scaled_dot_product_attention

    @wraps(function)
    def attention(*args: Any, **named: Any) -> Any:
        return function(*map(decided, args), **{name: decided(value) for name, value in named.items()})

    def decided(value: Any) -> Any:
        return bool(value) if isinstance(value, torch.SymBool) else value

    with mock.patch.object(functional, "scaled_dot_product_attention", attention):
        yield
