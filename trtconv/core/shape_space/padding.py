"""Inputs padded to multiples, outputs cut back: what `--pad-to-multiple` puts into a model, as data and in NumPy.

The network then sees a larger image, so values near the right and lower borders may differ from what it would compute
without padding. What a padded model is compared with is therefore the module on padded inputs, its outputs cut back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.artifact_set import recorded_text
from trtconv.core.model.provenance import PADDING_KEY
from trtconv.core.shape_space.alignment import round_up
from trtconv.core.shape_space.derived import derived_from
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.core.text.json_text import parse_json

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

MODES = ("auto", "reflect", "edge", "zero")


@dataclass(frozen=True)
class PaddedInput:
    """An input that is padded at the end of its axes: `axes` are (axis, multiple) pairs, `mode` is never auto."""

    name: str
    mode: str
    axes: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class CroppedAxis:
    """An output's axis that is `numerator / denominator` times a padded axis of an input: cut to that, rounded up."""

    output: str
    axis: int
    input: str
    input_axis: int
    numerator: int
    denominator: int

    def size(self, of_input: int) -> int:
        """The size that stays for an unpadded input of this size."""
        return -(-of_input * self.numerator // self.denominator)


@dataclass(frozen=True)
class Padding:
    """All of a model's padded inputs and cut outputs."""

    inputs: tuple[PaddedInput, ...]
    outputs: tuple[CroppedAxis, ...]

    def pad(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The inputs as the network gets them."""
        import numpy as np

        padded = dict(inputs)
        for item in self.inputs:
            array = inputs[item.name]
            by_axis = dict(item.axes)
            widths = [(0, -n % by_axis.get(axis, 1)) for axis, n in enumerate(array.shape)]
            mode: Any = "constant" if item.mode == "zero" else item.mode
            padded[item.name] = np.pad(array, widths, mode=mode)
        return padded

    def crop(self, outputs: Mapping[str, Array], inputs: Mapping[str, Array]) -> dict[str, Array]:
        """The network's outputs cut back to what belongs to the unpadded `inputs`."""
        cut = dict(outputs)
        for item in self.outputs:
            if item.output in cut:
                end = item.size(inputs[item.input].shape[item.input_axis])
                window = [slice(None)] * item.axis + [slice(0, end)]
                cut[item.output] = cut[item.output][tuple(window)]
        return cut

    def around(self, run: Callable[[Mapping[str, Array]], dict[str, Array]]) -> Runner:
        """The function that pads, runs and cuts."""
        return lambda inputs: self.crop(run(self.pad(inputs)), inputs)

    def as_text(self) -> str:
        """JSON, as it stands in a model's metadata and an engine's manifest."""
        return json.dumps(asdict(self), sort_keys=True)

    def describe(self) -> str:
        """One sentence for people."""
        axes = [
            f"axis {axis} of '{i.name}' to a multiple of {multiple} ({i.mode})"
            for i in self.inputs
            for axis, multiple in i.axes
        ]
        cut = sorted({c.output for c in self.outputs})
        back = f"; {', '.join(cut)} cut back" if cut else "; no output has a size to cut back"
        return f"pads {', '.join(axes)}{back}; values near the padded borders may differ from the unpadded network's"


if TYPE_CHECKING:
    Runner = Callable[[Mapping[str, Array]], dict[str, Array]]


def parse_padding(text: str) -> Padding:
    """The padding read from its JSON. Raises InvalidRequestError for anything else."""
    try:
        data = parse_json(text)
        inputs = tuple(
            PaddedInput(i["name"], i["mode"], tuple((int(a), int(m)) for a, m in i["axes"])) for i in data["inputs"]
        )
        return Padding(inputs, tuple(CroppedAxis(**o) for o in data["outputs"]))
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidRequestError(f"the recorded padding is damaged: {error}", hint="create the model again") from error


def padded_inputs(
    specs: tuple[TensorSpec, ...], space: ShapeSpace, multiples: Mapping[str, int], mode: str
) -> tuple[PaddedInput, ...]:
    """Which inputs are padded how. `auto` reflects floats where every size allows it, else repeats the edge.

    Booleans, which are masks, get False. Raises InvalidRequestError for an unknown mode, and for `reflect` where a
    size has fewer elements than have to be added.
    """
    if mode not in MODES:
        raise InvalidRequestError(f"unknown padding mode '{mode}'", hint="one of " + ", ".join(MODES))
    short = [(n, v) for n, m in multiples.items() for v in _too_small(space, n, m)]
    if short and mode == "reflect":
        name, size = max(short)
        raise InvalidRequestError(
            f"{name}={size} cannot be padded by reflection: {-size % multiples[name]} elements are to be added, "
            f"and only {size - 1} can be mirrored",
            hint=f"raise the least size of {name}, or use --pad-to-multiple=edge",
        )
    padded = []
    for spec, dim in ((s, d) for s in specs for d in s.dims if isinstance(d, str)):
        if any(n in multiples for n in derived_from(dim)):
            raise InvalidRequestError(
                f"'{dim}' of input '{spec.name}' follows from a dim that is padded",
                hint="leave out --pad-to-multiple, or give that axis a name of its own with --input",
            )
    for spec in specs:
        axes = tuple((axis, multiples[d]) for axis, d in enumerate(spec.dims) if isinstance(d, str) and d in multiples)
        own = {d for d in spec.names() if d in multiples}
        chosen = mode
        if mode == "auto":
            chosen = "edge" if any(n in own for n, _ in short) else "reflect"
            chosen = "zero" if spec.dtype.kind == "bool" else chosen
        if axes:
            padded.append(PaddedInput(spec.name, chosen, axes))
    return tuple(padded)


def _too_small(space: ShapeSpace, name: str, multiple: int) -> list[int]:
    """Sizes that reflection cannot take to their multiple; only those below half of it can be so small."""
    return [v for v in space[name].values() if v < multiple and round_up(v, multiple) - v > v - 1]


def recorded_padding(subject: Path) -> Padding | None:
    """What an ONNX file's metadata or an engine's manifest says, None when nothing is padded."""
    text = recorded_text(subject, PADDING_KEY, "padding")
    return parse_padding(text) if text else None
