"""Which functions a node of an exported program may call.

torch resolves the node's text by attribute look-ups from the module `torch` (torch/_export/serde/serialize.py,
`deserialize_operator`) and takes whatever can be called, `torch.os.system` too.
"""

from __future__ import annotations

import re

# What torch itself, or torchvision where it is imported, registers.
_NAMESPACES = {"aten", "prims", "quantized", "quantized_decomposed", "torchvision"}
_OVERLOAD = re.compile(r"torch\.ops\.(\w{1,64})\.(\w{1,128})\.(\w{1,128})", re.ASCII)
_HIGHER_ORDER = "torch.ops.higher_order."
_CONTROL_FLOW = {
    "cond", "while_loop", "while_loop_stack_output", "scan", "map_impl", "map", "associative_scan", "out_dtype",
    "wrap_with_set_grad_enabled", "wrap_with_autocast", "tag_activation_checkpoint", "wrap_activation_checkpoint",
    "wrap", "strict_mode", "invoke_subgraph", "hints_wrapper", "flex_attention", "auto_functionalized",
    "auto_functionalized_v2",
}  # fmt: skip
# `_SYM_OPS` of torch/_export/serde/serialize.py.
_ARITHMETIC = {f"_operator.{n}" for n in (
    "eq", "ne", "le", "ge", "lt", "gt", "neg", "pos", "mul", "add", "sub", "floordiv", "mod", "pow", "truediv", "and_",
    "or_", "lshift", "rshift", "getitem",
)} | {"torch._sym_sqrt"} | {f"torch.sym_{n}" for n in ("not", "int", "float", "ite", "max", "min", "sqrt", "sum")} | {
    f"math.{n}" for n in ("trunc", "floor", "ceil", "sqrt")
}  # fmt: skip


def require_operator(text: str) -> None:
    """Raise ValueError unless `text` names an operator of torch, control flow, or arithmetic on sizes."""
    if text in _ARITHMETIC:
        return
    if text.startswith(_HIGHER_ORDER) and text.removeprefix(_HIGHER_ORDER) in _CONTROL_FLOW:
        return
    name = _OVERLOAD.fullmatch(text)
    if name is None or name[1] not in _NAMESPACES:
        raise ValueError("is not a torch operator")
    _require_overload(name[1], name[2], name[3])


def _require_overload(namespace: str, operator: str, overload: str) -> None:
    import torch

    value = getattr(getattr(getattr(torch.ops, namespace), operator, None), overload, None)
    if not isinstance(value, torch._ops.OpOverload):
        raise ValueError("is not an operator of this torch")
    if any("file" in a.name or "path" in a.name for a in value._schema.arguments):
        raise ValueError("is an operator that reads or writes files")
