"""What a quantised model is checked with: inputs of the user's judging part, and what the FP32 model gives for them.

Scales fit the data. At random inputs values saturate that never do in use, and a comparison there would say nothing.
"""

from __future__ import annotations

from pathlib import Path

import onnx

from trtconv.backends.onnxruntime.half_emulation import emulated_runner
from trtconv.core.artifacts import beside, sha256_file
from trtconv.core.data.samples import Batch, Sample, batches
from trtconv.core.model.file import load_weights, set_metadata, signature
from trtconv.core.model.provenance import REFERENCE_KEY
from trtconv.proof.points import SamplePoint
from trtconv.proof.reference import ReferenceInfo, ReferenceSample, write_reference

SUFFIX = ".data.safetensors"
# Samples that are compared one output at a time; the metric is judged on all of them.
MOST = 64


def write_data_reference(
    source: onnx.ModelProto, folder: Path, samples: tuple[Sample, ...], output: Path, quantised: onnx.ModelProto
) -> Path:
    """Run the FP32 `source` on judging samples, write them beside `output`, and bind the quantised model to them."""
    load_weights(source, folder)
    described = signature(source)
    runner = emulated_runner(source)
    points, rows = [], []
    for number, batch in enumerate(batches(samples[:MOST], described.inputs, described.space, opt=True)):
        point = SamplePoint(f"data{number}", _dims(source, batch), "data")
        points.append(point)
        rows.append(ReferenceSample(point, batch.inputs, runner(batch.inputs)))
    path = beside(output, SUFFIX)
    info = ReferenceInfo(
        tuple(points), described.inputs, tuple(o.name for o in described.outputs), described.space, "the user's data"
    )
    write_reference(path, info, rows)
    set_metadata(quantised, REFERENCE_KEY, sha256_file(path))
    return path


def _dims(source: onnx.ModelProto, batch: Batch) -> tuple[tuple[str, int], ...]:
    sizes: dict[str, int] = {}
    for spec in signature(source).inputs:
        for dim, size in zip(spec.dims, batch.inputs[spec.name].shape, strict=True):
            if isinstance(dim, str):
                sizes[dim] = int(size)
    return tuple(sizes.items())
