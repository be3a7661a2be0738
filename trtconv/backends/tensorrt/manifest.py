"""The engine's manifest, `model.engine.json`: what is not in the plan, bound to it by its hash."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trtconv.backends.protocol import Profile
from trtconv.core.artifacts import manifest_path, read_json, require_file
from trtconv.core.dtypes import parse_dtype
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.artifact_set import require_seal, sealed, write_sealed
from trtconv.core.files.digest import sha256_file
from trtconv.core.shape_space.space import ShapeSpace, parse_space
from trtconv.core.tensors import TensorSpec
from trtconv.core.text.fields import Fields

SCHEMA = 4
_TABLES = ("model_files", "options", "plugins", "types", "environment", "timing_cache")


@dataclass(frozen=True)
class EngineManifest:
    """What was built, from what, with what and where. `model_files` are the ONNX file and its external data.

    `plugins` are the libraries that the engine needs (name to SHA-256); `plugin_kernels` those that it carries itself.
    `padding` is the model's record of the inputs that it pads (core.padding), or empty; `fixed_rows` that of
    its outputs whose number of rows was fixed. `opt_level` and `workspace` (bytes) are None where TensorRT's own held.
    `reference_sha256` and `ledger_sha256` are of the files that belong to the model, empty where it has none.
    """

    engine_sha256: str
    engine_bytes: int
    model_files: Mapping[str, str]
    backend: str
    version: str
    trtconv: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    space: ShapeSpace
    profiles: tuple[Profile, ...]
    precision: str
    opt_level: int | None = None
    workspace: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    compute_capabilities: tuple[str, ...] = ()
    plugins: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, int] = field(default_factory=dict)
    layers: int = 0
    seconds: float = 0.0
    messages: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    timing_cache: Mapping[str, Any] = field(default_factory=dict)
    plugin_kernels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    padding: str = ""
    fixed_rows: str = ""
    reference_sha256: str = ""
    ledger_sha256: str = ""


def write_manifest(engine: Path, manifest: EngineManifest) -> Path:
    """Write the manifest beside an engine. Written after the engine, so that a stale one shows by its hash."""
    path = manifest_path(engine)
    write_sealed(path, manifest_data(manifest))
    return path


def manifest_data(manifest: EngineManifest) -> dict[str, Any]:
    """The manifest as plain data."""
    data = dict(vars(manifest))
    return data | {
        "schema": SCHEMA,
        "inputs": [_tensor_json(s) for s in manifest.inputs],
        "outputs": [_tensor_json(s) for s in manifest.outputs],
        "space": str(manifest.space),
        "profiles": [{n: [list(s) for s in t] for n, t in p.items()} for p in manifest.profiles],
        **{k: dict(data[k]) for k in _TABLES},
        "plugin_kernels": {name: dict(facts) for name, facts in manifest.plugin_kernels.items()},
        "compute_capabilities": list(manifest.compute_capabilities),
        "messages": list(manifest.messages),
        "seconds": round(manifest.seconds, 3),
    }


def read_engine_manifest(engine: Path, *, verify: bool = True, plan: bytes | None = None) -> EngineManifest:
    """Read the manifest of an engine.

    With `verify` the engine's bytes are hashed, and an engine that is not the one described (rebuilt, cut off, or a
    crash between the two writes) raises InvalidRequestError. So does a missing, edited or unreadable manifest. `plan`
    are the engine's bytes where the caller goes on with them: a file that is read again may be another one by then.
    """
    require_file(engine, "engine")
    if engine.suffix == ".onnx":
        raise InvalidRequestError(f"'{engine}' is an ONNX model, not an engine", hint="name the engine built from it")
    path = manifest_path(engine)
    if not path.exists():
        raise InvalidRequestError(
            f"'{engine}' has no manifest '{path.name}' beside it, so nothing says what it was built from",
            hint="build it with `trtconv build`; `trtconv check --foreign-engine` takes one from elsewhere",
        )
    manifest = parse_engine_manifest(read_json(path, "engine manifest", "build the engine again"), path)
    if not verify:
        return manifest
    digest = sha256_file(engine) if plan is None else hashlib.sha256(plan).hexdigest()
    if digest != manifest.engine_sha256:
        size = engine.stat().st_size if plan is None else len(plan)
        cut = f": it has {size} bytes of {manifest.engine_bytes}" if size != manifest.engine_bytes else ""
        raise InvalidRequestError(
            f"'{engine}' is not the engine that '{path.name}' describes{cut}", hint="build it again"
        )
    return manifest


def parse_engine_manifest(data: dict[str, Any], path: Path) -> EngineManifest:
    """The manifest out of its JSON; `path` is named where it raises InvalidRequestError."""
    if data.get("schema") != SCHEMA:
        raise InvalidRequestError(
            f"'{path}' is not an engine manifest of schema {SCHEMA}", hint="build the engine again"
        )
    require_seal(data, path, "build the engine again")
    try:
        manifest = _from_json(Fields(data))
    except (ValueError, InvalidRequestError) as error:
        raise InvalidRequestError(f"'{path}' is damaged: {error}", hint="build the engine again") from error
    if sealed(manifest_data(manifest)) != data:
        raise InvalidRequestError(f"'{path}' is damaged: it holds other fields", hint="build the engine again")
    return manifest


def _from_json(table: Fields) -> EngineManifest:
    kernels = table.table("plugin_kernels")
    return EngineManifest(
        engine_sha256=table.text("engine_sha256"),
        engine_bytes=table.whole("engine_bytes"),
        model_files=table.text_table("model_files"),
        backend=table.text("backend"),
        version=table.text("version"),
        trtconv=table.text("trtconv"),
        inputs=tuple(_tensor(t) for t in table.tables("inputs")),
        outputs=tuple(_tensor(t) for t in table.tables("outputs")),
        space=parse_space([table.text("space")]),
        profiles=tuple({n: _triple(p.get(n)) for n in p.names()} for p in table.tables("profiles")),
        precision=table.text("precision"),
        opt_level=table.optional_whole("opt_level"),
        workspace=table.optional_whole("workspace"),
        options=table.settings("options"),
        compute_capabilities=table.texts("compute_capabilities"),
        plugins=table.text_table("plugins"),
        types=table.whole_table("types"),
        layers=table.whole("layers"),
        seconds=table.number("seconds"),
        messages=table.texts("messages"),
        environment=table.text_table("environment"),
        timing_cache=table.settings("timing_cache"),
        plugin_kernels={name: kernels.text_table(name) for name in kernels.names()},
        padding=table.text("padding"),
        fixed_rows=table.text("fixed_rows"),
        reference_sha256=table.text("reference_sha256"),
        ledger_sha256=table.text("ledger_sha256"),
    )


def _tensor_json(spec: TensorSpec) -> dict[str, Any]:
    """Dims apart, not as one text: an output's can be any expression that an exporter wrote."""
    entry: dict[str, Any] = {"name": spec.name, "dtype": spec.dtype.name, "dims": list(spec.dims)}
    return entry | ({"range": list(spec.value_range)} if spec.value_range else {})


def _tensor(table: Fields) -> TensorSpec:
    dims = tuple(_dim(d) for d in table.values("dims"))
    bounds = table.numbers("range") if "range" in table.names() else None
    if bounds is not None and len(bounds) != 2:
        raise ValueError("'range' is no pair of numbers")
    value_range = (bounds[0], bounds[1]) if bounds else None
    return TensorSpec(table.text("name"), parse_dtype(table.text("dtype")), dims, value_range)


def _dim(value: Any) -> int | str:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise ValueError(f"{value!r:.40} is no dim")
    return value


def _triple(value: Any) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """The least, usual and largest shape of an input in a profile."""
    shapes = Fields({str(i): shape for i, shape in enumerate(value if isinstance(value, list) else ())})
    if len(shapes.names()) != 3:
        raise ValueError("a profile has no three shapes")
    return shapes.wholes("0"), shapes.wholes("1"), shapes.wholes("2")
