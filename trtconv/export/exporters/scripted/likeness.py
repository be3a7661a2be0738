"""Whether a script says what the module does: torch.jit.script reads source, and its export drops writes to views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import UnsupportedError
from trtconv.export.exporters.scripted.lines import source_line

if TYPE_CHECKING:
    from torch import nn

# What may give its input's memory.
VIEWS = frozenset((
    "slice", "select", "alias", "expand", "expand_as", "view", "view_as", "reshape", "reshape_as", "unsqueeze",
    "squeeze", "t", "transpose", "permute", "movedim", "swapaxes", "swapdims", "detach", "as_strided", "narrow",
    "flatten", "ravel", "unflatten", "contiguous", "to", "type_as", "type", "float", "double", "half", "long", "int",
    "cpu", "dropout", "feature_dropout", "alpha_dropout", "split", "chunk", "unbind", "split_with_sizes",
    "tensor_split", "hsplit", "vsplit", "diagonal", "unfold", "real", "imag", "conj", "view_as_real", "numpy_T",
    "mT", "T", "_unsafe_view", "_reshape_alias", "lift_fresh", "positive", "einsum", "atleast_1d", "atleast_2d",
    "atleast_3d", "broadcast_to", "data", "__getitem__",
))  # fmt: skip
# These give all of it, in another shape.
SHAPES = frozenset(("view", "view_as", "reshape", "reshape_as", "unsqueeze", "squeeze", "unflatten", "flatten"))
PARTS = ("aten::select", "aten::slice")
# What makes a tensor of its own.
CREATING = frozenset((
    "zeros", "ones", "full", "empty", "zeros_like", "ones_like", "full_like", "empty_like", "new_zeros", "new_ones",
    "new_full", "new_empty", "clone",
))  # fmt: skip
NEW = frozenset(f"aten::{name}" for name in CREATING)
# A list is reversed in Python, and a tensor flipped in its script.
REORDERS = frozenset(("flip",))
# Of these a script makes what Python does with numbers.
INDEXING = frozenset(("index", "index_put", "_unsafe_index", "_index_put_impl"))
WRITTEN = INDEXING - {"index", "_unsafe_index"}
# How a script writes an operator of Python's.
SAME = {"rsub": ("neg", "add"), "fill_": ("copy",), "linalg_vector_norm": ("norm",)}


def require_own_writes(graph: Any, base: Path | None = None) -> None:
    """Raise UnsupportedError where a script writes into memory that something else may read.

    torch.onnx makes operators of what is written in place; what the write does to another view, an input or an element
    of a list is lost. Rows of a new tensor may be written, and what nobody else has.
    """
    nodes = list(_that_may_run(graph))
    for index, node in enumerate(nodes):
        if not _writes(node):
            continue
        target = next(iter(node.inputs()))
        if target.type().kind() != "TensorType" or _counts_batches(target):
            continue  # a list, or what a normalisation does in training
        own = _is_nobodys(target) or _is_read_no_more(node, target, nodes, index)
        if node.kind() in ("aten::copy_", "aten::index_put_"):
            own = _is_new_row(target, nodes, index)
        if not own:
            where = "; ".join(part for part in (node.kind().removeprefix("aten::"), source_line(node, base)) if part)
            raise UnsupportedError(
                f"a part that is scripted writes in place into what something else may read ({where}): write a new "
                "tensor, such as with torch.where"
            )


def _that_may_run(block: Any) -> Iterator[Any]:
    """The nodes of a graph or block but for branches that are never taken, as in `F.relu(x, inplace=False)`."""
    for node in block.nodes():
        yield node
        inner = list(node.blocks())
        decided = next(iter(node.inputs())).toIValue() if node.kind() == "prim::If" else None
        if isinstance(decided, bool):
            inner = inner[:1] if decided else inner[1:]
        for side in inner:
            yield from _that_may_run(side)


def _writes(node: Any) -> bool:
    name = node.kind()
    return bool(name.startswith("aten::") and name.endswith("_") and not name.endswith("__"))


def _counts_batches(target: Any) -> bool:
    while target.node().kind() in ("prim::unchecked_cast", "aten::_unwrap_optional"):
        target = next(iter(target.node().inputs()))
    return bool(target.node().kind() == "prim::GetAttr" and target.node().s("name") == "num_batches_tracked")


def _is_new_row(target: Any, nodes: Sequence[Any], index: int) -> bool:
    """True for a part of a tensor that was made there, of which no other view is read behind a write.

    `nodes[index]` writes. What is read at once, as `y[:, t - 1]` for `y[:, t]`, is what it was.
    """
    root = _whole(target)
    if not _is_new(root):
        return False
    users = [use.user for use in root.uses()]
    views = [n for n in users if n.kind().removeprefix("aten::") in VIEWS]
    if all(_is_only_written(view.output()) for view in views if nodes.index(view) < index):
        return True
    writes = [i for i, node in enumerate(nodes) if _writes(node) and _whole(next(iter(node.inputs()))) == root]
    return all(_is_read_at_once(view, nodes, writes) for view in views)


def _is_new(tensor: Any) -> bool:
    """True for a tensor that was made there, and for the one view of it, as in `torch.empty(n).view(2, -1)`."""
    node = tensor.node()
    while node.kind().removeprefix("aten::") in SHAPES:
        tensor = next(iter(node.inputs()))
        if len(list(tensor.uses())) > 1:
            return False
        node = tensor.node()
    return node.kind() in NEW


def _is_only_written(part: Any) -> bool:
    users = [use.user for use in part.uses()]
    return all(u.kind() == "aten::copy_" or (u.kind() in PARTS and _is_only_written(u.output())) for u in users)


def _whole(part: Any) -> Any:
    """The tensor that rows and slices are parts of."""
    while part.node().kind() in PARTS:
        part = next(iter(part.node().inputs()))
    return part


def _is_read_at_once(view: Any, nodes: Sequence[Any], writes: Sequence[int]) -> bool:
    """True for a row that nodes of its own block read or write before anything is written again."""
    start = nodes.index(view)
    if view.owningBlock().owningNode() is None and start > max(writes, default=0):
        return True
    if any(output.type().kind() != "TensorType" for output in view.outputs()):
        return False
    for use in view.output().uses():
        user = use.user
        if user.kind() in ("prim::Return", "prim::Loop", "prim::If") or user.owningBlock() != view.owningBlock():
            return False
        end = nodes.index(user)
        if any(start < number < end for number in writes):
            return False
        is_view = user.kind().removeprefix("aten::") in VIEWS
        if is_view and not _is_read_at_once(user, nodes, writes):
            return False
    return True


def _is_nobodys(target: Any) -> bool:
    """True for the result of an operator that no one else reads."""
    kind = target.node().kind()
    computed = kind.startswith("aten::") and kind.removeprefix("aten::") not in VIEWS
    return bool(computed and len(target.uses()) == 1)


def _is_read_no_more(node: Any, target: Any, nodes: Sequence[Any], index: int) -> bool:
    """True for a tensor that was made there, of which only the result of the write at `index` is read behind it."""
    if target.node().kind() not in NEW or node.owningBlock().owningNode() is not None:
        return False

    def read_before(value: Any) -> bool:
        for use in value.uses():
            user = use.user
            if user == node:
                continue
            if user.kind() == "prim::Return" or user not in nodes or nodes.index(user) > index:
                return False
            if user.kind().removeprefix("aten::") in VIEWS and not all(map(read_before, user.outputs())):
                return False
        return True

    return read_before(target)


def require_same_operators(
    module: nn.Module, script: nn.Module, positional: Sequence[Any], keywords: Mapping[str, Any]
) -> None:
    """Raise UnsupportedError where a run of the script has other operators than one of the module.

    A clean-up of a rare value that a decorator does, and the script not, shows in no output and in every run.
    """
    expected, actual = (_operators(m, positional, keywords) for m in (module, script))
    if expected == actual:
        return
    names = sorted((expected - actual) | (actual - expected))
    raise UnsupportedError(
        "torch.jit.script compiles something else than Python runs (a decorator, __call__, a hook, is_scripting?): "
        f"they differ in {', '.join(names[:4])}"
    )


def _as_indexed(name: str, indices: Sequence[Any]) -> Iterator[str]:
    """What Python does for an index or an index_put: it reads the number of a tensor of no dims and selects by that."""
    import torch

    integers = (torch.int64, torch.int32, torch.int16, torch.int8)
    others = 0
    for index in indices:
        if index is not None and index.dim() == 0 and index.dtype in integers:
            yield "_local_scalar_dense"
        elif index is not None:
            others += 1
    if others:
        yield name
    elif name in WRITTEN:
        yield "copy"


def _operators(module: nn.Module, positional: Sequence[Any], keywords: Mapping[str, Any]) -> Counter[str]:
    """How often each operator runs that computes something."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    counts: Counter[str] = Counter()

    # Not `watching_mode`, whose recurrent layers are one operator in Python alone.
    class Counting(TorchDispatchMode):  # type: ignore[misc]
        previous = ""

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = func.overloadpacket.__name__
            # A script makes a tensor of one boolean, which Python makes of the number, by filling an empty one.
            creates = name in CREATING or (self.previous == "empty" and name == "fill_" and args[0].dim() == 0)
            self.previous = name
            # A script leaves out a tensor of zeros that nothing reads.
            if name.removesuffix("_") in INDEXING:
                counts.update(_as_indexed(name.removesuffix("_"), args[1]))
            elif not creates and name not in VIEWS | REORDERS:
                # `y[:, t] += x` is written out.
                counts.update(SAME.get(name, (name.removesuffix("_"),)))
            return func(*args, **(kwargs or {}))

    def copied(value: Any) -> Any:
        return value.clone() if isinstance(value, torch.Tensor) else value

    # Either run may write into its inputs.
    arguments, named = [copied(v) for v in positional], {n: copied(v) for n, v in keywords.items()}
    with torch.no_grad(), torch.jit.optimized_execution(False), Counting():
        module(*arguments, **named)
    return counts
