"""Names of the dims of a foreign file's inputs that can be typed after `--dynamic`.

Exporters write `DynamicDimension.0`, `?` or nothing, and some write -1 as a size. Such a dim gets a name here, once,
when a file is read, so that every room calls it the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.shape_space.derived import derived_from

if TYPE_CHECKING:
    from collections.abc import Iterator

    import onnx

_TYPABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_OTHER = re.compile(r"[^A-Za-z0-9_]+")
# What exporters write for "any size": two axes that are called so need not be alike.
_PLACEHOLDERS = ("none", "unk", "unknown", "null", "nan", "dyn", "dynamic", "any")


@dataclass(frozen=True)
class DimName:
    """An axis of an input that was named: `old` is what the file called it, or empty."""

    tensor: str
    axis: int
    old: str
    new: str

    def __str__(self) -> str:
        was = f"was '{self.old}'" if self.old else "unnamed"
        return f"{self.new} (axis {self.axis} of '{self.tensor}', {was})"


def axis_name(tensor: str, axis: int) -> str:
    """The name by which any axis of an input or output can be called: `images_dim2`."""
    stem = _OTHER.sub("_", tensor).strip("_") or "input"
    return f"{stem if stem[0].isalpha() else 'input_' + stem}_dim{axis}"


def declared_dims(value: onnx.ValueInfoProto) -> list[int | str]:
    """The dims of a tensor as numbers and names; an empty text for one of which nothing is said."""
    return [d.dim_value if d.HasField("dim_value") else d.dim_param for d in value.type.tensor_type.shape.dim]


def is_placeholder(name: str) -> bool:
    """True for what names nothing: `?`, `-1`, `None`, an empty text."""
    return not re.search(r"[A-Za-z]", name) or name.strip().lower() in _PLACEHOLDERS


def name_dims(model: onnx.ModelProto) -> tuple[DimName, ...]:
    """Give every dynamic dim of the inputs a name that can be typed, in place; returns those that changed.

    A dim that follows from named ones (`past + sequence`) stays what it is. Outputs and recorded types follow where a
    name was only respelt; where it was a placeholder it is dropped there.
    """
    weights = {t.name for t in model.graph.initializer}
    inputs = [v for v in model.graph.input if v.name not in weights]
    changed: list[DimName] = []
    respelt: dict[str, str] = {}
    names = {d.dim_param for v in inputs for d in _dims(v) if _TYPABLE.match(d.dim_param)}
    plain = {n for n in names if not is_placeholder(n)}
    for value in inputs:
        for axis, dim in enumerate(_dims(value)):
            old = dim.dim_param if not dim.HasField("dim_value") else str(dim.dim_value)
            if (dim.HasField("dim_value") and dim.dim_value >= 0) or (_TYPABLE.match(old) and not is_placeholder(old)):
                continue
            if (parts := derived_from(old)) and plain.issuperset(parts):
                continue
            if is_placeholder(old):
                new = axis_name(value.name, axis)
            else:
                new = respelt.get(old) or _unused(_OTHER.sub("_", old).strip("_"), names)
                respelt[old] = new
            names.add(new)
            dim.dim_param = new
            changed.append(DimName(value.name, axis, old, new))
    if changed:
        for value in (*model.graph.output, *model.graph.value_info):
            for dim in _dims(value):
                _follow(dim, respelt)
    return tuple(changed)


def _follow(dim: Any, respelt: dict[str, str]) -> None:
    if dim.dim_param in respelt:
        dim.dim_param = respelt[dim.dim_param]
    elif (dim.dim_param and is_placeholder(dim.dim_param)) or (dim.HasField("dim_value") and dim.dim_value < 0):
        dim.Clear()


def _dims(value: onnx.ValueInfoProto) -> Iterator[Any]:
    if value.type.HasField("tensor_type"):
        yield from value.type.tensor_type.shape.dim


def _unused(stem: str, names: set[str]) -> str:
    stem = stem if stem[0].isalpha() or stem[0] == "_" else f"dim_{stem}"
    number, name = 2, stem
    while name in names:
        number, name = number + 1, f"{stem}_{number}"
    return name
