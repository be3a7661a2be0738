"""What is checked, made ready to run: an ONNX file in ONNX Runtime, an engine on this machine's GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.artifacts import manifest_path, require_file
from trtconv.core.files.output_paths import ENGINE_SUFFIXES
from trtconv.core.model.file import load_model, signature
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.core.trust.trust import NO_CODE, EngineCode

if TYPE_CHECKING:
    import numpy as np

    from trtconv.backends.protocol import EngineRunner, ModelRunner, Profile
    from trtconv.core.trust.signature import VerifiedSet

    Array = np.ndarray[Any, np.dtype[Any]]

STATIC = ShapeSpace()


@dataclass(frozen=True)
class Subject:
    """A runnable file: what it is, what runs it, its inputs, and the shapes that it takes.

    `profiles` is empty for an ONNX file; for an engine, each maps an input to its (min, opt, max) shapes. `engine` is
    the session of an engine, which can do more than run.
    """

    path: Path
    kind: str
    runner: str
    inputs: tuple[TensorSpec, ...]
    session: ModelRunner
    space: ShapeSpace = STATIC
    profiles: tuple[Profile, ...] = ()
    engine: EngineRunner | None = None
    outputs: tuple[TensorSpec, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What opening and running it gave to warn of so far."""
        return self.session.warnings

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Raises as `ModelRunner` does."""
        return self.session(inputs)

    def close(self) -> None:
        """Free what the session holds."""
        self.session.close()


def is_engine(path: Path) -> bool:
    """True when the name says that the file is an engine."""
    return path.suffix in ENGINE_SUFFIXES


def open_subject(
    path: Path,
    plugins: tuple[Path, ...] = (),
    *,
    foreign: bool = False,
    code: EngineCode = NO_CODE,
    verified: VerifiedSet | None = None,
) -> Subject:
    """Open a file for running; `foreign` takes an engine without a manifest, `code` is what in an engine may run.

    Raises InvalidRequestError for a file that is neither, UntrustedError for one that `verified` does not vouch for,
    and what the backend raises.
    """
    require_file(path, "model")
    if is_engine(path):
        return _engine(path, plugins, foreign, code, verified)
    if verified is not None:
        verified.require(path, path.read_bytes())
    return _onnx(path)


def _onnx(path: Path) -> Subject:
    from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
    from trtconv.backends.onnxruntime.half_emulation import emulated_runner, has_halves

    model = load_model(path)
    interface = signature(model)
    where = "on the CPU"
    if has_halves(model):
        # ONNX Runtime alone neither rounds nor overflows between two half nodes on the CPU.
        runner = emulated_runner(load_model(path, weights=True))
        where = "on the CPU, fp16 and bf16 rounded after every node"
    else:
        runner = OnnxRuntimeRunner(path)
    runner_name = f"onnxruntime {runner.version} {where}"
    return Subject(path, "onnx", runner_name, interface.inputs, runner, interface.space, outputs=interface.outputs)


def _engine(
    path: Path, plugins: tuple[Path, ...], foreign: bool, code: EngineCode, verified: VerifiedSet | None
) -> Subject:
    from trtconv.backends.select import backend_of
    from trtconv.backends.tensorrt.manifest import read_engine_manifest
    from trtconv.plugins.libraries.finding import libraries_for_engine

    backend = backend_of(path)
    if not plugins and manifest_path(path).exists():
        plugins = libraries_for_engine(read_engine_manifest(path).plugins, plugins, backend.capabilities().version)
    runner = backend.load(path, plugins=plugins, foreign=foreign, code=code, verified=verified)
    inputs = tuple(TensorSpec(t.name, t.dtype, tuple(t.shape)) for t in runner.inputs)
    outputs = tuple(TensorSpec(t.name, t.dtype, tuple(t.shape)) for t in runner.outputs)
    profiles = runner.profiles
    return Subject(path, "engine", runner.version, inputs, runner, profiles=profiles, engine=runner, outputs=outputs)
