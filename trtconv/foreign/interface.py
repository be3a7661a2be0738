"""Inputs, dims and ranges of a foreign file: read from the file, with what the user named laid over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.core.model.dim_names import DimName, axis_name, name_dims
from trtconv.core.model.file import tensor_spec
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import Dim, TensorSpec, lay_over

if TYPE_CHECKING:
    import onnx

STRING = 8
MOST_SHOWN = 6


@dataclass(frozen=True)
class Interface:
    """The inputs with their dims named, and what was renamed or split, in words."""

    inputs: tuple[TensorSpec, ...]
    notes: tuple[str, ...] = ()

    @property
    def dims(self) -> tuple[str, ...]:
        """The named dims, in order of first use."""
        return tuple(dict.fromkeys(n for s in self.inputs for n in s.names()))


def read_interface(
    path: Path, model: onnx.ModelProto, named: Iterable[TensorSpec] = (), space: ShapeSpace | None = None
) -> Interface:
    """The inputs of a file as `load_model` gives it. `named` are laid over them; `space` may call axes apart.

    An axis may always be called `<input>_dim<i>`: where `space` has such a name, that axis gets it, so that two axes
    that the file calls alike can differ. Raises InvalidRequestError for an input that no engine can have.
    """
    values = _input_values(model)
    overrides = {s.name: s for s in named}
    names = [v.name for v in values]
    for name in overrides:
        if name not in names:
            raise InvalidRequestError(
                f"'{path}' has no input '{name}'{did_you_mean(name, names)}", hint="it has " + ", ".join(names)
            )
    for value in values:
        _require_tensor(path, value, overrides.get(value.name))
    specs = [lay_over(_spec(v, overrides.get(v.name)), overrides.get(v.name)) for v in values]
    specs = [_apart(s, overrides, space or ShapeSpace()) for s in specs]
    changes = [c for c in original_names(path) if c.tensor not in overrides]
    return Interface(tuple(specs), _in_words(changes))


def original_names(path: Path) -> tuple[DimName, ...]:
    """The dims that were named when the file was read."""
    import onnx

    return name_dims(onnx.load(str(path), load_external_data=False))


def _input_values(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    weights = {t.name for t in model.graph.initializer}
    return [v for v in model.graph.input if v.name not in weights]


def _require_tensor(path: Path, value: onnx.ValueInfoProto, override: TensorSpec | None) -> None:
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type"):
        raise InvalidRequestError(
            f"the input '{value.name}' of '{path}' is no tensor", hint="sequences, maps and optionals cannot enter an "
            "engine: cut the graph behind them (`trtconv rewrite --script`)"
        )  # fmt: skip
    if kind.elem_type == STRING:
        raise InvalidRequestError(
            f"the input '{value.name}' of '{path}' holds strings, which no engine takes",
            hint="cut the graph behind the nodes that read them (`trtconv rewrite --script`)",
        )
    if not kind.HasField("shape") and override is None:
        raise InvalidRequestError(
            f"'{path}' does not say how many dims its input '{value.name}' has",
            hint=f"say it, for example --input {value.name}:{tensor_spec(value).dtype.name}[N,3,H,W]",
        )


def _spec(value: onnx.ValueInfoProto, override: TensorSpec | None) -> TensorSpec:
    spec = tensor_spec(value)
    if override is not None and not value.type.tensor_type.HasField("shape"):
        return replace(spec, dims=override.dims)
    # A size of 0 is how some exporters write a size that they do not know.
    dims: tuple[Dim, ...] = tuple(axis_name(spec.name, i) if d == 0 else d for i, d in enumerate(spec.dims))
    return replace(spec, dims=dims)


def _apart(spec: TensorSpec, overrides: dict[str, TensorSpec], space: ShapeSpace) -> TensorSpec:
    if spec.name in overrides:
        return spec
    dims = tuple(
        axis_name(spec.name, i) if isinstance(d, str) and axis_name(spec.name, i) in space else d
        for i, d in enumerate(spec.dims)
    )
    return replace(spec, dims=dims)


def _in_words(changes: Sequence[DimName]) -> tuple[str, ...]:
    if not changes:
        return ()
    shown = ", ".join(map(str, changes[:MOST_SHOWN]))
    more = f" and {len(changes) - MOST_SHOWN} more" if len(changes) > MOST_SHOWN else ""
    return (f"dims that the file leaves without a name that can be typed: {shown}{more}",)


def shared_axes(inputs: Sequence[TensorSpec]) -> dict[str, list[tuple[str, int]]]:
    """Names that stand for more than one axis: name -> (input, axis) of each."""
    axes: dict[str, list[tuple[str, int]]] = {}
    for spec in inputs:
        for axis, dim in enumerate(spec.dims):
            if isinstance(dim, str):
                axes.setdefault(dim, []).append((spec.name, axis))
    return {name: uses for name, uses in axes.items() if len(uses) > 1}


def split_dim(inputs: Sequence[TensorSpec], name: str) -> tuple[TensorSpec, ...]:
    """The inputs with every axis that is called `name` under a name of its own."""
    return tuple(
        replace(s, dims=tuple(axis_name(s.name, i) if d == name else d for i, d in enumerate(s.dims))) for s in inputs
    )
