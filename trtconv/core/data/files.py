"""Samples out of files: .npy, .npz, .safetensors and images. Nothing is ever unpickled."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.data.preprocess import EXAMPLE, Preprocess, read_image
from trtconv.core.data.samples import Sample, rows_to_samples
from trtconv.core.errors import InvalidRequestError

if TYPE_CHECKING:
    import numpy as np

    from trtconv.core.tensors import TensorSpec

    Array = np.ndarray[Any, np.dtype[Any]]

ARRAYS = (".npy", ".npz", ".safetensors")
IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
# The key under which a file of several arrays holds what is right.
LABELS = "labels"


def read_path(path: Path, specs: Sequence[TensorSpec], how: Preprocess | None) -> list[Sample]:
    """All samples of a file or a folder, in order of the files' names.

    A folder holds array files or images. Of an array file with names, the arrays called as the inputs are taken and
    `labels` are the labels; one array alone is the only input. An array with one axis less than the input is one
    sample. `labels.npy` in the folder has one row per sample; images have the number of their folder, in order of
    names, as their label. Raises InvalidRequestError for what cannot be read.
    """
    if not path.exists():
        raise InvalidRequestError(f"there is no data '{path}'", hint="name a folder, a file, or FILE.py:function")
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    arrays = [p for p in files if p.suffix.lower() in ARRAYS and p.name != f"{LABELS}.npy"]
    images = [p for p in files if p.suffix.lower() in IMAGES]
    if arrays and images:
        raise InvalidRequestError(f"'{path}' holds arrays and images", hint="keep them in two folders")
    if not arrays and not images:
        raise InvalidRequestError(
            f"'{path}' holds no data", hint="it takes " + ", ".join(ARRAYS) + " and images (" + ", ".join(IMAGES) + ")"
        )
    samples = (
        _from_images(path, images, specs, how)
        if images
        else [sample for file in arrays for sample in _from_arrays(file, specs)]
    )
    beside = path / f"{LABELS}.npy"
    if path.is_dir() and beside.is_file():
        samples = _labelled(samples, _load_npy(beside), beside)
    return samples


def _from_images(
    folder: Path, files: Sequence[Path], specs: Sequence[TensorSpec], how: Preprocess | None
) -> list[Sample]:
    if how is None:
        raise InvalidRequestError(f"'{folder}' holds images, and nothing says how they become inputs", hint=EXAMPLE)
    if len(specs) != 1:
        raise InvalidRequestError(
            f"images fill one input, and the network has {len(specs)}", hint="write a function: --data FILE.py:function"
        )
    classes = sorted({p.parent for p in files if p.parent != folder})
    number = {p: i for i, p in enumerate(classes)}
    return [Sample({specs[0].name: read_image(p, how)}, number.get(p.parent)) for p in files]


def _from_arrays(path: Path, specs: Sequence[TensorSpec]) -> list[Sample]:
    contents = load_arrays(path)
    labels = contents.pop(LABELS, None)
    if len(contents) == 1 and len(specs) == 1:
        contents = {specs[0].name: next(iter(contents.values()))}
    missing = [s.name for s in specs if s.name not in contents]
    if missing:
        raise InvalidRequestError(
            f"'{path}' has no array for the input '{missing[0]}'",
            hint="it holds " + (", ".join(contents) or "nothing") + "; name the arrays as the inputs",
        )
    inputs = {s.name: contents[s.name] for s in specs}
    if all(a.ndim == len(s.dims) - 1 for s, a in zip(specs, inputs.values(), strict=True)):
        return [Sample(inputs, labels)]
    return rows_to_samples(inputs, labels, f"'{path}'")


def load_arrays(path: Path) -> dict[str, Array]:
    """The arrays of a file by name; the one of an .npy file is called as the file is."""
    if path.suffix.lower() == ".npy":
        return {path.stem: _load_npy(path)}
    import numpy as np

    if path.suffix.lower() == ".npz":
        try:
            with np.load(path, allow_pickle=False) as stored:
                return {name: stored[name] for name in stored.files}
        except (ValueError, OSError, EOFError) as error:
            raise _unreadable(path, error) from error
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        loaded: dict[str, Array] = load_file(str(path))
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise _unreadable(path, error) from error
    return loaded


def _load_npy(path: Path) -> Array:
    import numpy as np

    try:
        array: Array = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise _unreadable(path, error) from error
    return array


def _unreadable(path: Path, error: Exception) -> InvalidRequestError:
    pickled = "allow_pickle" in str(error) or "pickle" in str(error).lower()
    reason = "it holds pickled objects, which could run code" if pickled else str(error)
    return InvalidRequestError(f"the data '{path}' cannot be read: {reason}", hint="save plain arrays of numbers")


def _labelled(samples: list[Sample], labels: Array, path: Path) -> list[Sample]:
    if len(labels) != len(samples):
        raise InvalidRequestError(
            f"'{path}' has {len(labels)} labels for {len(samples)} samples", hint="one row for each, in order of names"
        )
    return [Sample(s.inputs, label) for s, label in zip(samples, labels, strict=True)]
