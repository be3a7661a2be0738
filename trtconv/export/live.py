"""Modules that are given as they are, in a notebook or a test: described for the manifest, lent and put back."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.requests import LiveModule
from trtconv.export.module.runner import forward_of
from trtconv.export.module.source import require_torch
from trtconv.export.module.user_code import is_library

if TYPE_CHECKING:
    import torch
    from torch import nn

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def live_module(module: Any) -> LiveModule:
    """The module with the name of its class, and the file of the user's that defines it.

    Of what torch.compile returns, which no exporter takes, it is the module inside.
    """
    module = getattr(module, "_orig_mod", module)
    kind = type(module)
    try:
        file = inspect.getsourcefile(kind)
    except (TypeError, OSError):
        file = None
    own = file is not None and Path(file).is_file() and not is_library(str(Path(file).resolve()))
    return LiveModule(module, f"{kind.__module__}.{kind.__qualname__}", Path(file).resolve() if own and file else None)


def parameter_names(module: Any) -> tuple[str, ...]:
    """The parameters of forward that an input can go to, in order."""
    parameters = inspect.signature(forward_of(module)).parameters.values()
    return tuple(p.name for p in parameters if p.kind not in _VARIADIC)


def state_digest(module: nn.Module) -> str:
    """SHA-256 over names, dtypes, shapes and values of all parameters and buffers."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted([*module.named_parameters(), *module.named_buffers()]):
        plain = tensor.detach().cpu().contiguous()
        digest.update(f"{name}:{plain.dtype}:{tuple(plain.shape)}".encode())
        digest.update(plain.reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


@contextmanager
def borrowed(module: Any) -> Iterator[None]:
    """Put the module back in the end: its modes and its devices.

    Conversion runs it in eval mode on the CPU. Tensors that were on the CPU are used as they lie, and what calls change
    in them stays, as after calls of the user's own: a module that folds its norms at the first one is not put back by
    half. One that was in training mode is put there by its own `train`, which may have weights to exchange.
    """
    require_torch()
    from torch import nn

    if not isinstance(module, nn.Module):
        yield
        return
    # A frozen script has no mode.
    modes = [(part, part.training) for part in module.modules() if hasattr(part, "training")]
    parameters = [(p, p.data) for p in module.parameters() if p.device.type != "cpu"]
    buffers = [
        (part, name, buffer)
        for part in module.modules()
        for name, buffer in part.named_buffers(recurse=False)
        if buffer.device.type != "cpu"
    ]
    try:
        yield
    finally:
        for parameter, data in parameters:
            parameter.data = _moved_back(parameter.data, data)
        for part, name, buffer in buffers:
            if part._buffers.get(name) is not None:
                part._buffers[name] = _moved_back(part._buffers[name], buffer)
        for part, training in modes:
            if part.training is not training:
                part.train(training)
        for part, training in modes:
            part.training = training


def _moved_back(now: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """The tensor on the device of the one before, and that one itself where nothing was changed in it."""
    import torch

    if now.device == before.device:
        return now
    is_same = now.shape == before.shape and now.dtype == before.dtype and torch.equal(now, before.to(now.device))
    return before if is_same else now.to(before.device)
