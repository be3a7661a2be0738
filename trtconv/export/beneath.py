"""What acts beneath the operators that exporters record: modes for dispatch, tensors and kernels that are not torch's.

An exporter records `aten::mul`, whatever a mode, the class of a tensor or a registered kernel makes of it.
"""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest import mock

from trtconv.core.errors import AccuracyError
from trtconv.core.text.listing import list_first
from trtconv.export.module.user_code import Frame, calling_user_frame, format_frame, is_machinery
from trtconv.export.sizes.work import watching_mode
from trtconv.export.symbolic.recording.aliases import tensors_in

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from trtconv.proof.original import Run

    Array = np.ndarray[Any, np.dtype[Any]]

# Kernels that Python registers for these run in place of torch's; those for Meta give shapes only.
RUNNING = (
    "CPU", "AutogradCPU", "AutocastCPU", "Autograd", "CompositeExplicitAutograd", "CompositeImplicitAutograd",
)  # fmt: skip
MOST_NAMED = 3


@dataclass
class SeenBeneath:
    """What a run was seen to use: the first class of a mode or a tensor with its line, and operators by name."""

    owner: str = ""
    frame: Frame | None = None
    called: set[str] = field(default_factory=set)

    def note(self, kind: type) -> None:
        """A class with a `__torch_dispatch__` acts; torch's own classes, and trtconv's, may."""
        if not self.owner and not is_machinery(inspect.getsourcefile(kind) or "<"):
            self.owner, self.frame = kind.__name__, calling_user_frame()


def require_nothing_beneath(run: Run, inputs: Mapping[str, Array], base: Path) -> None:
    """Run once. Raise AccuracyError where the user's or a library's code changes what operators of torch compute.

    It may do so by a TorchDispatchMode that forward enters, by a tensor whose class has a `__torch_dispatch__`, or by
    a kernel that torch.library registered for an operator of aten which the run calls.
    """
    with _watched() as beneath:
        run(inputs)
    if beneath.owner:
        line = f": `{linecache.getline(*beneath.frame).strip()}`" if beneath.frame else ""
        raise AccuracyError(
            f"forward computes under the __torch_dispatch__ of {beneath.owner}{line}; exporters record the operators "
            "above it, and what it does is not in the file",
            hint="write what it does as functions of torch, or in a TorchFunctionMode, which exporters follow",
            where=format_frame(beneath.frame, base),
        )
    names = sorted(_replaced() & beneath.called)
    if names:
        raise AccuracyError(
            f"torch.library registers kernels in place of torch's own for {list_first(names, MOST_NAMED)}, which the "
            "module calls; a file holds torch's operators, and not what these kernels compute",
            hint="leave that registration out, or write what the kernel does as functions of torch",
        )


@contextmanager
def _watched() -> Iterator[SeenBeneath]:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    beneath, enter, own = SeenBeneath(), TorchDispatchMode.__enter__, torch.Tensor.__torch_dispatch__

    class NotesCalls(watching_mode()):  # type: ignore[misc]
        def watch(self, func: Any, args: Any, kwargs: Any) -> Any:
            beneath.called.add(str(func.name()).removeprefix("aten::"))
            for tensor in tensors_in((*args, *kwargs.values())):
                if type(tensor).__torch_dispatch__ is not own:
                    beneath.note(type(tensor))
            return func(*args, **kwargs)

    def entered(mode: Any) -> Any:
        beneath.note(type(mode))
        return enter(mode)

    with NotesCalls(), mock.patch.object(TorchDispatchMode, "__enter__", entered):
        yield beneath


def _replaced() -> set[str]:
    """The operators of aten for which Python registered a kernel that runs on a CPU: `mul.Tensor`."""
    from torch import library

    return {key.split("/")[1] for key in library._impls if key.startswith("aten/") and key.endswith(RUNNING)}
