"""The arguments of a Python call: inputs and ranges, written as the command line writes them, paths and progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.core.progress import Progress, SilentProgress


class TensorLike(Protocol):
    """A torch tensor or a NumPy array: what has a shape and a dtype."""

    @property
    def shape(self) -> Any:
        """Its sizes."""

    @property
    def dtype(self) -> Any:
        """Its element type."""


Example = str | TensorLike
Inputs = str | TensorLike | Mapping[str, Example] | Sequence[Example]
DimsOfExample = str | Sequence[int | str] | Mapping[int, str]
Dims = DimsOfExample | Mapping[str, DimsOfExample]
Range = str | int | Sequence[int]
Ranges = str | Mapping[str, Range]


def input_texts(
    inputs: Inputs | None, dims: Dims | None, parameters: Callable[[], Sequence[str]]
) -> tuple[str, ...]:
    """`images:float32[N,3,H,W]` for each input. `dims` name the dims of examples, whose sizes are fixed without.

    Examples without names go to the `parameters` of forward, in order. Integers of an example bound the sample
    values, since a random index may lie outside of a table. Raises InvalidRequestError for what is neither a text nor
    a tensor, and for dims that do not fit their example.
    """
    if inputs is None:
        listed: list[tuple[str, Example]] = []
    elif isinstance(inputs, Mapping):
        listed = list(inputs.items())
    elif isinstance(inputs, Sequence) and not isinstance(inputs, str):
        listed = _named(inputs, parameters)
    else:
        listed = _named([inputs], parameters)
    names = _names_of_dims(dims, [n for n, _ in listed])
    texts = [_text(name, value, names.pop(name, None)) for name, value in listed]
    if names:
        unknown = next(iter(names))
        raise InvalidRequestError(
            f"dims names no input '{unknown}'{did_you_mean(unknown, [n for n, _ in listed])}",
            hint="dims gives names to the dims of example tensors: dims={'images': 'N,3,H,W'}",
        )
    return tuple(texts)


def _names_of_dims(dims: Any, inputs: Sequence[str]) -> dict[str, Any]:
    """The names of dims by input; for one example they may stand alone: `dims="N,8"`, or torch's `{0: "N"}`."""
    is_by_input = isinstance(dims, Mapping) and all(isinstance(key, str) for key in dims)
    if dims is None or is_by_input:
        return dict(dims or {})
    if len(inputs) == 1 and isinstance(dims, (str, Sequence, Mapping)):
        return {inputs[0]: dims}
    first = inputs[0] if inputs else "x"
    raise InvalidRequestError(
        f"dims must be a dictionary by input, got {dims!r:.60}", hint=f"write dims={{'{first}': 'N,8'}}"
    )


def _named(values: Sequence[Example], parameters: Callable[[], Sequence[str]]) -> list[tuple[str, Example]]:
    """Texts carry their names; examples get those of forward's parameters."""
    if all(isinstance(v, str) for v in values):
        return [("", v) for v in values]
    names = parameters()
    if len(values) > len(names):
        raise InvalidRequestError(
            f"{len(values)} inputs are given, but forward takes {len(names)}: {', '.join(names) or 'none'}",
            hint="name them: inputs={'images': tensor}",
        )
    return list(zip(names, values, strict=False))


def _text(name: str, value: Any, dims: DimsOfExample | None) -> str:
    if isinstance(value, str):
        if dims is not None:
            raise InvalidRequestError(f"input '{name}' is a text, which has its dims in it", hint="leave out its dims")
        return value if not name else f"{name}{'' if value.startswith('[') else ':'}{value}"
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        raise InvalidRequestError(
            f"input '{name}' must be a text or a tensor, got {type(value).__name__}",
            hint="write 'float32[N,3,H,W]', or pass an example tensor",
        )
    if getattr(value, "is_sparse", False) or "sparse" in str(getattr(value, "layout", "")):
        raise InvalidRequestError(
            f"the example of input '{name}' is sparse; an engine takes dense tensors", hint="pass its to_dense()"
        )
    sizes = [int(s) for s in value.shape]
    named = _dims_of(name, sizes, dims)
    dtype = str(value.dtype).removeprefix("torch.")
    return f"{name}:{dtype}[{','.join(map(str, named))}]{_bounds(value, dtype)}"


def _dims_of(name: str, sizes: Sequence[int], dims: DimsOfExample | None) -> Sequence[int | str]:
    if dims is None:
        return sizes
    if isinstance(dims, Mapping):
        # As torch.export and torch.onnx take it.
        by_axis = {axis + len(sizes) if isinstance(axis, int) and axis < 0 else axis: n for axis, n in dims.items()}
        if not set(by_axis) <= set(range(len(sizes))) or not all(isinstance(n, str) for n in by_axis.values()):
            raise InvalidRequestError(
                f"the dims {dict(dims)!r:.60} do not fit the example of input '{name}', whose shape is {tuple(sizes)}",
                hint=f"write names by axis, {{0: 'N'}}, or '{','.join(['N', *map(str, sizes[1:])])}'",
            )
        return [by_axis.get(axis, size) for axis, size in enumerate(sizes)]
    if not isinstance(dims, (str, Sequence)):
        raise InvalidRequestError(
            f"the dims of input '{name}' must be a text, got {dims!r:.60}", hint="write one name or size for each"
        )
    chosen = [word.strip() for word in dims.split(",")] if isinstance(dims, str) else [str(d) for d in dims]
    fixed = [(d, str(size)) for d, size in zip(chosen, sizes, strict=False) if d.isdecimal()]
    if len(chosen) != len(sizes) or any(d != size for d, size in fixed):
        raise InvalidRequestError(
            f"the dims {','.join(chosen)} do not fit the example of input '{name}', whose shape is {tuple(sizes)}",
            hint="write one name or size for each of its dims",
        )
    return chosen


def _bounds(value: Any, dtype: str) -> str:
    if not dtype.startswith(("int", "uint")) or 0 in value.shape:
        return ""
    return f"={int(value.min())}:{int(value.max())}"


def range_texts(ranges: Ranges | None) -> tuple[str, ...]:
    """`N=1:4:16` for each dim. A range is a text, a size, or (min, opt, max), perhaps with a multiple."""
    if ranges is None:
        return ()
    if isinstance(ranges, str):
        return tuple(ranges.split())
    if not isinstance(ranges, Mapping):
        raise InvalidRequestError(
            f"dynamic must be a dictionary of ranges, got {type(ranges).__name__}",
            hint="write dynamic={'N': '1:4:16'}",
        )
    return tuple(f"{name}={_range_text(name, value)}" for name, value in ranges.items())


def _range_text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    is_listed = isinstance(value, Sequence) and not isinstance(value, range)
    sizes = [value] if isinstance(value, Integral) else list(value) if is_listed else []
    # NumPy's integers are such, too.
    if len(sizes) not in (1, 3, 4) or not all(isinstance(s, Integral) and not isinstance(s, bool) for s in sizes):
        raise InvalidRequestError(
            f"the range of '{name}' must be a size, or min, opt and max (and a multiple), got {value!r}",
            hint=f"write dynamic={{'{name}': '1:4:16'}} or dynamic={{'{name}': (1, 4, 16)}}",
        )
    text = ":".join(str(s) for s in sizes[:3])
    return f"{text}%{sizes[3]}" if len(sizes) == 4 else text


def path_of(value: Any, argument: str, what: str = "the path of a file") -> Path:
    """The path that an argument names. Raises InvalidRequestError for what is no path, and for an empty one."""
    if isinstance(value, (str, PathLike)) and str(value):
        # A shell would have done so.
        return Path(value).expanduser()
    kind = "an empty text" if isinstance(value, str) else type(value).__name__
    raise InvalidRequestError(f"{argument} must be {what}, got {kind}", hint='as "out/model.engine", or "out"')


def folder_of(output: Any) -> Path | None:
    """The folder that `output` names; None for None, which is the default. Raises as `path_of` does."""
    return None if output is None else path_of(output, "output", "a folder")


def progress_or_silence(progress: Progress | None) -> Progress:
    """What is told of the progress; nothing for None. Raises InvalidRequestError for what lacks one of its methods."""
    if progress is None:
        return SilentProgress()
    lacking = [m for m in ("stage", "phase", "note", "warn") if not callable(getattr(progress, m, None))]
    if lacking:
        raise InvalidRequestError(
            f"progress must have the methods stage, phase, note and warn; {type(progress).__name__} lacks "
            f"{', '.join(lacking)}",
            hint="leave it out, or see trtconv.core.progress.Progress",
        )
    return progress
