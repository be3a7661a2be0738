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

# Parts of a tensor, and what puts one back.
_SCATTERS = {"aten.slice.Tensor": "slice_scatter", "aten.select.int": "select_scatter"}
# The meta of what stands for a tensor after writes into parts of it, and of what stands for such a part: in the program
# the part has the tensor's memory.
PARTS, IS_PART = "trtconv_parts", "trtconv_is_part"
# The meta of a `clone` that copies.
IS_COPY = "trtconv_is_copy"


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
    if not node.args or not isinstance(node.args[0], torch.fx.Node):
        raise UnknownFormError(str(target))
    levels = _views(node.args[0])
    users = [_users(tensor, node) for tensor in levels]
    # Another view of the memory would have to be taken anew.
    shared = any(_may_share(user) for before, _ in users for user in before if user not in levels)
    # An output that is read by the name of what was written to would be the one before the write.
    named = any(user.op == "output" for _, after in users for user in after)
    # As would what an earlier write left of a part, and its views.
    stale = any(_is_read_later(part, node) for part in levels[0].meta.get(PARTS, ()))
    if shared or named or stale or not _has_own_memory(levels[0]):
        raise UnknownFormError(str(target))
    _become_function(node, levels[-1])
    values = _with_views(node, levels)
    values[0].meta[PARTS] = [*levels[0].meta.get(PARTS, ()), *values[1:]]
    for part in values[1:]:
        part.meta[IS_PART] = True
    for tensor, value, (_, after) in zip(levels, values, users, strict=True):
        for user in after:
            user.replace_input_with(tensor, value)


def _is_read_later(part: Any, node: Any) -> bool:
    before, after = _users(part, node)
    return bool(after) or any(_may_share(user) for user in before)


def _views(written: Any) -> list[Any]:
    """The tensor of whose memory `written` is a part, and the slices by which it is taken, `written` itself last."""
    levels = [written]
    while str(levels[0].target) in _SCATTERS:
        levels.insert(0, levels[0].args[0])
    return levels


def _become_function(node: Any, written: Any) -> None:
    """Turn a write into the function that gives what is written. Raises UnknownFormError where there is none."""
    import torch

    if node.target is torch.ops.aten.zero_.default:
        node.target = torch.ops.aten.zeros_like.default
        return
    if node.target is not torch.ops.aten.copy_.default:
        function = _function(node.target)
        if function is None or not _same_type(node, written):
            raise UnknownFormError(str(node.target))
        node.target = function
        return
    source, value = node.args[1], written.meta["val"]
    if not isinstance(source, torch.fx.Node) or not _same_sizes(source.meta["val"], value):
        raise UnknownFormError("a write of another shape")
    node.kwargs = {}
    node.meta[IS_COPY] = True
    if source.meta["val"].dtype == value.dtype:
        node.target, node.args = torch.ops.aten.clone.default, (source,)
    else:
        node.target, node.args, node.kwargs = torch.ops.aten._to_copy.default, (source,), {"dtype": value.dtype}


def _same_sizes(first: Any, second: Any) -> bool:
    """True where two shapes are the same numbers and formulas; nothing is asked of torch, which would note it."""

    def formulas(tensor: Any) -> list[Any]:
        return [getattr(getattr(size, "node", None), "expr", size) for size in tensor.shape]

    return formulas(first) == formulas(second)


def _with_views(node: Any, levels: list[Any]) -> list[Any]:
    """What each of the tensors is after the write: the part is put back into what it was taken from."""
    values, point = [node], node
    for tensor, part in zip(reversed(levels[:-1]), reversed(levels[1:]), strict=True):
        with node.graph.inserting_after(point):
            point = node.graph.call_function(_scatter(part.target), (tensor, values[0], *part.args[1:]), part.kwargs)
        point.meta["val"] = tensor.meta["val"]
        values.insert(0, point)
    return values


def _scatter(view: Any) -> Any:
    import torch

    return getattr(torch.ops.aten, _SCATTERS[str(view)]).default


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
    return producer.op == "call_function" and not _may_share(producer) and IS_PART not in producer.meta


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
    if IS_COPY in node.meta:
        return False
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
