"""The engine's manifest, under the name by which the rooms know it."""

from trtconv.backends.tensorrt.manifest import EngineManifest, read_engine_manifest, write_manifest

__all__ = ["EngineManifest", "read_engine_manifest", "write_manifest"]
