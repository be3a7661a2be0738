"""Writes in place as functions, where it can be seen that no other node shares the memory that is written to."""

from __future__ import annotations

from typing import Any

from trtconv.export.exporters.functional.forms import UnknownFormError, arguments_of

# Operators that torch defines by others and that always give memory of their own.
_OWN_MEMORY = {
    "aten.conv1d.default",
    "aten.conv2d.default",
    "aten.conv3d.default",
    "aten.conv_transpose1d.default",
    "aten.conv_transpose2d.input",
    "aten.conv_transpose3d.input",
    "aten.linear.default",
    "aten.layer_norm.default",
    "aten.group_norm.default",
    "aten.instance_norm.default",
    "aten.max_pool2d.default",
    "aten.matmul.default",
}


def write_out_of_place(node: Any) -> None:
    """Turn `relu_`, `add_` and their like into `relu`, `add`; whoever reads what was written to later reads that.

    Raises UnknownFormError where another node may share the memory, or the function would give another type or shape.
    """
    import torch

    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or not target._schema.is_mutable:
        return
    if target is torch.ops.aten.detach_.default:
        # Nothing is written.
        node.target = torch.ops.aten.detach.default
        return
    if target is torch.ops.aten.dropout_.default and not arguments_of(node)["train"]:
        node.target = torch.ops.aten.dropout.default
        return
    written = node.args[0] if node.args else None
    function = _function(target)
    if function is None or not isinstance(written, torch.fx.Node) or not _has_own_memory(written):
        raise UnknownFormError(str(target))
    before, after = _users(written, node)
    # An output that is read by the name of what was written to would be the one before the write.
    named = any(user.op == "output" for user in after)
    if named or any(_may_share(user) for user in before) or not _same_type(node, written):
        raise UnknownFormError(str(target))
    node.target = function
    for user in after:
        user.replace_input_with(written, node)


def _function(target: Any) -> Any:
    """The operator that gives what `target` writes into its first argument; None where there is none alike."""
    import torch

    packet, _, variant = str(target).removeprefix("aten.").partition(".")
    schema = target._schema
    writes = [a.alias_info is not None and a.alias_info.is_write for a in schema.arguments]
    if not str(target).startswith("aten.") or not packet.endswith("_") or packet.startswith("__"):
        return None
    if writes != [True, *[False] * (len(writes) - 1)] or len(schema.returns) != 1:
        return None
    function = getattr(getattr(torch.ops.aten, packet.removesuffix("_"), None), variant, None)
    # The first argument has another name in some.
    names = [a.name for a in schema.arguments[1:]]
    same = function is not None and [a.name for a in function._schema.arguments[1:]] == names
    return function if same else None


def _users(written: Any, node: Any) -> tuple[list[Any], list[Any]]:
    """The other users of a tensor, before and after the node."""
    before: list[Any] = []
    after: list[Any] = []
    for user in list(written.users):
        if user is not node:
            (before if user < node else after).append(user)
    return before, after


def _has_own_memory(producer: Any) -> bool:
    return producer.op == "call_function" and not _may_share(producer)


def _may_share(node: Any) -> bool:
    """True unless the node's result is known to be memory of its own."""
    import operator

    import torch
    from torch._export.utils import _is_cia_op

    target = node.target
    if target is operator.getitem and node.args[1] == 0:
        # The forms of a norm, whose first result is new.
        return str(node.args[0].target) != "aten._native_batch_norm_legit_no_training.default"
    if not isinstance(target, torch._ops.OpOverload) or target.namespace != "aten":
        return True
    schema = target._schema
    if schema.is_mutable or any(a.alias_info is not None for a in (*schema.arguments, *schema.returns)):
        return True
    # `clone` stands here for what may have been a view: dropout in evaluation, `contiguous`, a type that stays.
    if str(target) in ("aten.clone.default", "aten._unsafe_view.default", "aten.lift_fresh_copy.default"):
        return True
    return bool(_is_cia_op(target)) and str(target) not in _OWN_MEMORY


def _same_type(node: Any, written: Any) -> bool:
    """True when no operand is of a wider type, to which the function would promote its result."""
    import torch

    dtype = written.meta["val"].dtype
    tensors = [a.meta["val"] for a in node.args[1:] if isinstance(a, torch.fx.Node)]
    operands = [t for t in tensors if isinstance(t, torch.Tensor)]
    numbers = [a for a in (*node.args[1:], *node.kwargs.values()) if isinstance(a, (float, complex))]
    whole = not (dtype.is_floating_point or dtype.is_complex)
    return all(t.dtype == dtype for t in operands) and not (whole and numbers)
