"""Calibration: what the activations take on over the calibration part, by ONNX Runtime on the CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from trtconv.backends.onnxruntime.half_emulation import emulated_runner
from trtconv.core.data.samples import Batch
from trtconv.core.errors import InvalidRequestError
from trtconv.core.progress import Progress
from trtconv.rewrite.graph.index import Array
from trtconv.rewrite.precision.qdq.thresholds import BINS, Histogram

# Values watched in one run: all outputs of a run are in memory at once.
AT_ONCE = 64
SMALL = 1 << 22


@dataclass(frozen=True)
class Ranges:
    """Histograms of activations by name, and the largest magnitude along the last axis of those asked for."""

    histograms: Mapping[str, Histogram]
    channels: Mapping[str, Array]


def collect_ranges(
    model: onnx.ModelProto,
    names: Sequence[str],
    runs: Sequence[Batch],
    progress: Progress,
    *,
    channels: Sequence[str] = (),
    phase: str = "calibrating",
) -> Ranges:
    """Run the model over all batches twice: for the largest magnitudes, then for the histograms up to them.

    Raises InvalidRequestError for an activation that is NaN or infinite on the data.
    """
    watched = tuple(dict.fromkeys((*names, *channels)))
    histograms: dict[str, Histogram] = {}
    per_channel: dict[str, Array] = {}
    parts = [watched[i : i + AT_ONCE] for i in range(0, len(watched), AT_ONCE)]
    total = 2 * len(parts) * len(runs)
    for number, part in enumerate(parts):
        runner = emulated_runner(with_outputs(model, part), threads=threads_for(model))
        largest = dict.fromkeys(part, 0.0)
        counts = {name: np.zeros(BINS, np.int64) for name in part}
        for sweep in range(2):
            for index, batch in enumerate(runs):
                progress.phase(phase, (2 * number + sweep) * len(runs) + index, total)
                values = runner(batch.inputs, part)
                for name in part:
                    rows = np.abs(np.asarray(values[name], np.float32))
                    rows = rows[: batch.count] if rows.ndim and rows.shape[0] > batch.count else rows
                    if sweep == 0:
                        largest[name] = max(largest[name], _largest(rows, name))
                    elif largest[name] > 0:
                        counts[name] += np.histogram(rows, BINS, (0.0, largest[name]))[0]
                    if sweep == 0 and name in channels:
                        along = rows.reshape(-1, rows.shape[-1]).max(0)
                        per_channel[name] = np.maximum(per_channel.get(name, along), along)
        runner.close()
        histograms |= {name: Histogram(counts[name], largest[name]) for name in part}
    return Ranges(histograms, per_channel)


def threads_for(model: onnx.ModelProto) -> int:
    """One thread for a small network, whose runs are shorter than waking the others; 0 leaves it to ONNX Runtime."""
    return 1 if model.ByteSize() < SMALL else 0


def _largest(rows: Array, name: str) -> float:
    value = float(rows.max(initial=0.0))
    if not np.isfinite(value):
        raise InvalidRequestError(
            f"the activation '{name}' is NaN or infinite on the calibration data", hint="look at the data, or the model"
        )
    return value


def with_outputs(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """A copy of the model whose outputs are these values of its main graph."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    del copy.graph.output[:]
    copy.graph.output.extend(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in names)
    return copy
