"""torch.onnx's forms of operators, read once in a process: each export reads the source of all 500 again.

That is half a second, which for a small module is most of its export.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from unittest import mock


@contextmanager
def remembered_forms() -> Iterator[None]:
    """In the block, torch.onnx.export gets copies of a registry that was read before."""
    from torch.onnx._internal.exporter import _constants, _registration

    read = _registration.ONNXRegistry.from_torchlib

    def remembered(opset_version: int = _constants.TORCHLIB_OPSET) -> Any:
        before = _read(read, opset_version, _libraries())
        registry = _registration.ONNXRegistry()
        registry._opset_version = before._opset_version
        # An export adds forms of its own to the lists.
        registry.functions = {target: list(forms) for target, forms in before.functions.items()}
        return registry

    with mock.patch.object(_registration.ONNXRegistry, "from_torchlib", staticmethod(remembered)):
        yield


@cache
def _read(read: Any, opset: int, libraries: tuple[bool, ...]) -> Any:
    return read(opset_version=opset)


def _libraries() -> tuple[bool, ...]:
    """Which of the libraries are loaded whose operators torch.onnx has forms of: those of the others it leaves out."""
    import torch

    return hasattr(torch.ops.torchvision, "nms"), hasattr(torch.ops.quantized_decomposed, "quantize_per_tensor")
