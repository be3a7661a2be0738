"""Names for what a module returns: keys of dicts, fields of dataclasses, `output` or `output_0`, `output_1`."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import AccuracyError, InvalidRequestError
from trtconv.core.text.listing import describe_output_names

if TYPE_CHECKING:
    from trtconv.proof.reference import ReferenceSample

# The key of safetensors that holds no tensor, and the file of references is one.
RESERVED = "__metadata__"


def flatten_outputs(value: Any) -> dict[str, Any]:
    """The tensors in what a module returned, by name, in order.

    A tensor alone is `output`; items of a list or tuple are `output_0`, ...; dicts, dataclasses and named tuples give
    their keys; nesting joins with `.` for keys and `_` for places. Of two with one name, such as `z_0` beside the first
    of a list `z`, the second is `NAME_2`. None is left out. Raises InvalidRequestError when there is no tensor at all,
    or something that is none (numbers, strings, objects).
    """
    return under_own_names(named_tensors(value))


def named_tensors(value: Any) -> list[tuple[str, Any]]:
    """The tensors of `flatten_outputs` before equal names are told apart. Raises as that does."""
    import torch

    named = list(_walk(value, ""))
    for name, item in named:
        if not isinstance(item, torch.Tensor):
            raise InvalidRequestError(
                f"the module's output '{name}' is of type {type(item).__name__}, not a tensor",
                hint="an engine returns tensors: leave the number out, or return it as one (torch.tensor(n), or "
                "torch.full((), n) of a size)"
                if isinstance(item, (int, float))
                else "return tensors, or dicts, lists, tuples and dataclasses of them",
            )
    if not named:
        raise InvalidRequestError("the module returns no tensor", hint="return at least one tensor from forward")
    return named


def under_own_names(named: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Each tensor under a name that no other has: the first under its own, a later one of that name under `NAME_2`."""
    taken_names = {name for name, _ in named}
    outputs: dict[str, Any] = {}
    for name, tensor in named:
        free = name if name not in outputs else next(n for n in _numbered(name) if n not in taken_names)
        taken_names.add(free)
        outputs[free] = tensor
    return outputs


def rename_outputs(outputs: dict[str, Any], names: Sequence[str], *, exactly: bool) -> dict[str, Any]:
    """The outputs under other names, by position.

    `exactly` takes one name for each output, and raises InvalidRequestError for another number; else the outputs that
    have none of the names get those that are left, where their number fits.
    """
    if not names:
        return outputs
    if exactly:
        if len(names) != len(outputs) or len(set(names)) != len(names):
            raise InvalidRequestError(
                f"the module has {len(outputs)} output(s), {describe_output_names(names)}",
                hint="its outputs are, in order: " + ", ".join(outputs),
            )
        return dict(zip(names, outputs.values(), strict=True))
    foreign, free = [n for n in outputs if n not in names], [n for n in names if n not in outputs]
    if len(foreign) != len(free):
        return outputs
    renamed = dict(zip(foreign, free, strict=True))
    return {renamed.get(n, n): value for n, value in outputs.items()}


def distinct_from_inputs(outputs: dict[str, Any], inputs: Collection[str]) -> dict[str, Any]:
    """The outputs, those named as an input renamed to `NAME_out`: in a graph one name is one tensor."""
    taken_names = {*inputs, *outputs}
    renamed: dict[str, Any] = {}
    for name, value in outputs.items():
        free = name
        if name in inputs:
            free = next(n for n in _suffixed(name) if n not in taken_names)
            taken_names.add(free)
        renamed[free] = value
    return renamed


def renaming_notes(written: Sequence[str], names: Sequence[str], inputs: Collection[str]) -> list[str]:
    """A note for each output whose name in the file, of `names`, is another than the module's, of `written`."""
    return [
        f"the output '{old}' is called '{new}': {'an input' if old in inputs else 'another output'} has its name"
        for old, new in zip(written, names, strict=True)
        if old != new
    ]


def require_names(names: Iterable[str]) -> None:
    """Raise InvalidRequestError for a name that no file of outputs can hold, or that nobody could read."""
    for name in names:
        if not name or not name.isprintable() or name == RESERVED:
            raise InvalidRequestError(
                f"an output of the module cannot be called {name!r}",
                hint="return it under a name of printable characters, or give names with --output-names",
            )


def require_same_outputs(samples: Sequence[ReferenceSample]) -> None:
    """Raise AccuracyError where the module returns other tensors at one point than at another, or in other types."""
    first = samples[0]
    other = next((s for s in samples if list(s.outputs) != list(first.outputs)), None)
    if other is not None:
        raise AccuracyError(
            f"the module returns {_listed(first.outputs)} at {first.point} "
            f"and {_listed(other.outputs)} at {other.point}",
            hint="a file has the same outputs at every size: return all of them, or give ranges with --dynamic for "
            "which they are the same",
        )
    for sample in samples[1:]:
        for name, value in sample.outputs.items():
            if value.dtype != first.outputs[name].dtype:
                raise AccuracyError(
                    f"the module returns '{name}' as {first.outputs[name].dtype} at {first.point} and as "
                    f"{value.dtype} at {sample.point}",
                    hint="an output of a file has one type: cast it before it is returned (`.to(torch.float32)`), or "
                    "give ranges with --dynamic and value ranges for which it is the same",
                )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{n}'" for n in names)


def _suffixed(name: str) -> Iterator[str]:
    yield f"{name}_out"
    yield from _numbered(f"{name}_out")


def _numbered(name: str) -> Iterator[str]:
    return (f"{name}_{i}" for i in itertools.count(2))


def _walk(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if value is None:
        return
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _walk(item, f"{name}.{key}" if name else str(key))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from _walk(getattr(value, field.name), f"{name}.{field.name}" if name else field.name)
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        for key in value._fields:
            yield from _walk(getattr(value, key), f"{name}.{key}" if name else key)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _walk(item, f"{name or 'output'}_{index}")
    else:
        yield name or "output", value
