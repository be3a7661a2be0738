"""`--rewritten`: the rules and proofs of an earlier rewrite, so that each further precision costs its types alone.

What was rewritten has to be this model, for this target, by this trtconv and with the same options; the ledger of the
earlier rewrite says so by digests. Its entries, proofs and notes become those of the new ledger.
"""

from __future__ import annotations

import filecmp
import os
from pathlib import Path
from typing import TYPE_CHECKING

import trtconv
from trtconv.core.artifacts import beside, require_file
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.artifact_set import FileDigest
from trtconv.core.files.digest import sha256_file
from trtconv.core.ledger.options import recorded_options
from trtconv.core.ledger.reading import read_ledger
from trtconv.core.ledger.records import RewriteLedger
from trtconv.core.model.file import external_files, load_model
from trtconv.core.precision import HALF_NAMES
from trtconv.core.requests import RewriteRequest
from trtconv.core.requests.rewrite import precision_decides_rules
from trtconv.rewrite.engine.points import model_space
from trtconv.rewrite.engine.result import RewrittenGraph

if TYPE_CHECKING:
    import onnx

# Options that the rules do not see.
OF_TYPES = ("precision", "keep_fp32")


def files_read(request: RewriteRequest) -> tuple[FileDigest, ...]:
    """The digests of the files that decide a rewrite: the model without weights on disk, rules and script."""
    script = [Path(request.script.rpartition(":")[0] or request.script)] if request.script else []
    paths = [request.model, *request.rule_files, *script]
    return tuple(FileDigest(path.name, sha256_file(path)) for path in map(Path, paths))


def take_over(request: RewriteRequest, rewritten: Path) -> RewrittenGraph:
    """The graph that an earlier rewrite wrote, with what its ledger says.

    Raises InvalidRequestError where it is no rewrite of the request's model with its options, where it is typed
    already, and where the precision decides which rules fire.
    """
    if precision_decides_rules(request.precision, request.plugins, request.target):
        raise InvalidRequestError(
            f"other rules fire for {request.precision} than for fp32, so '{rewritten}' cannot be taken over",
            hint="leave out --rewritten",
        )
    require_file(rewritten, "rewritten ONNX model")
    ledger = read_ledger(beside(rewritten, ".rewrites.json"))
    reason = _difference(request, rewritten, ledger)
    if reason:
        raise InvalidRequestError(
            f"'{rewritten}' cannot be taken over: {reason}", hint="rewrite the model again, or leave out --rewritten"
        )
    model = load_model(rewritten)
    _require_space(request, model)
    _require_weights(request.model, rewritten, model)
    return RewrittenGraph(
        rewritten,
        model,
        ledger.entries,
        ledger.skipped,
        ledger.rejected,
        ledger.whole,
        ledger.notes,
        ledger.float64_nodes,
        {"opset": ledger.opset[0], "nodes": ledger.nodes[0], "space": ledger.space},
    )


def _difference(request: RewriteRequest, rewritten: Path, ledger: RewriteLedger) -> str:
    """What differs between the earlier rewrite and what the request asks for; empty when nothing does."""
    options, requested = ledger.options, recorded_options(request)
    precision = options["precision"]
    if precision in HALF_NAMES or precision_decides_rules(precision, request.plugins, request.target):
        return f"it is in {precision}; start from one with --precision fp32"
    if ledger.trtconv != trtconv.__version__:
        return f"trtconv {ledger.trtconv} wrote it"
    if ledger.target != request.target:
        return f"it is for {ledger.target}"
    if ledger.sha256 != sha256_file(rewritten):
        return "it was changed after its ledger was written"
    if ledger.read != files_read(request):
        return f"it was made from another '{request.model.name}', or with other rules"
    other = next((n for n in requested if n not in OF_TYPES and options[n] != requested[n]), None)
    return f"its {other} is {options[other]}, not {requested[other]}" if other else ""


def _require_space(request: RewriteRequest, model: onnx.ModelProto) -> None:
    """The ranges of the request have to be those that were recorded."""
    space, _ = model_space(model)
    for name, dim_range in request.space.dims:
        if dict(space.dims).get(name) != dim_range:
            raise InvalidRequestError(
                f"the rewritten model has other ranges than {request.space}: {space}",
                hint="rewrite the model with these ranges first",
            )


def _require_weights(model: Path, rewritten: Path, graph: onnx.ModelProto) -> None:
    """Weights on disk have to be those of the model, beside the one as beside the other."""
    for name in {*external_files(graph)} & {*external_files(load_model(model))}:
        ours, theirs = model.parent / name, rewritten.parent / name
        for path in (ours, theirs):
            require_file(path, "external weights file")
        if not os.path.samefile(ours, theirs) and not filecmp.cmp(ours, theirs, shallow=False):
            raise InvalidRequestError(
                f"'{theirs}' holds other weights than '{ours}'",
                hint="rewrite the model again, or leave out --rewritten",
            )
