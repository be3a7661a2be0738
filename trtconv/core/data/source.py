"""`read_data`: what `--data` names, as samples that fit the network's inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.data.files import read_path
from trtconv.core.data.iterator import is_function, read_function
from trtconv.core.data.preprocess import parse_preprocess
from trtconv.core.data.samples import Sample
from trtconv.core.errors import InvalidRequestError

if TYPE_CHECKING:
    from trtconv.core.tensors import TensorSpec


@dataclass(frozen=True)
class DataSource:
    """Where data comes from: a folder, a file or `FILE.py:function`; `preprocess` is for images."""

    spec: str
    preprocess: str = ""

    def require_readable(self) -> None:
        """Raise InvalidRequestError for what is wrong whatever the network is."""
        if self.preprocess:
            parse_preprocess(self.preprocess)
        path = Path(self.spec.rpartition(":")[0] if is_function(self.spec) else self.spec)
        if not path.exists():
            raise InvalidRequestError(f"there is no data '{path}'", hint="name a folder, a file, or FILE.py:function")


def read_data(source: DataSource, specs: Sequence[TensorSpec]) -> tuple[Sample, ...]:
    """All samples, in the inputs' dtypes. Raises InvalidRequestError for what does not fit the network's inputs."""
    how = parse_preprocess(source.preprocess) if source.preprocess else None
    if is_function(source.spec):
        samples = read_function(source.spec, specs)
    else:
        samples = read_path(Path(source.spec), specs, how)
    return tuple(_fitted(sample, specs, number) for number, sample in enumerate(samples))


def _fitted(sample: Sample, specs: Sequence[TensorSpec], number: int) -> Sample:
    inputs = {}
    for spec in specs:
        array = sample.inputs[spec.name]
        wrong = array.ndim != len(spec.dims) - 1 or any(
            isinstance(dim, int) and dim != size for dim, size in zip(spec.dims[1:], array.shape, strict=False)
        )
        if wrong:
            raise InvalidRequestError(
                f"sample {number} is {list(array.shape)} for the input {spec}",
                hint=f"a sample is {list(spec.dims[1:])}: one row along axis 0",
            )
        dtype = spec.dtype.numpy()
        if array.dtype.kind == "f" and dtype.kind in "iub":
            raise InvalidRequestError(
                f"sample {number} holds {array.dtype} for the input {spec}", hint=f"give it as {dtype.name}"
            )
        inputs[spec.name] = array.astype(dtype)
    return replace(sample, inputs=inputs)
