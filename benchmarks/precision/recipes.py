"""Random weights that travel as a seed: a network of 100 MB is a few KB until it is drawn again where it runs.

What a tensor holds is compared with the drawn weights when it is stripped, so that the other machine gets the same
bits: as they are, transposed, in half precision, or with a factor for each row or column (SmoothQuant).
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

# Smaller tensors stay in the file.
LARGE = 4096
# Of `network_cases.make`, which the rule `scale-into-product` puts into matrices.
LAYER_SCALE = 0.5
# Of torch's and of timm's batch norms, with a mean of zero and a variance of one.
FRESH_NORMS = tuple(float(np.float32(1) / np.sqrt(np.float32(1) + np.float32(eps))) for eps in (1e-5, 1e-3))


@dataclass(frozen=True)
class Drawn:
    """A weight that is drawn: normal, of this shape and standard deviation, seeded by its name."""

    name: str
    shape: tuple[int, ...]
    deviation: float

    def values(self) -> np.ndarray:
        generator = np.random.default_rng(zlib.crc32(self.name.encode()))
        return generator.standard_normal(self.shape, dtype=np.float32) * np.float32(self.deviation)


@dataclass(frozen=True)
class Recipe:
    """How a stored tensor comes from a drawn one: transposed or not, times `factors` along `axis`, in `dtype`.

    `scale` is that of a batch norm with fresh statistics that was folded into the weight. Of `merged` groups each one
    was between zeros.
    """

    drawn: Drawn
    transposed: bool
    dtype: str
    axis: int | None = None
    factors: tuple[float, ...] = ()
    scale: float = 1.0
    merged: int = 1

    def values(self) -> np.ndarray:
        array = self.drawn.values()
        array = np.ascontiguousarray(array.T) if self.transposed else array
        if self.axis is not None:
            shape = [1] * array.ndim
            shape[self.axis] = -1
            array = array * np.array(self.factors, np.float32).reshape(shape)
        if self.scale != 1.0:
            array = array * np.float32(self.scale)
        if self.merged > 1:
            # The Python that times torch has no graphsurgeon.
            from trtconv.rewrite.rules.newer.layers.wider_groups import between_zeros

            array = between_zeros(array, self.merged)
        return array.astype(self.dtype)


def strip(path: Path, weights: Mapping[str, Drawn]) -> int:
    """Take the drawn weights out of an ONNX file, in place; returns the bytes that it has now."""
    model = onnx.load(str(path))
    recipes = {}
    for tensor in model.graph.initializer:
        if np.prod(tensor.dims) > LARGE:
            recipe = _recipe(numpy_helper.to_array(tensor), weights)
            if recipe is not None:
                recipes[tensor.name] = asdict(recipe)
                tensor.ClearField("raw_data")
    path.with_suffix(".recipes.json").write_text(json.dumps(recipes))
    onnx.save(model, str(path))
    return path.stat().st_size


def strip_exact(path: Path, weights: Mapping[str, Drawn]) -> int:
    """As `strip`, for weights that are as drawn, transposed, with a norm, in wider groups or in half precision."""
    model, entries = onnx.load(str(path)), {}
    merged = {drawn: (1, *_merges(drawn, model)) for drawn in weights.values()}
    recipes = {
        _digest(recipe.values()): recipe
        for drawn in weights.values()
        for transposed in ((False, True) if len(drawn.shape) == 2 else (False,))
        for scale in ((1.0, *FRESH_NORMS) if len(drawn.shape) == 4 else (1.0, LAYER_SCALE))
        for times in merged[drawn]
        for recipe in (Recipe(drawn, transposed, dtype, scale=scale, merged=times) for dtype in ("float32", "float16"))
    }
    for tensor in model.graph.initializer:
        if np.prod(tensor.dims) > LARGE:
            recipe = recipes.get(_digest(numpy_helper.to_array(tensor)))
            if recipe is not None:
                entries[tensor.name] = asdict(recipe)
                tensor.ClearField("raw_data")
    path.with_suffix(".recipes.json").write_text(json.dumps(entries))
    onnx.save(model, str(path))
    return path.stat().st_size


def _merges(drawn: Drawn, model: onnx.ModelProto) -> list[int]:
    """How many of its groups may be one in the model."""
    if len(drawn.shape) != 4:
        return []
    outputs, width, *kernel = drawn.shape
    shapes = {tuple(t.dims) for t in model.graph.initializer}
    return [
        times
        for times in range(2, outputs // width + 1)
        if outputs % (times * width) == 0 and (outputs, times * width, *kernel) in shapes
    ]


def _digest(array: np.ndarray) -> str:
    # Kernels are told apart by their elements in order: a 1 by 1 convolution may hold a matrix of a Linear.
    return f"{array.dtype} {array.size} {hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()}"


def restore(path: Path, output: Path) -> Path:
    """Write the file with its weights drawn again."""
    model = onnx.load(str(path))
    recipes = json.loads(path.with_suffix(".recipes.json").read_text())
    for tensor in model.graph.initializer:
        if tensor.name in recipes:
            entry = recipes[tensor.name]
            drawn = Drawn(**entry.pop("drawn"))
            tensor.raw_data = Recipe(Drawn(drawn.name, tuple(drawn.shape), drawn.deviation), **entry).values().tobytes()
    onnx.save(model, str(output))
    return output


def _recipe(array: np.ndarray, weights: Mapping[str, Drawn]) -> Recipe | None:
    for drawn in weights.values():
        if sorted(drawn.shape) == sorted(array.shape):
            for recipe in _variants(array, drawn):
                if np.array_equal(recipe.values(), array):
                    return recipe
    return None


def _variants(array: np.ndarray, drawn: Drawn) -> Iterator[Recipe]:
    """The ways that are worth a comparison of all values."""
    base = drawn.values()
    for transposed in (False, True):
        source = base.T if transposed else base
        if source.shape != array.shape or (transposed and base.ndim != 2):
            continue
        yield Recipe(drawn, transposed, str(array.dtype))
        for axis in range(2 if array.ndim == 2 else 0):
            other = tuple(a for a in range(array.ndim) if a != axis)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = array.astype(np.float32) / source
            factors = np.median(ratio, axis=other)
            if np.allclose(ratio, np.expand_dims(factors, other), rtol=1e-5):
                yield _exact(array, drawn, transposed, axis, factors)


def _exact(array: np.ndarray, drawn: Drawn, transposed: bool, axis: int, factors: np.ndarray) -> Recipe:
    """Factors to the last bit where a neighbour of the median fits all values."""
    steps = [factors, np.nextafter(factors, np.float32(np.inf)), np.nextafter(factors, np.float32(0))]
    source = drawn.values().T if transposed else drawn.values()
    shape = [1] * array.ndim
    shape[axis] = -1
    wrong = [np.sum(source * s.astype(np.float32).reshape(shape) != array, axis=1 - axis) for s in steps]
    best = np.choose(np.argmin(wrong, axis=0), steps).astype(np.float32)
    return Recipe(drawn, transposed, str(array.dtype), axis, tuple(float(f) for f in best))
