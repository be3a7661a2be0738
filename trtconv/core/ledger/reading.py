"""Reading a ledger, which somebody else may have written: its seal, then every field by its type."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trtconv.core.artifacts import beside, read_json
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.artifact_set import MIXED_SET, FileDigest, require_seal, sealed
from trtconv.core.files.digest import sha256_file
from trtconv.core.ledger.options import read_options
from trtconv.core.ledger.records import LedgerEntry, NodeText, Proof, Rejected, RewriteLedger, Skipped
from trtconv.core.ledger.writing import SCHEMA, ledger_data
from trtconv.core.model.provenance import Origin
from trtconv.core.report import OutputComparison
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import parse_target
from trtconv.core.text.fields import Fields

AGAIN = "rewrite the model again"
EDITED = f"{MIXED_SET}; a graph that was edited by hand needs a name of its own"


def read_ledger(path: Path) -> RewriteLedger:
    """The ledger in a file. Raises InvalidRequestError where it is missing, was edited or is damaged."""
    return parse_ledger(read_json(path, "ledger", AGAIN), path)


def parse_ledger(data: Mapping[str, Any], path: Path) -> RewriteLedger:
    """The ledger out of its JSON; `path` is named where it raises InvalidRequestError."""
    if data.get("schema") != SCHEMA:
        raise InvalidRequestError(f"'{path}' is not a ledger of schema {SCHEMA}", hint=AGAIN)
    require_seal(data, path, AGAIN)
    try:
        ledger = _ledger(Fields(dict(data)))
    except (ValueError, InvalidRequestError) as error:
        raise InvalidRequestError(f"'{path}' is damaged: {error}", hint=AGAIN) from error
    # What follows from other fields, as a proof's largest error does, says nothing else than they do.
    if sealed(ledger_data(ledger)) != data:
        raise InvalidRequestError(f"'{path}' is damaged: its fields contradict each other", hint=AGAIN)
    return ledger


def ledger_of(subject: Path, recorded: str = "") -> RewriteLedger | None:
    """The ledger of a rewritten graph or an engine, which lies beside it; None where there is none.

    `recorded` is its SHA-256 where the engine's manifest names one. Raises InvalidRequestError for a ledger that was
    edited, that is not the one recorded, or that describes another graph than the one that is there.
    """
    path, graph = beside(subject, ".rewrites.json"), beside(subject, ".trt.onnx")
    if subject.suffix == ".onnx" and not (graph == subject or graph.exists()):
        graph = subject
    exported = subject.suffix == ".onnx" and graph != subject
    if exported or not path.is_file():
        return None
    ledger = read_ledger(path)
    if graph == subject and ledger.model == subject.name:
        # It tells what became of this file, which lies elsewhere.
        return None
    if recorded and sha256_file(path) != recorded:
        raise InvalidRequestError(f"'{path.name}' belongs to another conversion than '{subject}'", hint=MIXED_SET)
    if graph.is_file() and sha256_file(graph) != ledger.sha256:
        raise InvalidRequestError(f"'{graph.name}' is not the one that '{path.name}' describes", hint=EDITED)
    return ledger


def ledger_digest(model: Path) -> str:
    """SHA-256 of the ledger beside a model that an engine is built from, empty where there is none.

    Raises InvalidRequestError as `ledger_of` does: an engine of an edited graph is not what the ledger proved.
    """
    path = beside(model, ".rewrites.json")
    ledger_of(model)
    return sha256_file(path) if path.is_file() else ""


def _ledger(table: Fields) -> RewriteLedger:
    proofs = tuple(_proof(p) for p in table.tables("proofs"))
    whole = table.optional_table("whole_graph")
    return RewriteLedger(
        trtconv=table.text("trtconv"),
        model=table.text("model"),
        read=tuple(FileDigest(f.text("name"), f.digest("sha256")) for f in table.tables("read")),
        target=parse_target(table.text("target")),
        options=read_options(table.table("options")),
        opset=_pair(table, "opset"),
        nodes=_pair(table, "nodes"),
        space=parse_space([table.text("space")]),
        float64_nodes=table.texts("float64_nodes"),
        sha256=table.digest("sha256"),
        entries=tuple(_entry(e, proofs) for e in table.tables("entries")),
        skipped=tuple(Skipped(*_place(s), _origin(s)) for s in table.tables("skipped")),
        rejected=tuple(_rejected(r) for r in table.tables("rejected")),
        whole=_proof(whole) if whole else None,
        notes=table.texts("notes"),
    )


def _pair(table: Fields, name: str) -> tuple[int, int]:
    before, after = table.wholes(name)
    return before, after


def _entry(table: Fields, proofs: tuple[Proof, ...]) -> LedgerEntry:
    index = table.whole("proof")
    if index >= len(proofs):
        raise ValueError(f"it has no proof {index}")
    return LedgerEntry(
        table.text("rule"),
        table.text("why"),
        table.text("node"),
        _origin(table),
        table.text("scope"),
        tuple(_node(n) for n in table.tables("before")),
        tuple(_node(n) for n in table.tables("after")),
        proofs[index],
        table.text("note"),
    )


def _rejected(table: Fields) -> Rejected:
    proof = table.optional_table("proof")
    return Rejected(*_place(table), _origin(table), _proof(proof) if proof else None)


def _place(table: Fields) -> tuple[str, str, str]:
    return table.text("rule"), table.text("node"), table.text("reason")


def _origin(table: Fields) -> Origin:
    return Origin(table.text("module"), table.text("source"))


def _node(table: Fields) -> NodeText:
    texts = (table.texts("inputs"), table.texts("outputs"))
    return NodeText(table.text("op"), table.text("name"), *texts, table.text("attributes"))


def _proof(table: Fields) -> Proof:
    return Proof(
        table.optional_flag("passed"),
        table.text("runner"),
        table.texts("points"),
        tuple(tuple((name, shape.wholes(name)) for name in shape.names()) for shape in table.tables("shapes")),
        tuple(_comparison(c) for c in table.tables("comparisons")),
        table.text("note"),
        table.text("node"),
        table.text("infinity"),
        table.text("sizes"),
    )


def _comparison(table: Fields) -> OutputComparison:
    return OutputComparison(
        output=table.text("output"),
        point=table.text("point"),
        passed=table.flag("passed"),
        reason=table.text("reason"),
        expected_shape=table.wholes("expected_shape"),
        actual_shape=table.wholes("actual_shape"),
        max_abs=table.optional_number("max_abs"),
        max_rel=table.optional_number("max_rel"),
        cosine=table.optional_number("cosine"),
        mismatched=table.optional_number("mismatched"),
        at=table.wholes("at"),
        expected_at=table.optional_number("expected_at"),
        actual_at=table.optional_number("actual_at"),
        max_scaled=table.optional_number("max_scaled"),
        max_share=table.optional_number("max_share"),
        allowed=table.optional_number("allowed"),
        expected_range=table.numbers("expected_range"),
    )
