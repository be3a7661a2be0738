"""`trtconv package`: a model repository of the Triton Inference Server out of an engine and its manifest.

The layout and the fields of config.pbtxt are those of Triton's model_config.proto; a test parses what is written with
the message class that the tritonclient wheel carries.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from trtconv.backends.tensorrt.engine_fit import require_plugins
from trtconv.backends.tensorrt.manifest import EngineManifest, read_engine_manifest
from trtconv.core.artifacts import require_file, write_bytes, write_text
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.digest import sha256_file
from trtconv.core.files.output_paths import require_distinct
from trtconv.core.files.set_lock import locked_set
from trtconv.core.tensors import TensorSpec

_TYPES = {
    "float32": "FP32",
    "float16": "FP16",
    "bfloat16": "BF16",
    "int64": "INT64",
    "int32": "INT32",
    "int8": "INT8",
    "uint8": "UINT8",
    "bool": "BOOL",
}
_DELAY_US = 100
_PLAN = "model.plan"
_PARAMETER = re.compile(r'parameters \{ key: "(\w+)", value \{ string_value: "([^"\\]*)" \} \}')


@dataclass(frozen=True)
class PackageRequest:
    """What to package. `instances` execution contexts serve requests side by side."""

    engine: Path
    repository: Path
    name: str = ""
    version: int = 1
    instances: int = 1
    plugins: tuple[Path, ...] = ()


@dataclass(frozen=True)
class PackageResult:
    """What was written, and the words with which Triton is started for it."""

    model: Path
    config: Path
    max_batch: int
    command: str


def package_engine(request: PackageRequest) -> PackageResult:
    """Write `REPOSITORY/NAME/config.pbtxt`, `REPOSITORY/NAME/VERSION/model.plan` and the plugin libraries.

    Raises InvalidRequestError for an engine without a manifest, of TensorRT-RTX (Triton has no backend for it), or
    whose plugin library is not given.
    """
    plan = require_file(request.engine, "engine").read_bytes()
    manifest = read_engine_manifest(request.engine, plan=plan)
    if manifest.backend != "tensorrt":
        raise InvalidRequestError(
            f"'{request.engine}' is an engine of {manifest.backend}, which Triton cannot serve",
            hint="build it with --backend tensorrt, in the TensorRT version of the Triton release that will serve it",
        )
    require_plugins(request.engine, manifest, request.plugins)
    name = request.name or request.engine.name.split(".")[0]
    folder = request.repository / name
    batch = batch_of(manifest)
    config = config_text(name, manifest, batch, request.instances, request.version)
    libraries = [require_file(p, "plugin library") for p in request.plugins]
    plan_copy, copies = folder / str(request.version) / _PLAN, [folder / "plugins" / p.name for p in libraries]
    require_distinct((plan_copy, folder / "config.pbtxt", *copies), (request.engine, *libraries))
    if len(set(copies)) < len(copies):
        raise InvalidRequestError("two plugin libraries have one file name", hint="rename one of them")
    with locked_set(folder / "config.pbtxt"), locked_set(plan_copy):
        write_bytes(plan_copy, plan)
        for library, copy in zip(libraries, copies, strict=True):
            write_bytes(copy, library.read_bytes())
        write_text(folder / "config.pbtxt", config)
    loaded = ";".join(str(folder / "plugins" / p.name) for p in libraries)
    command = "tritonserver " + shlex.quote(f"--model-repository={request.repository}")
    if loaded:
        # Quoted: a shell takes the semicolons between libraries for the end of the command.
        command += " " + shlex.quote(f"--backend-config=tensorrt,plugins={loaded}")
    return PackageResult(plan_copy, folder / "config.pbtxt", batch, command)


def batch_of(manifest: EngineManifest) -> int:
    """The largest batch that Triton may form: max of the dim that leads every input and output, else 0 (no batching).

    Dims that follow must not be of that name again, since Triton takes the leading one away from the shape. Triton
    forms batches of every size from 1 on, so an engine that begins later or takes multiples only is not batched.
    """
    tensors = (*manifest.inputs, *manifest.outputs)
    leading = {t.dims[0] if t.dims else "" for t in tensors}
    name = next(iter(leading)) if len(leading) == 1 else ""
    if not isinstance(name, str) or not name or name not in manifest.space:
        return 0
    if any(name in t.dims[1:] for t in tensors):
        return 0
    top = manifest.space[name]
    return top.max if top.max > 1 and top.min == 1 and top.multiple == 1 else 0


def require_packaged(plan: Path) -> None:
    """Raise InvalidRequestError when `REPOSITORY/NAME/VERSION/model.plan` is not the plan that config.pbtxt names.

    That is what a `package` leaves which was killed between the two. Files that trtconv did not package pass.
    """
    config = plan.parent.parent / "config.pbtxt"
    if plan.name != _PLAN or not config.is_file():
        return
    facts = dict(_PARAMETER.findall(config.read_text(errors="replace")))
    if facts.get("version") != plan.parent.name or "engine_sha256" not in facts:
        return
    if facts["engine_sha256"] != sha256_file(plan):
        raise InvalidRequestError(
            f"'{plan}' is not the engine that '{config}' was written for", hint="run trtconv package again"
        )


def config_text(name: str, manifest: EngineManifest, batch: int, instances: int, version: int = 1) -> str:
    """The text of config.pbtxt."""
    old = manifest.version.startswith("8.")
    inputs = ",\n".join(_tensor(t, batch > 0, old, manifest) for t in manifest.inputs)
    outputs = ",\n".join(_tensor(t, batch > 0, old, manifest) for t in manifest.outputs)
    profiles = ", ".join(f'"{i}"' for i in range(len(manifest.profiles)))
    parts = [
        f"name: {json.dumps(name)}",
        'platform: "tensorrt_plan"',
        f"default_model_filename: {json.dumps(_PLAN)}",
        f"max_batch_size: {batch}",
        f"input [\n{inputs}\n]",
        f"output [\n{outputs}\n]",
        f"instance_group [\n  {{ kind: KIND_GPU, count: {instances}, profile: [ {profiles} ] }}\n]",
    ]
    if batch:
        leading = str(manifest.inputs[0].dims[0])
        preferred = sorted({manifest.space[leading].opt, batch})
        parts.append(
            f"dynamic_batching {{\n  preferred_batch_size: [ {', '.join(map(str, preferred))} ]\n"
            f"  max_queue_delay_microseconds: {_DELAY_US}\n}}"
        )
    facts = {
        "version": str(version),
        "trtconv": manifest.trtconv,
        "tensorrt": manifest.version,
        "shape_space": str(manifest.space),
        "engine_sha256": manifest.engine_sha256,
    }
    parts += [
        f"parameters {{ key: {json.dumps(k)}, value {{ string_value: {json.dumps(v)} }} }}" for k, v in facts.items()
    ]
    return "\n".join(parts) + "\n"


def _tensor(spec: TensorSpec, batched: bool, old: bool, manifest: EngineManifest) -> str:
    dtype = {"float64": "float32"}.get(spec.dtype.name, spec.dtype.name)
    # TensorRT 8 has no int64: its engines take and give int32.
    dtype = "int32" if old and dtype == "int64" else dtype
    dims = spec.dims[1:] if batched else spec.dims
    sizes = [str(_size(d, manifest)) for d in dims]
    # Triton wants at least one dim; a batch of scalars is [1] reshaped to [].
    shape = f"dims: [ {', '.join(sizes)} ]" if sizes else "dims: [ 1 ], reshape { shape: [ ] }"
    return f"  {{ name: {json.dumps(spec.name)}, data_type: TYPE_{_TYPES[dtype]}, {shape} }}"


def _size(dim: int | str, manifest: EngineManifest) -> int:
    if isinstance(dim, int):
        return dim
    if dim in manifest.space and manifest.space[dim].min == manifest.space[dim].max:
        return manifest.space[dim].min
    return -1
