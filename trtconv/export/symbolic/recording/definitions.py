"""Functions that torch's recording exporter has no ONNX form of, recorded as the functions that torch defines them by.

The recorder writes one node for `torch.isclose`, and the exporter has nothing for it. torch itself says what most such
functions are: a composition in C++, whose steps are then recorded each by itself, or a reference in Python. A size is a
number in C++: what depends on one is written out by hand (`trtconv.export.symbolic.recording.written_out`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

Function = Callable[..., Any]


def lacks_form(name: str) -> bool:
    """True while a run is recorded, for the name of an operator of aten that has no form at the file's opset."""
    import torch

    if not torch.jit.is_tracing() or name.startswith("__") or not hasattr(torch.ops.aten, name):
        return False
    from torch.onnx._internal.torchscript_exporter._globals import GLOBALS
    from torch.onnx._internal.torchscript_exporter.registration import registry

    opset = GLOBALS.export_onnx_opset_version
    return not any(registry.is_registered_op(f"aten::{n}", opset) for n in (name, name.rstrip("_")))


def recorded_steps(mode: Any, func: Function, name: str, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """What an operator without a form gives, by the steps that torch defines it by; by itself where it says none.

    `mode` hands the steps of a reference on to the handlers, as it does those of the user's code.
    """
    import torch

    overload = _overload(name, args, named)
    if overload is not None and (torch.Tag.nondeterministic_seeded in overload.tags or not _gives_tensors(overload)):
        return func(*args, **named)
    if overload is not None and overload.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd):
        # A mode, of whomever, would be asked again, and record the operator as a whole.
        with torch._C.DisableTorchFunction():
            return overload.decompose(*args, **named)
    reference = _reference(name)
    if reference is None:
        return func(*args, **named)
    with mode:
        return reference(*args, **named)


def _gives_tensors(overload: Any) -> bool:
    """False for a question about a tensor, such as `is_contiguous`, which is no step of the file's."""
    return any("Tensor" in str(value.type) for value in overload._schema.returns)


def _reference(name: str) -> Function | None:
    import torch
    import torch._refs.special

    spaces = (torch._refs.special,) if name.startswith("special_") else (torch._refs, torch._refs.special)
    definitions = (getattr(space, name.removeprefix("special_"), None) for space in spaces)
    return next((reference for reference in definitions if reference is not None), None)


def _overload(name: str, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    import torch

    packet = getattr(torch.ops.aten, name)
    try:
        chosen = torch._C._jit_resolve_packet(packet._qualified_op_name, *args, **named)
    except RuntimeError:
        return None
    return getattr(packet, chosen or "default")
