"""Inputs, dims and ranges of a foreign file: read from the file, with what the user named laid over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.core.model.dim_names import DimName, axis_name, name_dims
from trtconv.core.model.file import tensor_spec
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import Dim, TensorSpec, lay_over
from trtconv.core.text.listing import list_first

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

STRING = 8
MOST_SHOWN = 6


@dataclass(frozen=True)
class Interface:
    """The inputs with their dims named, what was renamed, in words, and the inputs that the user fixed at one value."""

    inputs: tuple[TensorSpec, ...]
    notes: tuple[str, ...] = ()
    fixed: tuple[TensorSpec, ...] = ()

    @property
    def dims(self) -> tuple[str, ...]:
        """The named dims, in order of first use."""
        return tuple(dict.fromkeys(n for s in self.inputs for n in s.names()))


def read_interface(
    path: Path, model: onnx.ModelProto, named: Iterable[TensorSpec] = (), space: ShapeSpace | None = None
) -> Interface:
    """The inputs of a file as `load_model` gives it. `named` are laid over them, by the file's names
    (their `parameter` where they have one); `space` may call axes apart.

    An axis may always be called `<input>_dim<i>`: where `space` has such a name, that axis gets it, so that two axes
    that the file calls alike can differ. An input whose named range is one value (`sr:int64[]=16000:16000`) is fixed:
    the engine has it inside. Raises InvalidRequestError for an input that no engine can have.
    """
    values = _input_values(model)
    overrides = {s.parameter or s.name: s for s in named}
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
    fixed = tuple(s for s in specs if s.name in overrides and is_fixed(s))
    words = [f"fixed, and no input of the engine: {', '.join(str(s) for s in fixed)}"] if fixed else []
    return Interface(tuple(s for s in specs if s not in fixed), (*_in_words(changes), *words), fixed)


def is_fixed(spec: TensorSpec) -> bool:
    """True for an input of fixed dims that has one value only."""
    return spec.value_range is not None and spec.value_range[0] == spec.value_range[1] and not spec.names()


def fixed_value(spec: TensorSpec) -> Array:
    """The value of a fixed input, of its shape and dtype."""
    import numpy as np

    assert spec.value_range is not None
    return np.full(spec.shape({}), spec.value_range[0]).astype(spec.dtype.numpy())


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
            f"the input '{value.name}' of '{path}' is not a tensor",
            hint="sequences, maps and optionals cannot enter an "
            "engine: cut the graph behind them (`trtconv rewrite --script`)",
        )
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
    return (f"dims that the file leaves without a name that can be typed: {list_first(changes, MOST_SHOWN)}",)


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
