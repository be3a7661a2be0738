"""trtconv takes a PyTorch module to a TensorRT engine that was shown to compute the same thing."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load the public Python API on first use, so that `import trtconv` stays as light as the interpreter."""
    if name == "load":
        from trtconv.check.session import load

        return load
    if name == "convert":
        from trtconv.pipeline import convert

        return convert
    raise AttributeError(f"module 'trtconv' has no attribute {name!r}")
