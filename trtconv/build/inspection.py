"""What `trtconv inspect` says of an engine; without TensorRT from its header and manifest, with it layer by layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trtconv.backends.tensorrt.manifest import EngineManifest, read_engine_manifest
from trtconv.backends.tensorrt.plan_header import read_plan_header
from trtconv.build.package.triton_repository import require_packaged
from trtconv.core.artifacts import manifest_path
from trtconv.core.errors import TrtconvError
from trtconv.core.ledger.facts import raw_rewrite_facts, rewrite_facts
from trtconv.core.model.facts import raw_tensor
from trtconv.core.sizes import format_bytes
from trtconv.core.trust.trust import NO_CODE, EngineCode


def engine_facts(path: Path, *, layers: bool = False, code: EngineCode = NO_CODE) -> dict[str, Any]:
    """Family, version, size and, from the manifest, everything else; with `layers` the layers where they can be read.

    Raises InvalidRequestError when the file is not an engine; or is not the one that its manifest describes, or the
    manifest or the ledger was edited; or is not the one for which its Triton repository was written. A missing
    manifest is stated.
    """
    header = read_plan_header(path)
    require_packaged(path)
    facts: dict[str, Any] = {
        "file": f"{path} ({format_bytes(path.stat().st_size)})",
        "kind": "engine",
        "made by": str(header),
    }
    if manifest_path(path).exists():
        manifest = read_engine_manifest(path)
        facts |= _from_manifest(manifest) | rewrite_facts(path, manifest.ledger_sha256)
    else:
        facts["manifest"] = "none beside it: nothing says what the engine was built from"
    if layers:
        facts |= _layers(path, code)
    return facts


def raw_engine_facts(path: Path, *, layers: bool = False, code: EngineCode = NO_CODE) -> dict[str, Any]:
    """The same as `engine_facts` in numbers and lists, for JSON: sizes in bytes, times in seconds."""
    header = read_plan_header(path)
    require_packaged(path)
    facts: dict[str, Any] = {
        "file": path,
        "format": "engine",
        "bytes": path.stat().st_size,
        "made_by": str(header),
        "family": header.family,
        "manifest": None,
    }
    if manifest_path(path).exists():
        manifest = read_engine_manifest(path)
        facts["manifest"] = {
            **vars(manifest),
            "inputs": [raw_tensor(s) for s in manifest.inputs],
            "outputs": [raw_tensor(s) for s in manifest.outputs],
        }
        facts["rewrite"] = raw_rewrite_facts(path, manifest.ledger_sha256) or None
    return {**facts, **_layers(path, code)} if layers else facts


def _from_manifest(manifest: EngineManifest) -> dict[str, Any]:
    profiles = {
        f"profile {i}": [f"{n} {' / '.join('x'.join(map(str, s)) for s in t)}" for n, t in p.items()] or "static"
        for i, p in enumerate(manifest.profiles)
    }
    return {
        "inputs": [str(s) for s in manifest.inputs],
        "outputs": [str(s) for s in manifest.outputs],
        "shape space": str(manifest.space) or "static",
        **profiles,
        "precision": manifest.precision,
        "element types": ", ".join(f"{n} {c}" for n, c in sorted(manifest.types.items())),
        "network layers": manifest.layers,
        "compute capabilities": ", ".join(manifest.compute_capabilities)
        or manifest.environment.get("compute_capability", "the backend's default"),
        "optimization level": "TensorRT's own" if manifest.opt_level is None else manifest.opt_level,
        "workspace": "TensorRT's own" if manifest.workspace is None else f"{manifest.workspace} bytes",
        "options": {k: str(v) for k, v in manifest.options.items()} or "none",
        "model": [f"{n} sha256 {h[:16]}" for n, h in manifest.model_files.items()],
        "plugins": [f"{n} sha256 {h[:16]}" for n, h in manifest.plugins.items()] or "none",
        "plugin kernels in the engine": [
            f"{n} ({f['architecture']}, PTX sha256 {f['ptx_sha256'][:16]})" for n, f in manifest.plugin_kernels.items()
        ]
        or "none",
        "built": ", ".join(f"{k} {v}" for k, v in sorted(manifest.environment.items())),
        "build seconds": manifest.seconds,
        "messages": list(manifest.messages) or "none",
    }


def _layers(path: Path, code: EngineCode) -> dict[str, Any]:
    """The engine's layers with their times, and what opening it gave to warn of."""
    from trtconv.backends.select import backend_of

    try:
        runner = backend_of(path).load(path, code=code)
    except TrtconvError as error:
        return {"layers": f"the layers cannot be read here: {error.message}"}
    try:
        layers = [str(layer) for layer in runner.layers(runs=20)]
        return {"layers": layers, **({"warnings": list(runner.warnings)} if runner.warnings else {})}
    finally:
        runner.close()
