"""Modules that are TorchScript as a whole: what `torch.jit.script`, `trace`, `load` and `freeze` give."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from trtconv.export.module.runner import take_named_inputs

if TYPE_CHECKING:
    from torch import nn


def callable_module(module: nn.Module) -> nn.Module:
    """The module itself; one that is TorchScript inside of a module in Python, which exporters can look into.

    Its inputs are called as in the script. A frozen one is called as a function: it has neither modes nor weights.
    """
    import torch

    if not isinstance(module, torch.jit.ScriptModule):
        return module
    return _in_python(module, _signature(module.forward.schema))


def outermost_scripts(module: Any) -> Iterator[Any]:
    """The parts that are scripts; what such a part consists of is in its graph."""
    import torch

    for part in module.children():
        if isinstance(part, torch.jit.ScriptModule):
            yield part
        else:
            yield from outermost_scripts(part)


def _signature(schema: Any) -> inspect.Signature:
    """The parameters of a method of a script, without its `self`."""
    parameter = inspect.Parameter
    return inspect.Signature(
        [
            parameter(
                a.name,
                parameter.KEYWORD_ONLY if a.kwarg_only else parameter.POSITIONAL_OR_KEYWORD,
                default=a.default_value if a.has_default_value() else parameter.empty,
            )
            for a in schema.arguments[1:]
        ]
    )


def _in_python(script: Any, signature: inspect.Signature) -> nn.Module:
    from torch import nn

    function = _frozen_function(script)

    class Script(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            if function is None:
                self.script = script
            self.training = bool(getattr(script, "training", False))

        def forward(self, *inputs: Any, **named: Any) -> Any:
            called = function if function is not None else self.script
            bound = signature.bind(*inputs, **named)
            bound.apply_defaults()
            return called(*bound.args, **bound.kwargs)

    return take_named_inputs(Script(), signature)


def _frozen_function(script: Any) -> Any:
    """The forward of a frozen script as a function; None when it is not frozen, or refers to what it is part of.

    The class of a frozen module is one of its own, which the tracer cannot have as the type of a part.
    """
    import torch

    if hasattr(script, "training"):
        return None
    graph = script.forward.graph.copy()
    own = next(iter(graph.inputs()))
    if list(own.uses()):
        return None
    graph.eraseInput(0)
    return torch._C._create_function_from_graph("forward", graph)
