"""Where a module catches errors of torch: an exporter sees none, and the file has not what comes after one."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from trtconv.export.module.user_code import PARSED_FILES, Frame, is_library, parse_file

# Operators of aten that never raise for some values and not for others, besides those that torch tags as pointwise:
# they raise for shapes and types alone. Any other may: an index beyond its table, a matrix without an inverse, a rate
# below 0, an operator of the user's.
_NEVER_RAISING = frozenset(
    ("addbmm", "addmm", "addmv", "addr", "affine_grid_generator", "alias", "all", "amax", "amin", "aminmax",
     "any", "arange", "argmax", "argmin", "argsort", "as_strided", "baddbmm", "bmm", "broadcast_tensors", "cat",
     "channel_shuffle", "chunk", "clone", "col2im", "complex", "concat", "concatenate", "_conj",
     "constant_pad_nd", "contiguous", "copy", "count_nonzero", "cross", "cummax", "cummin", "cumprod", "cumsum",
     "detach", "diag", "diag_embed", "diagonal", "diff", "dot", "dropout", "empty", "empty_like",
     "empty_strided", "_euclidean_dist", "expand", "expand_as", "eye", "fill", "flatten", "flip", "full",
     "full_like", "gelu", "glu", "group_norm", "gru", "im2col", "instance_norm", "kron", "kthvalue",
     "layer_norm", "lift", "lift_fresh", "linear", "linspace", "log_softmax", "_log_softmax", "logcumsumexp",
     "logsumexp", "lstm", "masked_fill", "masked_select", "matmul", "max", "mean", "median", "meshgrid", "min",
     "mm", "mode", "movedim", "mv", "nanmean", "nanmedian", "nansum", "narrow", "native_group_norm",
     "native_layer_norm", "nonzero", "norm", "ones", "ones_like", "outer", "pad", "permute", "pixel_shuffle",
     "pixel_unshuffle", "prelu", "_prelu_kernel", "prod", "repeat", "reshape", "_reshape_alias", "resolve_conj",
     "resolve_neg", "rms_norm", "roll", "rot90", "_safe_softmax", "scalar_tensor",
     "scaled_dot_product_attention", "_scaled_dot_product_attention_math",
     "_scaled_dot_product_flash_attention_for_cpu", "select", "slice", "_softmax", "softmax", "sort", "split",
     "split_with_sizes", "squeeze", "stack", "std", "std_mean", "sum", "t", "tensor_split", "tile", "to",
     "_to_copy", "topk", "trace", "transpose", "tril", "triu", "unbind", "unflatten", "unfold", "unsafe_chunk",
     "unsafe_split", "_unsafe_view", "unsqueeze", "var", "var_mean", "view", "view_as", "where", "zero", "zeros",
     "zeros_like")
)  # fmt: skip
_NEVER_RAISING_KINDS = (
    "_convolution", "convolution", "conv_", "conv1", "conv2", "conv3", "mkldnn_", "_upsample_", "upsample_",
    "max_pool", "avg_pool", "adaptive_", "_adaptive_", "reflection_pad", "replication_pad", "grid_sampler",
    "batch_norm", "native_batch_norm", "_native_batch_norm", "_batch_norm", "_fft_", "fft_", "new_", "native_dropout",
)  # fmt: skip
# An IndexError ends a loop over an object, an AttributeError is what `getattr` and `hasattr` ask for.
_ANSWERING = frozenset(("__getitem__", "__getattr__", "__getattribute__"))
# The file of code that `exec` was given as a text.
_OF_EXEC = "<string>"
# Pointwise ones that raise for a whole number divided by zero, or to a negative power.
_OF_WHOLE_NUMBERS = frozenset(("div", "divide", "floor_divide", "remainder", "fmod", "pow"))


def raises_by_value(operator: Any, args: Sequence[Any]) -> bool:
    """True for an overload of an operator that may raise for some values of these arguments and not for others."""
    import torch

    name = operator.overloadpacket.__name__
    name = name if name.startswith("__") else name.rstrip("_")
    if getattr(operator, "namespace", "") != "aten" or torch.Tag.nondeterministic_seeded in operator.tags:
        return True
    if name in _OF_WHOLE_NUMBERS:
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        return not any(t.dtype.is_floating_point or t.dtype.is_complex for t in tensors)
    pointwise = torch.Tag.pointwise in operator.tags
    return not (pointwise or name in _NEVER_RAISING or name.startswith(_NEVER_RAISING_KINDS))


def is_caught(frames: Iterable[Frame]) -> bool:
    """True where an error at the innermost of these frames would be caught in the user's code.

    Of code without a source, as `exec` makes it, nobody knows.
    """
    for file, line in frames:
        if is_library(file) and file != _OF_EXEC:
            continue
        tree = parse_file(file)
        if tree is None or line in _guarded_lines(tree):
            return True
    return False


@lru_cache(maxsize=PARSED_FILES)
def _guarded_lines(tree: ast.Module) -> frozenset[int]:
    """The lines of a file after whose errors forward may go on."""
    return frozenset(
        line
        for body in _guarded_bodies(tree)
        for line in range(body[0].lineno, (body[-1].end_lineno or body[-1].lineno) + 1)
    )


def _guarded_bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """The bodies of `try` with handlers, or with a `finally` that leaves; of `with`, whose object may swallow errors;
    and of methods of which Python takes errors for an end or an answer.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.With | ast.AsyncWith):
            if not all(_is_of_torch(item.context_expr) for item in node.items):
                yield node.body
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name in _ANSWERING:
                yield node.body
        elif getattr(node, "handlers", None) or _leaves(getattr(node, "finalbody", ())):
            yield node.body  # type: ignore[attr-defined]


def _is_of_torch(manager: ast.expr) -> bool:
    """True for `torch.no_grad()` and its like, which let every error pass."""
    return ast.unparse(manager).startswith(("torch.", "nn.", "sdpa_kernel", "record_function"))


def _leaves(statements: Sequence[ast.stmt]) -> bool:
    """True where a `finally` ends in `return`, `break` or `continue`, which drops the error."""
    leaving = ast.Return | ast.Break | ast.Continue
    return any(isinstance(node, leaving) for statement in statements for node in ast.walk(statement))
