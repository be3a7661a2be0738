"""What a foreign file computes at the sample points, as a reference for check, bench and repro."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.model.file import external_files, load_model, signature
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec, value_ranges
from trtconv.foreign.interface import fixed_value, read_interface
from trtconv.foreign.original import FileOriginal
from trtconv.foreign.proposal import require_complete, require_shared_sizes
from trtconv.proof.points import SamplePoint, sample_inputs, sample_points
from trtconv.proof.probes.integer_boundaries import probe_comparisons
from trtconv.proof.reference import ReferenceInfo, ReferenceSample, write_reference
from trtconv.proof.sampling import Samples, run_samples, with_probes
from trtconv.proof.sizes import Budget, traced_sizes

if TYPE_CHECKING:
    import onnx

# A larger graph is not copied to look for its decisions.
MOST_BYTES = 1 << 29
LABEL = "the file"
SIZES = ("min", "opt", "max")


@dataclass(frozen=True)
class FilePoints:
    """A foreign file with everything that decides the points at which it is looked at."""

    original: FileOriginal
    inputs: tuple[TensorSpec, ...]
    space: ShapeSpace
    notes: tuple[str, ...] = ()
    seed: int = 0
    fixed: tuple[TensorSpec, ...] = ()

    def points(self) -> tuple[SamplePoint, ...]:
        """The sample points, the traced size first."""
        traced = traced_sizes(self.space, self.inputs)
        return sample_points(self.space, self.inputs, traced=traced, seed=self.seed)

    def samples(self) -> Samples:
        """The file's inputs and outputs there and where its graph decides something, with its own rounding.

        Raises TrtconvError where the file itself fails for random values.
        """
        samples = run_samples(
            self.original,
            self.inputs,
            self.points(),
            lambda p: sample_inputs(self.inputs, p),
            False,
            Budget(),
            label=LABEL,
        )
        return _at_boundaries(self, samples)


def points_for(
    path: Path, named: Sequence[TensorSpec] = (), space: ShapeSpace | None = None, *, seed: int = 0
) -> FilePoints:
    """A file with its inputs and ranges: those that it records, with `named` and `space` laid over them.

    Raises InvalidRequestError for a dim without a range, with the line to type.
    """
    model = load_model(path)
    ranges = space or ShapeSpace()
    interface = read_interface(path, model, named, ranges)
    recorded = signature(model)
    original = FileOriginal(path, {s.name: fixed_value(s) for s in interface.fixed})
    inputs = tuple(_with_values(s, recorded.inputs) for s in interface.inputs)
    names = interface.dims
    whole = ShapeSpace(tuple((n, r) for n, r in recorded.space.dims if n in names)).merged(ranges)
    require_complete(str(path), original, inputs, whole)
    require_shared_sizes(str(path), original, inputs, whole)
    ordered = ShapeSpace(tuple((n, whole[n]) for n in names))
    return FilePoints(original, inputs, ordered, interface.notes, seed, interface.fixed)


def _with_values(spec: TensorSpec, recorded: Sequence[TensorSpec]) -> TensorSpec:
    """With the value range that an export recorded, unless the user named another one."""
    same = next((r for r in recorded if r.name == spec.name), None)
    return spec if same is None or spec.value_range else replace(spec, value_range=same.value_range)


def _at_boundaries(file: FilePoints, samples: Samples) -> Samples:
    model = load_model(file.original.path)
    if external_files(model) or model.ByteSize() > MOST_BYTES:
        return samples
    first = samples.items[0]
    bounds = value_ranges(file.inputs)

    def open_part(part: onnx.ModelProto) -> OnnxRuntimeRunner:
        return OnnxRuntimeRunner(part.SerializeToString())

    probes = probe_comparisons(model, first.inputs, open_part, bounds)
    more = probes.samples(file.original, first.point)
    return with_probes(samples, file.original, more) if more else samples


def write_samples(path: Path, file: FilePoints, samples: Samples) -> None:
    """The reference of a file."""
    outputs = tuple(samples.items[0].outputs)
    info = ReferenceInfo(samples.points, file.inputs, outputs, file.space, str(file.original.path))
    write_reference(path, info, list(samples.items))


@contextmanager
def temporary_reference(
    path: Path,
    named: Sequence[TensorSpec] = (),
    space: ShapeSpace | None = None,
    *,
    labels: Sequence[str] | None = None,
) -> Iterator[Path]:
    """A reference of random values at min, opt and max (and `labels`), without noise, gone at the end of the block.

    For what wants the file's inputs and compares nothing with its outputs.
    """
    file = points_for(path, named, space)
    chosen = (*SIZES, *(labels or ()))
    sizes = [file.space.pick(which) for which in SIZES]
    points = [p for p in file.points() if p.label in chosen or (p.values == "random" and p.sizes in sizes)]
    items = []
    for point in points:
        inputs = sample_inputs(file.inputs, point)
        items.append(ReferenceSample(point, inputs, file.original(inputs)))
    with tempfile.TemporaryDirectory(prefix="trtconv-") as folder:
        reference = Path(folder, "original.reference.safetensors")
        write_samples(reference, file, Samples(tuple(items)))
        yield reference
