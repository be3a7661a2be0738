"""What a plugin is, said once: names, tensors, attributes, shapes and the values it has to compute.

The ONNX node, the ONNX function body, the reference evaluator's operator, the C++ header and the docs page are all
made from these records, so that they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.core.precision import TF32

Array = npt.NDArray[Any]
Shape = tuple[int | None, ...]
"""A shape with None where the size is not known."""
Value = int | float | tuple[int, ...]
Attributes = Mapping[str, Any]

NAMESPACE = "trtconv"
"""The plugin namespace and the ONNX domain of every plugin: TensorRT 10.10 and later look up one by the other."""


@dataclass(frozen=True)
class PluginAttribute:
    """One attribute. `low` and `high` are inclusive; `choices` names the values of an enumeration.

    `length` is the number of elements of an `ints` attribute. Floats are stored as float32 in ONNX and in engines.
    """

    name: str
    kind: Literal["int", "float", "ints"]
    default: Value
    doc: str
    low: float | None = None
    high: float | None = None
    length: int = 1
    choices: tuple[tuple[str, int], ...] = ()

    def checked(self, value: object, op_type: str) -> Value:
        """Return `value` in the attribute's type (a choice's name becomes its number), or raise InvalidRequestError."""
        if isinstance(value, str) and self.choices:
            numbers = dict(self.choices)
            if value not in numbers:
                raise InvalidRequestError(
                    f"{op_type}: {self.name} has no choice '{value}'{did_you_mean(value, numbers)}",
                    hint="one of " + ", ".join(numbers),
                )
            return numbers[value]
        items = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        if isinstance(value, (tuple, list)) != (self.kind == "ints") or len(items) != self.length:
            raise InvalidRequestError(f"{op_type}: {self.name} takes {self.type_text}, not {value!r}")
        numbers_of = tuple(self._number(item, op_type) for item in items)
        if self.kind == "ints":
            return tuple(int(n) for n in numbers_of)
        return float(numbers_of[0]) if self.kind == "float" else int(numbers_of[0])

    def _number(self, item: object, op_type: str) -> float:
        integral = isinstance(item, (int, np.integer)) and not isinstance(item, bool)
        if not integral and not (self.kind == "float" and isinstance(item, (float, np.floating))):
            raise InvalidRequestError(f"{op_type}: {self.name} takes {self.type_text}, not {item!r}")
        number = float(item)  # type: ignore[arg-type]
        inside = (self.low is None or number >= self.low) and (self.high is None or number <= self.high)
        if not inside or not np.isfinite(number):
            raise InvalidRequestError(f"{op_type}: {self.name} = {item} is outside {self.range_text}")
        return number

    @property
    def type_text(self) -> str:
        """The type in words, as the docs and messages say it."""
        return {"int": "an int", "float": "a float", "ints": f"{self.length} ints"}[self.kind]

    @property
    def range_text(self) -> str:
        """The allowed values in words."""
        if self.choices:
            return ", ".join(f"{number} ({name})" for name, number in self.choices)
        low = "-inf" if self.low is None else f"{self.low:g}"
        high = "inf" if self.high is None else f"{self.high:g}"
        return f"{low} to {high}"


def flag(name: str, doc: str) -> PluginAttribute:
    """An attribute that is 0 or 1, `no` or `yes`; 0 where it is not given."""
    return PluginAttribute(name, "int", 0, doc, 0, 1, choices=(("no", 0), ("yes", 1)))


ALLOWS_TF32 = flag(TF32.name, "1 lets float32 operands be rounded to TF32; a build with the option tf32 sets it")


@dataclass(frozen=True)
class Tensor:
    """One input or output: its name, its type variable (`T` or `S`) and what it holds."""

    name: str
    type: str
    doc: str


ShapeRule = Callable[[Sequence[Shape], Attributes], tuple[Shape, ...]]
Reference = Callable[[Sequence[Array], Attributes], tuple[Array, ...]]


GENERATIONS = (8, 10, 11)
"""The major versions of TensorRT for which the adapters in plugins_src have a plugin interface."""


@dataclass(frozen=True)
class PluginDescription:
    """One plugin. `op_type` must not be the name of any ONNX operator, since importers look at it alone.

    `shape` maps input shapes to output shapes and raises InvalidRequestError for inputs that the plugin refuses;
    `reference` computes in float64 and returns arrays of the output dtypes; `body` gives, for an ONNX opset, the
    statements of the equivalent ONNX function in onnx.parser's text form. `folder` is the C++ namespace of the sources;
    `generations` are TensorRT's major versions that the plugin is made for. `embeddable` is false where it computes
    with a library or by several kernels in turn, so that there is no one kernel to put into an engine.
    """

    op_type: str
    folder: str
    summary: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    attributes: tuple[PluginAttribute, ...]
    types: tuple[tuple[str, tuple[str, ...]], ...]
    shape: ShapeRule
    reference: Reference
    body: Callable[[int], str]
    version: str = "1"
    generations: tuple[int, ...] = GENERATIONS
    embeddable: bool = True
    notes: tuple[str, ...] = field(default=())

    def checked_attributes(self, values: Attributes) -> dict[str, Value]:
        """Every attribute with its given or default value, in order. Raises InvalidRequestError for a wrong one."""
        attribute_names = [a.name for a in self.attributes]
        for name in values:
            if name not in attribute_names:
                raise InvalidRequestError(
                    f"{self.op_type} has no attribute '{name}'{did_you_mean(name, attribute_names)}",
                    hint="it has " + ", ".join(attribute_names),
                )
        return {a.name: a.checked(values.get(a.name, a.default), self.op_type) for a in self.attributes}

    def output_shapes(self, inputs: Sequence[Shape], values: Attributes) -> tuple[Shape, ...]:
        """The output shapes for input shapes, after checking the attributes and the number of inputs."""
        if len(inputs) != len(self.inputs):
            raise InvalidRequestError(f"{self.op_type} takes {len(self.inputs)} inputs, not {len(inputs)}")
        return self.shape(inputs, self.checked_attributes(values))

    def evaluate(self, inputs: Sequence[Array], values: Attributes) -> tuple[Array, ...]:
        """The values of the outputs by the NumPy reference. Shapes are checked by the shape rule first."""
        self.output_shapes([a.shape for a in inputs], values)
        return self.reference(inputs, self.checked_attributes(values))


FLOAT_TYPES = ("float32", "float16", "bfloat16")
"""Element types of every plugin. bfloat16 exists in TensorRT 10 and later; 8.6 takes the first two."""


def require_rank(op_type: str, shape: Shape, low: int, high: int = 8) -> None:
    """Raise InvalidRequestError when the rank of `shape` is not between `low` and `high`."""
    if not low <= len(shape) <= high:
        raise InvalidRequestError(f"{op_type} takes an input of rank {low} to {high}, not {len(shape)}")


def require_channels(op_type: str, name: str, vector: Shape, channels: int | None) -> None:
    """Raise InvalidRequestError unless `vector` is of rank 1 and, where both are known, `channels` long."""
    if len(vector) != 1 or (vector[0] is not None and channels is not None and vector[0] != channels):
        raise InvalidRequestError(f"{op_type}: {name} has shape {vector}, wanted [{channels}]")
