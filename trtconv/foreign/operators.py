"""Operators that no TensorRT has, told before anything is run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.errors import UnsupportedError

if TYPE_CHECKING:
    import onnx

# Domain -> what to do about it. Nodes of other domains may be plugins.
REMEDIES = {
    "ai.onnx.ml": "linear models and pipelines gain little on a GPU: run them in ONNX Runtime, or make tensor "
    "operations of them first (hummingbird-ml)",
    "ai.onnx.training": "export the network for inference",
    "ai.onnx.preview.training": "export the network for inference",
}
# Of these domains, what a rewrite takes apart.
REWRITTEN = ("ai.onnx.ml::TreeEnsemble", "ai.onnx.ml::TreeEnsembleRegressor")


def require_operators(model: onnx.ModelProto, path: Path) -> None:
    """Raise UnsupportedError for a file with operators of a domain that no TensorRT has."""
    names = (f"{n.domain}::{n.op_type}" for n in model.graph.node if n.domain in REMEDIES)
    counts = Counter(name for name in names if name not in REWRITTEN)
    if counts:
        domain = next(iter(counts)).partition("::")[0]
        raise UnsupportedError(f"'{path}' holds {', '.join(counts)}, which no TensorRT has", hint=REMEDIES[domain])
