"""What a module's inputs are likely to be, for a config that its author completes: nothing is run.

Parameters without a default are inputs; those with None are, too, where no other is. The first input is read off the
first layer that has weights; the others, and a module whose first layer tells nothing, off names and type hints.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.export.module.runner import forward_of

if TYPE_CHECKING:
    from torch import nn

_IDS = re.compile(r"(^|_)(ids?|tokens?|indices|index|labels?|mask|positions?)($|_)")
_IMAGES = re.compile(r"(^|_)(images?|imgs?|pixels?|pixel_values|frames?|pictures?)($|_)")
_VOLUMES = ("T", "H", "W")


@dataclass(frozen=True)
class LikelyInput:
    """An input; `dims` None where nothing tells them. `value_range` is inclusive; an `optional` one may be left out."""

    name: str
    dtype: str = "float32"
    dims: tuple[int | str, ...] | None = None
    value_range: tuple[int, int] | None = None
    optional: bool = False


def likely_inputs(module: nn.Module) -> tuple[LikelyInput, ...]:
    """One for each parameter of forward that may take a tensor, in order."""
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = [p for p in inspect.signature(forward_of(module)).parameters.values() if p.kind not in variadic]
    required = [p for p in parameters if p.default is p.empty]
    unset = [p for p in parameters if p.default is None and _may_be_tensor(p.annotation)]
    if required:
        optional = {p.name for p in unset}
        listed = [p for p in parameters if p in required or p in unset]
    else:
        optional = {p.name for p in unset[1:] if _by_name(p).dims is None}
        listed = unset
    first = next((p.name for p in listed if p.name not in optional), "")
    return tuple(_likely(module, p, p.name == first, p.name in optional) for p in listed)


def likely_part(module: nn.Module, path: str, *, first: bool) -> LikelyInput:
    """What a tensor in a dict or list is likely to be, by the last name in its path, or by the layers if it leads."""
    named = _by_text(path, path.rpartition(".")[2], "")
    read = _by_layer(module, path) if first else None
    return named if read is None or named.dtype not in ("float32", read.dtype) else read


def _may_be_tensor(annotation: Any) -> bool:
    return annotation is inspect.Parameter.empty or "Tensor" in str(annotation)


def _likely(module: nn.Module, parameter: inspect.Parameter, first: bool, optional: bool) -> LikelyInput:
    named = _by_name(parameter)
    read = _by_layer(module, parameter.name) if first else None
    chosen = read or named
    # A name that says "ids" or a hint LongTensor is right about the type where the first layer is not an embedding.
    if read is not None and named.dtype != "float32" and read.dtype != named.dtype:
        chosen = named
    return LikelyInput(chosen.name, chosen.dtype, chosen.dims, chosen.value_range, optional)


def _by_name(parameter: inspect.Parameter) -> LikelyInput:
    return _by_text(parameter.name, parameter.name, str(parameter.annotation))


def _by_text(path: str, name: str, hint: str) -> LikelyInput:
    name = name.lower()
    if "BoolTensor" in hint:
        return LikelyInput(path, "bool", ("N", "T"))
    if "LongTensor" in hint or "IntTensor" in hint or _IDS.search(name):
        return LikelyInput(path, "int32" if "IntTensor" in hint else "int64", ("N", "T"), (0, 1))
    if _IMAGES.search(name):
        return LikelyInput(path, "float32", ("N", 3, "H", "W"))
    return LikelyInput(path)


def _by_layer(module: nn.Module, name: str) -> LikelyInput | None:
    """What the first layer with weights takes; None for a layer that tells nothing."""
    from torch import nn

    layer = next((m for m in module.modules() if list(m.parameters(recurse=False))), None)
    if isinstance(layer, nn.Embedding):
        return LikelyInput(name, "int64", ("N", "T"), (0, layer.num_embeddings - 1))
    for dimensions, kind in enumerate((nn.Conv1d, nn.Conv2d, nn.Conv3d), start=1):
        if isinstance(layer, kind):
            sizes = ("T",) if dimensions == 1 else _VOLUMES[-dimensions:]
            return LikelyInput(name, "float32", ("N", layer.in_channels, *sizes))
    if isinstance(layer, nn.Linear):
        # These take one sequence without a batch for a batch of numbers, and would run.
        sequences = any(isinstance(m, (nn.RNNBase, nn.MultiheadAttention)) for m in module.modules())
        return LikelyInput(name, "float32", ("N", "T", layer.in_features) if sequences else ("N", layer.in_features))
    if isinstance(layer, nn.RNNBase):
        dims = ("N", "T") if layer.batch_first else ("T", "N")
        return LikelyInput(name, "float32", (*dims, layer.input_size))
    return None
