"""Does an engine belong to this library and this GPU? Answered before TensorRT sees its bytes.

TensorRT's own answers come late and are hard to read, and some of its versions crash on a damaged plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.backends.cuda.driver import Gpu
from trtconv.backends.protocol import Capabilities
from trtconv.backends.tensorrt.library import as_bool
from trtconv.backends.tensorrt.manifest import EngineManifest, read_engine_manifest
from trtconv.backends.tensorrt.plan_header import PlanHeader, plan_header
from trtconv.core.artifacts import manifest_path, require_file
from trtconv.core.errors import InvalidRequestError, UnsupportedError, UntrustedError
from trtconv.core.files.digest import sha256_file
from trtconv.core.trust.trust import EngineCode

if TYPE_CHECKING:
    from trtconv.core.trust.signature import VerifiedSet

# TensorRT-RTX's ComputeCapability has no member for these (measured on 9.0: the engine is refused).
RTX_LACKS = ("9.0", "10.0", "10.3")


@dataclass(frozen=True)
class EngineFile:
    """An engine's bytes, read once: what was hashed is what is deserialised. No manifest: an engine from elsewhere."""

    path: Path
    plan: bytes
    header: PlanHeader
    manifest: EngineManifest | None


def read_engine(engine: Path, *, foreign: bool = False, verified: VerifiedSet | None = None) -> EngineFile:
    """Read an engine and its manifest; `foreign` takes an engine that has none.

    Raises InvalidRequestError when the file is not an engine, is cut off, has no manifest or is not the one that its
    manifest describes, UntrustedError when its bytes are not those that `verified` vouches for.
    """
    require_file(engine, "engine")
    plan = engine.read_bytes()
    if verified is not None:
        verified.require(engine, plan)
        verified.require(manifest_path(engine), manifest_path(engine).read_bytes())
    header = plan_header(engine, plan)
    if foreign and not manifest_path(engine).exists():
        return EngineFile(engine, plan, header, None)
    return EngineFile(engine, plan, header, read_engine_manifest(engine, plan=plan))


def require_named_code(engine: Path, manifest: EngineManifest | None, code: EngineCode) -> None:
    """Raise UntrustedError when the engine carries code that was not named: that of the host, or of plugins."""
    options = manifest.options if manifest is not None else {}
    carried = {
        "host": as_bool("version_compatible", options.get("version_compatible", False)),
        "plugins": bool(manifest and manifest.plugin_kernels),
    }
    for kind, present in carried.items():
        if present and not getattr(code, kind):
            raise UntrustedError(
                f"'{engine}' carries {'code for the CPU' if kind == 'host' else 'kernels of plugins'}, which would run "
                "when it is loaded",
                hint=f"where you trust who built it: --allow-code {kind}, or "
                f"trtconv.load(..., code=EngineCode({kind}=True))",
            )


def require_version(engine: Path, header: PlanHeader, manifest: EngineManifest | None, runtime: Capabilities) -> None:
    """Raise UnsupportedError unless the engine was made by this library's version or for any minor version."""
    if header.family != runtime.name:
        raise UnsupportedError(
            f"'{engine}' was made by {header}, and {runtime} cannot read it", hint="build it again with this backend"
        )
    built_with = header.version[:3]
    running = tuple(int(w) for w in runtime.version.split(".")[:3])
    if built_with == running:
        return
    portable = manifest is not None and as_bool("version_compatible", manifest.options.get("version_compatible", False))
    if portable and built_with[0] == running[0] and built_with <= running:
        return
    raise UnsupportedError(
        f"'{engine}' was made by {header}, this is {runtime}",
        hint=f"build it again here, or install {header.family}=={header.version_text}",
    )


def require_gpu(engine: Path, manifest: EngineManifest | None, runtime: Capabilities, gpu: Gpu) -> tuple[str, ...]:
    """Raise UnsupportedError when the engine was built for another GPU. Returns warnings."""
    if runtime.name == "tensorrt-rtx" and gpu.compute_capability in RTX_LACKS:
        raise UnsupportedError(
            f"TensorRT-RTX does not run on compute capability {gpu.compute_capability} ({gpu.name})",
            hint="build with --backend tensorrt for this GPU, or run the engine on a GeForce or RTX GPU",
        )
    if manifest is None:
        return ()
    if manifest.compute_capabilities and gpu.compute_capability not in manifest.compute_capabilities:
        built = ", ".join(manifest.compute_capabilities)
        raise UnsupportedError(
            f"'{engine}' was built for compute capability {built}; {gpu.name} has {gpu.compute_capability}",
            hint=f"build it with --compute-capability {gpu.compute_capability}",
        )
    made_for = manifest.environment.get("compute_capability", "")
    level = str(manifest.options.get("hardware_compatibility", "none")).lower()
    if made_for and made_for != gpu.compute_capability and level != "ampere_plus":
        raise UnsupportedError(
            f"'{engine}' was built on {manifest.environment.get('gpu')} with compute capability {made_for}; "
            f"this is {gpu.name} with {gpu.compute_capability}",
            hint="build it on this GPU, or with the option hardware_compatibility=ampere_plus",
        )
    if made_for and manifest.environment.get("gpu") not in (None, gpu.name):
        return (f"the engine was tuned on {manifest.environment['gpu']}, this is {gpu.name}: it may be slower",)
    return ()


def require_plugins(engine: Path, manifest: EngineManifest | None, plugins: tuple[Path, ...]) -> None:
    """Raise InvalidRequestError when a plugin library that the engine was built with is not given, or is another one.

    An engine holds its plugins' attributes as the library wrote them, so that the same file has to read them back.
    """
    library_paths = {p.name: p for p in plugins}
    for name, digest in (manifest.plugins if manifest else {}).items():
        if name not in library_paths:
            raise InvalidRequestError(f"'{engine}' needs the plugin library {name}", hint=f"add --plugin PATH/{name}")
        path = require_file(library_paths[name], "plugin library")
        if sha256_file(path) != digest:
            raise InvalidRequestError(
                f"the plugin library '{path}' is not the one that '{engine}' was built with (sha256 {digest[:16]})",
                hint="name that one with --plugin, or build the engine again with this library",
            )
