"""Samples out of the user's Python function, which gives batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.data.samples import Sample, rows_to_samples
from trtconv.core.errors import InvalidRequestError, TrtconvError, did_you_mean
from trtconv.core.files.python_file import load_python

if TYPE_CHECKING:
    import numpy as np

    from trtconv.core.tensors import TensorSpec

    Array = np.ndarray[Any, np.dtype[Any]]

HINT = "it yields batches: a dict of arrays by input, an array, or a tuple (inputs, labels)"


def is_function(text: str) -> bool:
    """True for `FILE.py:function`."""
    path, colon, name = text.rpartition(":")
    return bool(colon) and path.endswith(".py") and name.isidentifier()


def load_function(text: str, what: str) -> Any:
    """The function that `FILE.py:function` names. Raises InvalidRequestError when there is none."""
    path, _, name = text.rpartition(":")
    module = load_python(Path(path), what)
    function = getattr(module, name, None)
    if not callable(function):
        names = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise InvalidRequestError(f"'{path}' has no function '{name}'{did_you_mean(name, names)}", hint=HINT)
    return function


def read_function(text: str, specs: Sequence[TensorSpec]) -> list[Sample]:
    """All samples that the function's iterator gives. Raises InvalidRequestError for batches that do not fit."""
    function = load_function(text, "data file")
    samples: list[Sample] = []
    try:
        for number, batch in enumerate(function()):
            samples += _of_batch(batch, specs, f"batch {number} of '{text}'")
    except TrtconvError:
        raise
    except Exception as error:
        raise InvalidRequestError(
            f"the data function '{text}' raised {type(error).__name__}: {error}", hint=HINT
        ) from error
    return samples


def _of_batch(batch: Any, specs: Sequence[TensorSpec], origin: str) -> list[Sample]:
    inputs, labels = batch, None
    if isinstance(batch, tuple):
        if len(batch) != 2:
            raise InvalidRequestError(f"{origin} is a tuple of {len(batch)}", hint=HINT)
        inputs, labels = batch
    if not isinstance(inputs, Mapping):
        if len(specs) != 1:
            raise InvalidRequestError(f"{origin} is one array for {len(specs)} inputs", hint=HINT)
        inputs = {specs[0].name: inputs}
    missing = [s.name for s in specs if s.name not in inputs]
    if missing:
        near = did_you_mean(missing[0], inputs)
        raise InvalidRequestError(f"{origin} has no input '{missing[0]}'{near}", hint=HINT)
    arrays = {s.name: _array(inputs[s.name], origin) for s in specs}
    return rows_to_samples(arrays, _labels(labels), origin)


def _array(value: Any, origin: str) -> Array:
    import numpy as np

    # A torch tensor gives its memory by the same method; it may be on a GPU or need gradients.
    plain = value.detach().cpu() if hasattr(value, "detach") else value
    array = np.asarray(plain)
    if array.dtype.kind not in "fiub" and array.dtype.name != "bfloat16":
        raise InvalidRequestError(f"{origin} holds {array.dtype}, not numbers", hint=HINT)
    return array


def _labels(labels: Any) -> Any:
    if labels is None or isinstance(labels, (list, tuple)):
        return labels
    if isinstance(labels, Mapping):
        return {name: _labels(column) for name, column in labels.items()}
    import numpy as np

    return np.asarray(labels.detach().cpu() if hasattr(labels, "detach") else labels)
