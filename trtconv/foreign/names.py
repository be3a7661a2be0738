"""Names of the user's for the inputs and outputs of a foreign file: `--input x=images:...`, `--output-names scores`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.bodies import graphs_of
from trtconv.core.tensors import TensorSpec
from trtconv.core.text.listing import describe_output_names
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    import onnx

V = TypeVar("V")


def chosen_names(
    path: Path,
    model: onnx.ModelProto,
    inputs: Sequence[TensorSpec],
    named: Sequence[TensorSpec],
    output_names: Sequence[str],
) -> dict[str, str]:
    """The file's name -> the user's, of the inputs and outputs that get another one.

    Raises InvalidRequestError for another number of outputs, and for a name that some value of the file has.
    """
    own = {s.name for s in inputs}
    names = {s.parameter: s.name for s in named if s.parameter in own and s.parameter != s.name}
    outputs = [v.name for v in model.graph.output]
    if output_names and (len(output_names) != len(outputs) or len(set(output_names)) != len(output_names)):
        raise InvalidRequestError(
            f"'{path}' has {len(outputs)} output(s), {describe_output_names(output_names)}",
            hint="its outputs are, in order: " + ", ".join(outputs),
        )
    for old, new in zip(outputs, output_names, strict=False):
        if old in own and new != names.get(old, old):
            raise InvalidRequestError(
                f"the output '{old}' of '{path}' is its input of that name, and one value has one name",
                hint=f"call both alike: --input {old}={new}:...",
            )
        if old != new:
            names[old] = new
    staying = _value_names(model) - set(names)
    for old, new in names.items():
        if new in staying or list(names.values()).count(new) > 1:
            raise InvalidRequestError(
                f"'{old}' of '{path}' cannot be called '{new}': another value is called so", hint="choose another name"
            )
    return names


def rename_values(model: onnx.ModelProto, names: Mapping[str, str]) -> None:
    """Give values of a model other names, in place, wherever they are read."""
    for graph in graphs_of(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
            value.name = names.get(value.name, value.name)
        for node in graph.node:
            for ends in (node.input, node.output):
                for index, name in enumerate(ends):
                    if name in names:
                        ends[index] = names[name]


def renamed_specs(specs: Sequence[TensorSpec], names: Mapping[str, str]) -> tuple[TensorSpec, ...]:
    """The inputs under the user's names."""
    return tuple(replace(s, name=names.get(s.name, s.name)) for s in specs)


def renamed_samples(samples: Sequence[ReferenceSample], names: Mapping[str, str]) -> tuple[ReferenceSample, ...]:
    """The samples under the user's names."""

    def under(values: Mapping[str, V]) -> dict[str, V]:
        return {names.get(n, n): v for n, v in values.items()}

    return tuple(replace(s, inputs=under(s.inputs), outputs=under(s.outputs), floors=under(s.floors)) for s in samples)


def _value_names(model: onnx.ModelProto) -> set[str]:
    names: set[str] = set()
    for graph in graphs_of(model.graph):
        names |= {v.name for v in (*graph.input, *graph.output, *graph.initializer)}
        names |= {name for node in graph.node for name in (*node.input, *node.output)}
    return names
