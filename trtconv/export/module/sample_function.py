"""Inputs at a sample point: random ones, or those of the user's function `file.py:function`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import InvalidRequestError, TrtconvError
from trtconv.core.tensors import TensorSpec
from trtconv.export.module.runner import to_array
from trtconv.export.module.source import load_function
from trtconv.export.module.user_code import blame
from trtconv.proof.original import MakeInputs
from trtconv.proof.points import SamplePoint, sample_inputs

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


def inputs_maker(specs: Sequence[TensorSpec], sample: str | None, base: Path) -> MakeInputs:
    """Random inputs, or those of the user's function `file.py:function`, which is loaded here."""
    if sample is None:
        return lambda point: sample_inputs(specs, point)
    function = load_function(sample, base, "function")

    def make(point: SamplePoint) -> Mapping[str, Array]:
        import torch

        generator = torch.Generator().manual_seed(point.seed)
        try:
            sampled = function(dict(point.dims), generator)
        except Exception as error:
            raise TrtconvError(
                f"the sample function '{sample}' raised {type(error).__name__}: {error}",
                hint="it is called with (dims: dict[str, int], generator: torch.Generator)",
                where=blame(error, base),
            ) from error
        return _fitted(sampled, specs, point, sample)

    return make


def _fitted(sampled: Any, specs: Sequence[TensorSpec], point: SamplePoint, sample: str) -> Mapping[str, Array]:
    import torch

    values = [sampled[s.name] for s in specs if s.name in sampled] if isinstance(sampled, Mapping) else sampled
    values = (values,) if isinstance(values, torch.Tensor) else tuple(values)
    if len(values) != len(specs):
        raise InvalidRequestError(
            f"the sample function '{sample}' returned {len(values)} tensors for {len(specs)} inputs",
            hint="return them in the order of --input: " + ", ".join(s.name for s in specs),
        )
    arrays = {s.name: to_array(torch.as_tensor(v)) for s, v in zip(specs, values, strict=True)}
    for spec in specs:
        array = arrays[spec.name]
        if tuple(array.shape) != spec.shape(point.sizes) or array.dtype != spec.dtype.numpy():
            raise InvalidRequestError(
                f"the sample function '{sample}' returned {array.dtype} {list(array.shape)} for '{spec.name}'",
                hint=f"at {point} it has to be {spec.dtype.name} {list(spec.shape(point.sizes))}",
            )
    return arrays
