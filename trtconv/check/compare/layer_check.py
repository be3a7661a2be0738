"""An engine and its model, ready for `compare_layers`: marked engines are built with the settings of the plain one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.protocol import Backend, EngineSettings, Profile
from trtconv.backends.select import backend_of
from trtconv.backends.tensorrt.manifest import EngineManifest, read_engine_manifest
from trtconv.check.compare.layers import LayerReport, RunMarked, compare_layers, dump_tensors, graph_tensors
from trtconv.check.compare.precision import arithmetic_of
from trtconv.core.artifacts import require_file, write_bytes
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.digest import sha256_file
from trtconv.core.files.private_folder import private_temporary_folder
from trtconv.core.model.file import load_model, tensor_spec
from trtconv.core.progress import Progress, SilentProgress
from trtconv.core.tolerance import Tolerance
from trtconv.core.trust.trust import EngineCode
from trtconv.plugins.aot.registry import embedded_in
from trtconv.proof.reference import ReferenceSample, read_samples

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


def check_layers(
    engine: Path,
    reference: Path,
    tolerance: Tolerance | None,
    *,
    point: str = "",
    dump: Path | None = None,
    plugins: tuple[Path, ...] = (),
    progress: Progress | None = None,
) -> LayerReport:
    """Compare an engine's inner tensors with ONNX Runtime's at one sample point (its label; the first by default).

    Needs the engine's manifest and the ONNX file that it was built from beside it. Raises InvalidRequestError when
    one is missing or changed, and whatever building and running an engine raise.
    """
    progress = progress or SilentProgress()
    manifest = read_engine_manifest(engine)
    model = model_of(engine, manifest)
    sample = _sample(reference, point)
    backend = backend_of(engine)
    with private_temporary_folder("layers") as folder, backend.warm():
        run = _runner(backend, manifest, model, plugins, sample.inputs, Path(folder), progress)
        report = compare_layers(model, sample.inputs, run, tolerance, progress, arithmetic_of(engine))
        if dump is not None:
            dump_tensors(dump, sample.inputs, run, [t.name for t in graph_tensors(load_model(model))])
    return report


def model_of(engine: Path, manifest: EngineManifest) -> Path:
    """The ONNX file that an engine was built from, beside it. Raises InvalidRequestError when it is not that one."""
    name = next(iter(manifest.model_files))
    path = require_file(engine.with_name(name), "model of the engine")
    if sha256_file(path) != manifest.model_files[name]:
        raise InvalidRequestError(f"'{path}' changed after '{engine.name}' was built from it", hint="build it again")
    return path


def _sample(reference: Path, label: str) -> ReferenceSample:
    labels = []
    for sample in read_samples(reference):
        if label in ("", sample.point.label):
            return sample
        labels.append(sample.point.label)
    raise InvalidRequestError(f"'{reference}' has no point '{label}'", hint="it has " + ", ".join(labels))


def _runner(
    backend: Backend,
    manifest: EngineManifest,
    model: Path,
    plugins: tuple[Path, ...],
    inputs: Mapping[str, Array],
    folder: Path,
    progress: Progress,
) -> RunMarked:
    def run(names: Sequence[str]) -> dict[str, Array]:
        # Debug tensors leave inputs and outputs alone, and need no memory that lasts for the whole run.
        kind = "debug_tensors" if backend.capabilities().debug_tensors else "debug_outputs"
        options = {**manifest.options, kind: ",".join(names)}
        settings = EngineSettings(
            model,
            manifest.profiles,
            pinned_dims(model, manifest.profiles),
            precision=manifest.precision,
            opt_level=manifest.opt_level,
            workspace=manifest.workspace,
            plugins=plugins,
            options=options,
            embedded=embedded_in(load_model(model), manifest.options),
        )
        target = folder / f"{len(names)}.engine"
        write_bytes(target, backend.build(settings, progress).plan)
        # Built here a moment ago, with what the engine's manifest says.
        session = backend.load(target, plugins=plugins, foreign=True, code=EngineCode(host=True, plugins=True))
        try:
            return session.watched(inputs, names)
        finally:
            session.close()
            target.unlink()

    return run


def pinned_dims(model: Path, profiles: tuple[Profile, ...]) -> tuple[tuple[str, int, int], ...]:
    """The dims of a model's inputs that have one and the same size in all profiles, as (input, axis, size)."""
    pins = []
    for value in load_model(model).graph.input:
        for axis, dim in enumerate(tensor_spec(value).dims):
            sizes = {s[axis] for p in profiles if value.name in p for s in p[value.name]}
            if isinstance(dim, str) and len(sizes) == 1:
                pins.append((value.name, axis, sizes.pop()))
    return tuple(pins)
