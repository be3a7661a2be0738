"""Outputs whose number of rows the values decide, at a fixed number of rows: what `--nms topk` makes, as data.

The first rows are those of the original in its order, the rest is zero, and one more output counts them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.artifact_set import recorded_text
from trtconv.core.model.provenance import FIXED_ROWS_KEY
from trtconv.core.text.json_text import parse_json

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

SUPPRESSIONS = ("native", "topk", "auto")
MOST_DETECTIONS = 300


@dataclass(frozen=True)
class FixedOutput:
    """An output that has `rows` rows along `axis`; `count` is the output that counts them."""

    output: str
    axis: int
    rows: int
    count: str


@dataclass(frozen=True)
class FixedRows:
    """All such outputs of a model. A count never exceeds `most` + 1, which says that there were more than `most`."""

    outputs: tuple[FixedOutput, ...]
    most: int

    def pad(self, outputs: Mapping[str, Array]) -> dict[str, Array]:
        """The original's outputs in that form, and the counts."""
        import numpy as np

        padded = dict(outputs)
        for item in self.outputs:
            if item.output not in outputs:
                continue
            array = outputs[item.output]
            size = array.shape[item.axis]
            padded[item.output] = resized(array, item.axis, item.rows)
            padded[item.count] = np.asarray([min(size, self.most + 1)], np.int32)
        return padded

    def around(self, run: Callable[[Mapping[str, Array]], dict[str, Array]]) -> Runner:
        """The function that runs the original and pads."""
        return lambda inputs: self.pad(run(inputs))

    def as_text(self) -> str:
        """JSON, as it stands in a model's metadata and an engine's manifest."""
        return json.dumps(asdict(self), sort_keys=True)

    def describe(self) -> str:
        """One sentence for people."""
        if not self.outputs:
            return "the sizes that the values decide are fixed inside the graph; no output has one"
        outputs = ", ".join(f"'{o.output}' has {o.rows} rows" for o in self.outputs)
        counts = " and ".join(dict.fromkeys(f"'{o.count}'" for o in self.outputs))
        return (
            f"{outputs}, zero behind those that {counts} counts; a count of {self.most + 1} says that there were more"
        )


if TYPE_CHECKING:
    Runner = Callable[[Mapping[str, Array]], dict[str, Array]]


def resized(array: Array, axis: int, rows: int) -> Array:
    """The first `rows` rows along an axis, zeros (or False) behind those that there are."""
    import numpy as np

    cut = array[(slice(None),) * axis + (slice(0, rows),)]
    return np.pad(cut, [(0, rows - n if a == axis else 0) for a, n in enumerate(cut.shape)])


def parse_fixed_rows(text: str) -> FixedRows:
    """Read from its JSON. Raises InvalidRequestError for anything else."""
    try:
        data = parse_json(text)
        fixed = FixedRows(tuple(FixedOutput(**o) for o in data["outputs"]), int(data["most"]))
        return replace(fixed, outputs=tuple(replace(o, axis=int(o.axis), rows=int(o.rows)) for o in fixed.outputs))
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidRequestError(f"the record of --nms is damaged: {error}", hint="create the model again") from error


def recorded_fixed_rows(subject: Path) -> FixedRows | None:
    """What an ONNX file's metadata or an engine's manifest says, None where no output was given fixed rows."""
    text = recorded_text(subject, FIXED_ROWS_KEY, "fixed_rows")
    return parse_fixed_rows(text) if text else None
