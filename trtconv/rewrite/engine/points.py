"""The points at which a rewrite is proved: real shapes from the shape space, small enough to run in no time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx

from trtconv.core.model.file import signature
from trtconv.core.shape_space.derived import names_of, size_of
from trtconv.core.shape_space.space import DimRange, ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.proof.points import SamplePoint
from trtconv.proof.sizes import shape_points
from trtconv.rewrite.graph.concrete import ConcreteShapes, NamedShapes
from trtconv.rewrite.graph.facts import Inferred
from trtconv.rewrite.graph.fragment import FragmentInput

MAX_ELEMENTS = 1 << 20
LAST_RESORT_ELEMENTS = 1 << 26
MAX_SHAPES = 4


@dataclass
class Points:
    """The sample points of one model, and the concrete shapes at each, found when they are asked for."""

    inferred: Inferred
    specs: tuple[TensorSpec, ...]
    points: tuple[SamplePoint, ...]
    space: ShapeSpace = field(default_factory=ShapeSpace)
    _at: dict[int, ConcreteShapes] = field(default_factory=dict)
    _named: NamedShapes | None = None

    @staticmethod
    def of(inferred: Inferred, space: ShapeSpace, specs: tuple[TensorSpec, ...]) -> Points:
        """The points of a model; several values at the same sizes count once here."""
        return Points(inferred, specs, shape_points(space, specs), space)

    def moved_to(self, inferred: Inferred) -> Points:
        """The same points for a model that was rewritten meanwhile."""
        return Points(inferred, self.specs, self.points, self.space)

    def concrete(self, index: int) -> ConcreteShapes:
        """The shapes at a point, inferred with its sizes: only where the names of dims did not tell."""
        if index not in self._at:
            self._at[index] = ConcreteShapes(self.inferred.light, self.specs, self.points[index].sizes)
        return self._at[index]

    def shape(self, index: int, name: str) -> tuple[int, ...] | None:
        """The shape of a value of the main graph at a point, or None when it cannot be found without running."""
        if self._named is None:
            self._named = NamedShapes(self.inferred, self.specs)
        inferred_shape = self._named.shape(name, self.points[index].sizes)
        return self.concrete(index).shape(name) if inferred_shape is None else inferred_shape

    def named_space(self, inputs: Sequence[FragmentInput]) -> ShapeSpace:
        """The dims of the shape space that these inputs have by name."""
        names = {n for i in inputs for d in i.type.dims or () if d is not None for n in names_of(d)}
        return ShapeSpace(tuple((n, r) for n, r in self.space.dims if n in names))

    def shapes_at(self, inputs: Sequence[FragmentInput], sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]] | None:
        """The shapes of these inputs at any sizes of the space; None where the names of dims do not tell them."""
        if self._named is None:
            self._named = NamedShapes(self.inferred, self.specs)
        shapes: dict[str, tuple[int, ...]] = {}
        for item in inputs:
            shape = None if item.weight else self._named.shape(item.name, sizes)
            dims = item.type.dims or (None,)
            if shape is None and all(d is not None and all(n in sizes for n in names_of(d)) for d in dims):
                shape = tuple(size_of(d, sizes) for d in dims if d is not None)
            if shape is None:
                return None
            shapes[item.name] = shape
        return shapes

    def shapes(self, inputs: Sequence[FragmentInput]) -> list[tuple[str, dict[str, tuple[int, ...]]]]:
        """Labels and shapes of these inputs at up to four distinct points that are small enough to run."""
        costs_and_shapes: dict[tuple[tuple[int, ...], ...], tuple[int, str, dict[str, tuple[int, ...]]]] = {}
        for index, point in enumerate(self.points):
            shapes = self._shapes_at(index, inputs)
            if shapes is None:
                continue
            key = tuple(shapes.values())
            cost = sum(math.prod(s) for s in key)
            costs_and_shapes.setdefault(key, (cost, str(point), shapes))
        ordered = sorted(costs_and_shapes.values(), key=lambda f: f[0])
        chosen = [f for f in ordered if f[0] <= MAX_ELEMENTS]
        if not chosen:
            chosen = [f for f in ordered[:1] if f[0] <= LAST_RESORT_ELEMENTS]
        if len(chosen) > MAX_SHAPES:
            step = (len(chosen) - 1) / (MAX_SHAPES - 1)
            chosen = [chosen[round(i * step)] for i in range(MAX_SHAPES)]
        return [(label, shapes) for _, label, shapes in chosen]

    def _shapes_at(self, index: int, inputs: Sequence[FragmentInput]) -> dict[str, tuple[int, ...]] | None:
        """Shapes at a point. A dim that nothing tells gets a size by its name, the same for the same name."""
        shapes: dict[str, tuple[int, ...]] = {}
        for item in inputs:
            shape = None if item.weight else self.shape(index, item.name)
            if shape is None:
                partial = item.type if item.weight else self.concrete(index).partial(item.name)
                dims = item.type.dims if partial.dims is None else partial.dims
                if dims is None:
                    return None
                shape = tuple(d if isinstance(d, int) else self._guess(index, d, axis) for axis, d in enumerate(dims))
            shapes[item.name] = shape
        return shapes

    def _guess(self, index: int, name: str | None, axis: int) -> int:
        sizes = self.points[index].sizes
        if name in sizes:
            return sizes[str(name)]
        return (2, 3, 1, 5)[index % 4] if axis == 0 else (7, 12, 17, 9)[index % 4]


def model_space(model: onnx.ModelProto) -> tuple[ShapeSpace, tuple[TensorSpec, ...]]:
    """The recorded shape space and inputs; dims without a range get one that is usual for their place."""
    interface = signature(model)
    dims = dict(interface.space.dims)
    for spec in interface.inputs:
        for axis, dim in enumerate(spec.dims):
            for name in (n for n in names_of(dim) if n not in dims):
                dims[name] = DimRange(1, 2, 3) if axis == 0 and len(spec.dims) > 1 else DimRange(32, 48, 77)
    return ShapeSpace(tuple(dims.items())), interface.inputs
