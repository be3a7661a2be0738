"""Names of the user's for the inputs and outputs of a foreign file: `--input x=images:...`, `--output-names scores`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class ChosenNames:
    """The file's name -> the user's: of inputs and outputs that get another one, and of `copies`.

    A copy is an output that the file calls as an input of its: an engine has one tensor of a name.
    """

    values: Mapping[str, str]
    copies: Mapping[str, str]


def chosen_names(
    path: Path,
    model: onnx.ModelProto,
    inputs: Sequence[TensorSpec],
    named: Sequence[TensorSpec],
    output_names: Sequence[str],
) -> ChosenNames:
    """The names that inputs and outputs get.

    Raises InvalidRequestError for another number of outputs, for a name that some value of the file has, and for an
    output that keeps the name of an input.
    """
    own = {s.name for s in inputs}
    names = {s.parameter: s.name for s in named if s.parameter in own and s.parameter != s.name}
    outputs = [v.name for v in model.graph.output]
    if output_names and (len(output_names) != len(outputs) or len(set(output_names)) != len(output_names)):
        raise InvalidRequestError(
            f"'{path}' has {len(outputs)} output(s), {describe_output_names(output_names)}",
            hint="its outputs are, in order: " + ", ".join(outputs),
        )
    copies = {old: new for old, new in zip(outputs, output_names or outputs, strict=True) if old in own}
    for old, new in copies.items():
        if new == names.get(old, old):
            input_names = {names.get(n, n) for n in own}
            free = [f"{o}_out" if o in input_names else o for o in output_names or outputs]
            raise InvalidRequestError(
                f"the output '{new}' of '{path}' is its input of that name, and an engine has one tensor of a name",
                hint=f"call the output otherwise: --output-names {','.join(free)}",
            )
    names |= {old: new for old, new in zip(outputs, output_names, strict=False) if old != new and old not in own}
    staying = _value_names(model) - set(names)
    chosen = [*names.items(), *copies.items()]
    for old, new in chosen:
        if new in staying or [n for _, n in chosen].count(new) > 1:
            raise InvalidRequestError(
                f"'{old}' of '{path}' cannot be called '{new}': another value is called so", hint="choose another name"
            )
    return ChosenNames(names, copies)


def rename_values(model: onnx.ModelProto, names: ChosenNames) -> None:
    """Give values of a model other names, in place, wherever they are read; copies are made by an Identity."""
    copied = [(output, output.name) for output in model.graph.output if output.name in names.copies]
    for graph in graphs_of(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
            value.name = names.values.get(value.name, value.name)
        for node in graph.node:
            for ends in (node.input, node.output):
                for index, name in enumerate(ends):
                    if name in names.values:
                        ends[index] = names.values[name]
    for output, name in copied:
        copy = names.copies[name]
        model.graph.node.add(op_type="Identity", name=copy, input=[output.name], output=[copy])
        output.name = copy


def renamed_specs(specs: Sequence[TensorSpec], names: ChosenNames) -> tuple[TensorSpec, ...]:
    """The inputs under the user's names."""
    return tuple(replace(s, name=names.values.get(s.name, s.name)) for s in specs)


def renamed_samples(samples: Sequence[ReferenceSample], names: ChosenNames) -> tuple[ReferenceSample, ...]:
    """The samples under the user's names."""
    of_outputs = {**names.values, **names.copies}

    def under(values: Mapping[str, V], names: Mapping[str, str]) -> dict[str, V]:
        return {names.get(n, n): v for n, v in values.items()}

    return tuple(
        replace(
            s,
            inputs=under(s.inputs, names.values),
            outputs=under(s.outputs, of_outputs),
            floors=under(s.floors, of_outputs),
        )
        for s in samples
    )


def _value_names(model: onnx.ModelProto) -> set[str]:
    names: set[str] = set()
    for graph in graphs_of(model.graph):
        names |= {v.name for v in (*graph.input, *graph.output, *graph.initializer)}
        names |= {name for node in graph.node for name in (*node.input, *node.output)}
    return names
