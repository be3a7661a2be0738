"""`resolve_build`: a request and what it means on this machine, once, for the builder and for the engine cache alike.

Whatever decides the bytes of an engine is a field of `ResolvedBuild` (or of the settings in it) and thereby part of
its digest. A field stays out of the digest only with a reason, which stands beside it.
"""

from __future__ import annotations

import dataclasses
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.cuda.driver import probe_cuda
from trtconv.backends.protocol import Capabilities, EngineSettings
from trtconv.backends.select import choose_backend
from trtconv.backends.tensorrt.builder.configuration import check_settings
from trtconv.backends.tensorrt.manifest import SCHEMA as MANIFEST_SCHEMA
from trtconv.build.cache.store.entry import cache_key
from trtconv.build.precision import require_precision, require_request_precision, resolve_precision
from trtconv.build.profiles import ProfilePlan, plan_profiles
from trtconv.core.artifacts import manifest_path, require_file, require_writable
from trtconv.core.embedded import EmbeddedPlugin
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.digest import sha256_file
from trtconv.core.files.output_paths import ENGINE, require_distinct, require_replaceable
from trtconv.core.ledger.reading import ledger_digest
from trtconv.core.model.file import external_files, load_model, model_files, signature
from trtconv.core.model.provenance import FIXED_ROWS_KEY, PADDING_KEY, REFERENCE_KEY
from trtconv.core.precision import require_capabilities
from trtconv.core.requests import BuildRequest
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.plugins.aot.registry import embedded_in
from trtconv.plugins.libraries.finding import libraries_for_model
from trtconv.plugins.libraries.library import source_hash

if TYPE_CHECKING:
    import onnx

# Fields of BuildRequest that decide nothing about the engine's bytes.
NOT_IN_ENGINE: Mapping[str, str] = {
    "output": "where the engine is written",
    "isolated": "in which process it is built",
    "timing_cache": "which tactics are measured anew; every tactic computes what was asked for",
}
# Fields of EngineSettings that another part of the digest stands for.
HASHED_BY_CONTENT: Mapping[str, str] = {
    "model": "model_files holds the bytes' digests",
    "timing_cache": NOT_IN_ENGINE["timing_cache"],
    "plugins": "plugin_files holds the libraries' digests",
    "embedded": "plugin_kernels is the digest of the kernels' sources, the model's bytes tell which are used",
}


def _outside_digest(reason: str) -> Any:
    """A field that `key_parts` leaves out, and why it may."""
    return field(metadata={"outside_digest": reason})


@dataclass(frozen=True)
class SourceFile:
    """A file that goes into an engine: its SHA-256, and size and mtime in ns by which a later change shows."""

    path: Path
    sha256: str
    size: int
    modified_ns: int

    @classmethod
    def read(cls, path: Path) -> SourceFile:
        """Hash a file. Raises InvalidRequestError when there is none."""
        status = require_file(path, "file").stat()
        return cls(path, sha256_file(path), status.st_size, status.st_mtime_ns)

    def require_unchanged(self) -> None:
        """Raise InvalidRequestError when the file was replaced or written to since it was hashed."""
        status = require_file(self.path, "file").stat()
        if (status.st_size, status.st_mtime_ns) == (self.size, self.modified_ns):
            return
        if sha256_file(self.path) != self.sha256:
            raise InvalidRequestError(
                f"'{self.path}' changed while the engine was being built", hint="build again when it is complete"
            )


@dataclass(frozen=True)
class Machine:
    """Where an engine is built, as far as it decides the engine: the GPU only where the builder measures on one."""

    platform: str
    gpu: str = ""
    compute_capability: str = ""
    multiprocessors: int = 0
    driver: str = ""
    tf32_override: str = ""


@dataclass(frozen=True)
class ResolvedBuild:
    """Everything that decides an engine. `key_parts` is what is hashed, `digest` the hash.

    `model_files` and `plugin_files` map names, as the manifest records them, to files. `plugin_kernels` is the digest
    of the sources of the kernels that the engine carries, or empty. `ledger_sha256` is that of the rewrites beside the
    model, which the manifest kept with a cached engine names, or empty.
    """

    settings: EngineSettings
    model_files: Mapping[str, SourceFile]
    plugin_files: Mapping[str, SourceFile]
    plugin_kernels: str
    ledger_sha256: str
    inputs: tuple[TensorSpec, ...]
    space: ShapeSpace
    backend: str
    machine: Machine
    trtconv: str
    manifest_schema: int
    capabilities: Capabilities = _outside_digest("probed from the backend, whose name and version are in the digest")
    outputs: tuple[TensorSpec, ...] = _outside_digest("read from the model, whose bytes are in the digest")
    padding: str = _outside_digest("read from the model, whose bytes are in the digest")
    fixed_rows: str = _outside_digest("read from the model, whose bytes are in the digest")
    reference_sha256: str = _outside_digest("read from the model, whose bytes are in the digest")
    output: Path = _outside_digest(NOT_IN_ENGINE["output"])
    isolated: bool = _outside_digest(NOT_IN_ENGINE["isolated"])

    def key_parts(self) -> dict[str, Any]:
        """What decides the engine's bytes, as plain data for the engine cache."""
        settings = {
            f.name: _plain(f.name, getattr(self.settings, f.name))
            for f in dataclasses.fields(self.settings)
            if f.name not in HASHED_BY_CONTENT
        }
        parts = {
            f.name: _plain(f.name, getattr(self, f.name))
            for f in dataclasses.fields(self)
            if "outside_digest" not in f.metadata and f.name != "settings"
        }
        machine = parts.pop("machine")
        # What `trtconv cache ls` and the reason of a miss call them.
        names = {
            "model_files": "model",
            "plugin_files": "plugins",
            "manifest_schema": "manifest",
            "ledger_sha256": "ledger",
        }
        return {**settings, **{names.get(n, n): value for n, value in parts.items()}, **machine}

    @property
    def digest(self) -> str:
        """The name under which the engine cache keeps the engine."""
        return cache_key(self.key_parts())

    def require_unchanged(self) -> None:
        """Raise InvalidRequestError when the model, its weights or a plugin library changed since they were hashed."""
        for source in (*self.model_files.values(), *self.plugin_files.values()):
            source.require_unchanged()


def _plain(name: str, value: Any) -> Any:
    """A field's value as JSON holds it. Raises TypeError for what has no obvious form: a new field needs a decision."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (TensorSpec, ShapeSpace)):
        return str(value)
    if isinstance(value, SourceFile):
        return value.sha256
    if isinstance(value, Machine):
        return dataclasses.asdict(value)
    if isinstance(value, Mapping):
        if name == "options":  # `true` of a config file and "true" of the command line
            return {str(k): str(v) for k, v in value.items()}
        return {str(k): _plain(name, v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(name, v) for v in value]
    raise TypeError(f"{name} of {type(value).__name__} has no form in the digest of a build")


def require_request(request: BuildRequest) -> None:
    """Raise for what is wrong with a request whatever the model, as `resolve_build` would; nothing is built."""
    require_request_precision(request.precision)
    require_capabilities(request.precision, request.compute_capabilities)
    for library in request.plugins:
        require_file(library, "plugin library")
    capabilities = choose_backend(request.backend).capabilities()
    check_settings(capabilities, _settings(request, ProfilePlan((), ShapeSpace(), (), ())))


def require_outputs(request: BuildRequest, model: onnx.ModelProto) -> None:
    """Raise InvalidRequestError where the engine, its manifest or the timing cache could not be written or are read."""
    outputs = [request.output, manifest_path(request.output), *([request.timing_cache] if request.timing_cache else ())]
    for output in outputs:
        require_writable(output)
    require_replaceable(request.output, ENGINE)
    require_distinct(outputs, (*model_files(request.model, model), *request.plugins))


def resolve_build(request: BuildRequest) -> ResolvedBuild:
    """What a request means for its model on this machine; warns of ranges that go beyond what export proved.

    Raises InvalidRequestError for a request that does not fit the model or a rewritten model that was edited since,
    UnsupportedError for what the backend lacks, MissingDependencyError when the backend is absent.
    """
    import trtconv

    model = load_model(request.model)
    require_outputs(request, model)
    described = signature(model)
    plan = plan_profiles(request, described)
    request = _with_precision(request, model)
    request, carried, capabilities = _with_plugins(request, model)
    settings = replace(_settings(request, plan), embedded=carried)
    check_settings(capabilities, settings)
    properties = {p.key: p.value for p in model.metadata_props}
    return ResolvedBuild(
        settings=settings,
        model_files=_model_files(request.model, model),
        plugin_files=_plugin_files(request.plugins),
        plugin_kernels=source_hash() if carried else "",
        ledger_sha256=ledger_digest(request.model),
        inputs=plan.inputs,
        space=plan.space,
        backend=str(capabilities),
        machine=_machine(capabilities),
        trtconv=trtconv.__version__,
        manifest_schema=MANIFEST_SCHEMA,
        capabilities=capabilities,
        outputs=described.outputs,
        padding=properties.get(PADDING_KEY, ""),
        fixed_rows=properties.get(FIXED_ROWS_KEY, ""),
        reference_sha256=properties.get(REFERENCE_KEY, ""),
        output=request.output,
        isolated=request.isolated,
    )


def _with_precision(request: BuildRequest, model: onnx.ModelProto) -> BuildRequest:
    """The request with the precision of the graph where it names none; it has to be one that graph and GPU have."""
    request = replace(request, precision=resolve_precision(model, request.precision))
    require_precision(model, request.model, request.precision)
    require_capabilities(request.precision, request.compute_capabilities)
    return request


def _with_plugins(
    request: BuildRequest, model: onnx.ModelProto
) -> tuple[BuildRequest, tuple[EmbeddedPlugin, ...], Capabilities]:
    """The request with the libraries that the graph needs, the plugins that the engine carries, and the backend."""
    for library in request.plugins:
        require_file(library, "plugin library")
    capabilities = choose_backend(request.backend).capabilities()
    carried = embedded_in(model, dict(request.options))
    if capabilities.plugins and not carried:
        request = replace(request, plugins=libraries_for_model(model, request.plugins, capabilities.version))
    return request, carried, capabilities


def _settings(request: BuildRequest, plan: ProfilePlan) -> EngineSettings:
    values = {}
    for spec in plan.inputs:
        if spec.dtype.kind == "int" and spec.value_range:
            low, high = int(spec.value_range[0]), int(spec.value_range[1])
            values[spec.name] = (low, (low + high + 1) // 2, high)
    return EngineSettings(
        model=request.model,
        profiles=plan.profiles,
        pinned=plan.pinned,
        shape_values=values,
        precision=request.precision,
        workspace=request.workspace,
        opt_level=request.opt_level,
        compute_capabilities=request.compute_capabilities,
        timing_cache=request.timing_cache,
        plugins=request.plugins,
        options=dict(request.options),
    )


def _model_files(path: Path, model: onnx.ModelProto) -> dict[str, SourceFile]:
    names = (path.name, *external_files(model))
    return {name: SourceFile.read(path.parent / name) for name in names}


def _plugin_files(libraries: Iterable[Path]) -> dict[str, SourceFile]:
    """Libraries by file name, by which an engine's manifest records them; two of one name could not be told apart."""
    files: dict[str, SourceFile] = {}
    for path in dict.fromkeys(libraries):
        if path.name in files and files[path.name].path.resolve() != path.resolve():
            raise InvalidRequestError(
                f"two plugin libraries are called '{path.name}': '{files[path.name].path}' and '{path}'",
                hint="rename one of them: an engine's manifest records libraries by file name",
            )
        files[path.name] = SourceFile.read(path)
    return files


def _machine(capabilities: Capabilities) -> Machine:
    system = f"{platform.system()} {platform.machine()}"
    if not capabilities.needs_gpu_to_build:
        return Machine(system)
    state = probe_cuda()
    if not state.gpus:
        return Machine(system)
    gpu = state.gpus[0]
    return Machine(
        platform=system,
        gpu=gpu.name,
        compute_capability=gpu.compute_capability,
        multiprocessors=gpu.multiprocessors,
        driver=state.driver,
        # cuBLAS and cuDNN obey it in whatever process they run in.
        tf32_override=os.environ.get("NVIDIA_TF32_OVERRIDE", ""),
    )
