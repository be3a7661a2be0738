"""New weights for an engine: the same graph node by node, the tensors that changed, the plan and its manifest anew.

TensorRT takes weights by their names in the graph that it was built from. Which tensor of the new graph stands for
which of the old one is read off the nodes that use them, since an exporter numbers its constants.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.select import backend_of
from trtconv.backends.tensorrt.manifest import EngineManifest, read_engine_manifest, write_manifest
from trtconv.core.artifacts import write_bytes
from trtconv.core.errors import InvalidRequestError, UnsupportedError
from trtconv.core.files.digest import sha256_file
from trtconv.core.files.set_lock import locked_set
from trtconv.core.ledger.reading import ledger_digest
from trtconv.core.model.file import load_model, model_files
from trtconv.core.model.provenance import REFERENCE_KEY
from trtconv.core.precision import QUANTISED_NAMES, TYPED
from trtconv.core.progress import Progress, SilentProgress
from trtconv.core.requests.build import is_on
from trtconv.core.text.brief import brief_repr
from trtconv.core.trust.trust import NO_CODE, EngineCode

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

FLOATS = {p.onnx for p in TYPED}
AGAIN = "convert the module again; an engine takes new weights for the same graph alone"


@dataclass(frozen=True)
class RefitResult:
    """The engine with new weights; `weights` are the names of those that changed."""

    engine: Path
    manifest: Path
    weights: tuple[str, ...]
    seconds: float

    __repr__ = brief_repr


def require_refittable(engine: Path) -> EngineManifest:
    """The manifest of an engine. Raises UnsupportedError for one that was not built to take new weights."""
    manifest = read_engine_manifest(engine)
    if not is_on(manifest.options.get("refit", False)):
        raise UnsupportedError(
            f"'{engine}' was not built to take new weights", hint="convert it again with --option refit=true"
        )
    if manifest.precision in QUANTISED_NAMES:
        raise UnsupportedError(
            f"'{engine}' computes in {manifest.precision}, whose scales fit the old weights",
            hint="convert it again with --data",
        )
    return manifest


def refit_engine(
    engine: Path,
    graph: Path,
    model: Path,
    output: Path,
    progress: Progress | None = None,
    *,
    plugins: tuple[Path, ...] = (),
    code: EngineCode = NO_CODE,
) -> RefitResult:
    """Write `output`, the engine that was built from `graph`, with the weights of `model`; and its manifest.

    Raises InvalidRequestError where `graph` is not what the engine was built from, `model` is another graph or was
    edited since it was rewritten, UnsupportedError for what the engine cannot take, naming it; and what loading an
    engine raises. Nothing is written then.
    """
    progress = progress or SilentProgress()
    started = time.monotonic()
    manifest = require_refittable(engine)
    require_graph(engine, graph, manifest)
    manifest = replace(manifest, ledger_sha256=ledger_digest(model))
    weights = changed_weights(load_model(graph, weights=True), load_model(model, weights=True))
    progress.phase(f"refitting {len(weights)} weights")
    plan = backend_of(engine).refit(engine, weights, plugins=plugins, code=code)
    with locked_set(output):
        write_bytes(output, plan)
        path = write_manifest(output, _manifest(manifest, output, model, time.monotonic() - started))
    return RefitResult(output, path, tuple(weights), time.monotonic() - started)


def require_graph(engine: Path, graph: Path, manifest: EngineManifest) -> None:
    """Raise InvalidRequestError unless `graph` holds the bytes that the engine was built from."""
    expected = manifest.model_files.get(graph.name, next(iter(manifest.model_files.values()), ""))
    if not graph.is_file() or sha256_file(graph) != expected:
        raise InvalidRequestError(
            f"'{engine}' was not built from '{graph}' as it is now", hint="name the graph that lay beside the engine"
        )


def changed_weights(old: onnx.ModelProto, new: onnx.ModelProto) -> dict[str, Array]:
    """The tensors of `new` that hold other values than in `old`, by their names in `old`.

    Raises InvalidRequestError naming the first node in which the graphs differ otherwise, and for a constant other
    than a float that changed.
    """
    from onnx import numpy_helper

    tensors = [{t.name: t for t in m.graph.initializer} for m in (old, new)]
    pairs: dict[str, str] = {}
    for before, after in _paired_nodes(old, new):
        for first, second in zip(before.input, after.input, strict=True):
            constant = first in tensors[0]
            if constant != (second in tensors[1]) or (not constant and first != second):
                raise _differs(before, f"it reads '{second}' instead of '{first}'")
            if constant and pairs.setdefault(first, second) != second:
                raise _differs(before, f"'{first}' was one weight with other readers, and is two now")
    changed = {}
    for first, second in pairs.items():
        before_tensor, after_tensor = tensors[0][first], tensors[1][second]
        if (before_tensor.data_type, tuple(before_tensor.dims)) != (after_tensor.data_type, tuple(after_tensor.dims)):
            raise InvalidRequestError(
                f"the weight '{first}' has another shape or type: {list(after_tensor.dims)}, not "
                f"{list(before_tensor.dims)}",
                hint=AGAIN,
            )
        values = numpy_helper.to_array(after_tensor)
        if values.tobytes() != numpy_helper.to_array(before_tensor).tobytes():
            if before_tensor.data_type not in FLOATS:
                raise InvalidRequestError(f"the constant '{first}', which is no float, has another value", hint=AGAIN)
            changed[first] = values
    return changed


def _paired_nodes(old: onnx.ModelProto, new: onnx.ModelProto) -> Iterator[tuple[onnx.NodeProto, onnx.NodeProto]]:
    """Each node of the old main graph with that of the new one, equal but for the constants that they read."""
    for kind in ("input", "output"):
        names = [[v.name for v in getattr(m.graph, kind)] for m in (old, new)]
        if names[0] != names[1]:
            raise InvalidRequestError(f"the {kind}s are {', '.join(names[1])}, not {', '.join(names[0])}", hint=AGAIN)
    for before, after in zip(old.graph.node, new.graph.node, strict=False):
        if (before.op_type, before.domain, len(before.input), list(before.output)) != (
            after.op_type,
            after.domain,
            len(after.input),
            list(after.output),
        ):
            raise _differs(before, f"the other graph has {after.op_type} '{after.name}' there")
        if _attributes(before) != _attributes(after):
            raise _differs(before, "an attribute has another value")
        yield before, after
    if len(old.graph.node) != len(new.graph.node):
        raise InvalidRequestError(f"the graph has {len(new.graph.node)} nodes, not {len(old.graph.node)}", hint=AGAIN)


def _attributes(node: onnx.NodeProto) -> dict[str, bytes]:
    """Attributes by name; what they hold, a body's constants included, has to stay as it is."""
    return {a.name: a.SerializeToString(deterministic=True) for a in node.attribute}


def _differs(node: onnx.NodeProto, how: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"the new weights make another graph: at {node.op_type} '{node.name or node.output[0]}' {how}", hint=AGAIN
    )


def _manifest(old: EngineManifest, output: Path, model: Path, seconds: float) -> EngineManifest:
    proto = load_model(model)
    properties: Mapping[str, str] = {p.key: p.value for p in proto.metadata_props}
    return replace(
        old,
        engine_sha256=sha256_file(output),
        engine_bytes=output.stat().st_size,
        model_files={path.name: sha256_file(path) for path in model_files(model, proto)},
        reference_sha256=properties.get(REFERENCE_KEY, ""),
        seconds=seconds,
        messages=(),
    )
