"""Programs that `torch.export.save` wrote (`*.pt2`)."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.artifacts import require_file
from trtconv.core.errors import InvalidRequestError

if TYPE_CHECKING:
    from torch import nn


def load_program(path: Path) -> nn.Module:
    """The module of an exported program. Raises InvalidRequestError when the file is none."""
    import torch

    require_file(path, "exported program")
    try:
        program = torch.export.load(str(path))
    except Exception as error:
        text = str(error).strip().splitlines()
        raise InvalidRequestError(
            f"'{path}' is no exported program of this torch: {text[0][:200] if text else type(error).__name__}",
            hint="write it with torch.export.save(torch.export.export(...), path)",
        ) from error
    return _with_names(program)


def _with_names(program: Any) -> nn.Module:
    """A module that takes the program's inputs by name, whether its author passed them by position or by name."""
    from torch import nn

    inner = program.module(check_guards=False)
    positional, keywords = program.module_call_graph[0].signature.in_spec.children()
    names = list(inspect.signature(inner.forward).parameters)
    first = names[: positional.num_children]
    parameter = inspect.Parameter

    class Program(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.program = inner
            self.training = False

        def forward(self, **inputs: Any) -> Any:
            return self.program(*(inputs[n] for n in first), **{n: inputs[n] for n in keywords.context or ()})

    made = Program()
    signature = inspect.Signature([parameter(n, parameter.POSITIONAL_OR_KEYWORD) for n in names])

    def named_forward(**inputs: Any) -> Any:
        return made(**inputs)

    named_forward.__signature__ = signature  # type: ignore[attr-defined]
    made.named_forward = named_forward
    return made
