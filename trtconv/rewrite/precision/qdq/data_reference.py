"""What a quantised model is checked with: inputs of the user's judging part, and what the FP32 model gives for them.

Scales fit the data. At random inputs values saturate that never do in use, and a comparison there would say nothing.
What quantisation costs is measured on the search part, of which neither a scale nor a judgement is made.
"""

from __future__ import annotations

from pathlib import Path

import onnx

from trtconv.backends.onnxruntime.half_emulation import emulated_runner
from trtconv.backends.protocol import ModelRunner
from trtconv.core.artifacts import beside
from trtconv.core.data.samples import Batch, Sample, batches
from trtconv.core.data.split import Parts
from trtconv.core.files.digest import sha256_file
from trtconv.core.model.file import Signature, load_weights, set_metadata, signature
from trtconv.core.model.provenance import REFERENCE_KEY
from trtconv.core.shape_space.derived import solve_names
from trtconv.proof.original import DATA
from trtconv.proof.points import SamplePoint
from trtconv.proof.reference import ReferenceInfo, ReferenceSample, write_reference
from trtconv.proof.statistics.quantised_noise import SAMPLES, QuantisedNoise, measure_quantised_noise
from trtconv.rewrite.graph.index import Array

SUFFIX = ".data.safetensors"
# Samples that are compared one output at a time; the metric is judged on all of them.
MOST = 64


def write_data_reference(
    source: onnx.ModelProto, folder: Path, parts: Parts, output: Path, quantised: onnx.ModelProto
) -> Path:
    """Run the FP32 `source` on judging samples, write them beside `output`, and bind the quantised model to them."""
    load_weights(source, folder)
    described = signature(source)
    runner = emulated_runner(source)
    noise = _noise(runner, quantised, parts.search, described)
    points, rows = [], []
    for number, batch in enumerate(batches(parts.judging[:MOST], described.inputs, described.space, opt=True)):
        point = SamplePoint(f"data{number}", _dims(source, batch), "data")
        points.append(point)
        outputs = runner(batch.inputs)
        floors = {name: noise[name].floor(value) for name, value in outputs.items() if name in noise}
        rows.append(ReferenceSample(point, batch.inputs, outputs, floors))
    path = beside(output, SUFFIX)
    info = ReferenceInfo(
        tuple(points), described.inputs, tuple(o.name for o in described.outputs), described.space, DATA
    )
    write_reference(path, info, rows)
    set_metadata(quantised, REFERENCE_KEY, sha256_file(path))
    return path


def _noise(
    runner: ModelRunner, quantised: onnx.ModelProto, samples: tuple[Sample, ...], described: Signature
) -> dict[str, QuantisedNoise]:
    """What quantisation costs, by output."""
    other = emulated_runner(quantised)
    pairs: dict[str, tuple[list[Array], list[Array]]] = {}
    for batch in batches(samples[:SAMPLES], described.inputs, described.space, opt=True):
        exact, rounded = runner(batch.inputs), other(batch.inputs)
        for name, value in exact.items():
            first, second = pairs.setdefault(name, ([], []))
            first.append(value)
            second.append(rounded[name])
    measured = {name: measure_quantised_noise(*values) for name, values in pairs.items()}
    return {name: noise for name, noise in measured.items() if noise is not None}


def _dims(source: onnx.ModelProto, batch: Batch) -> tuple[tuple[str, int], ...]:
    specs = signature(source).inputs
    pairs = (pair for s in specs for pair in zip(s.dims, map(int, batch.inputs[s.name].shape), strict=True))
    return tuple(solve_names(pairs).items())
