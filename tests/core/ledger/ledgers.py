"""Ledgers as a rewrite writes them, without a rewrite."""

import hashlib
from pathlib import Path

from trtconv.core.artifacts import beside
from trtconv.core.files.artifact_set import FileDigest
from trtconv.core.files.digest import sha256_file
from trtconv.core.ledger.options import recorded_options
from trtconv.core.ledger.records import LedgerEntry, NodeText, Proof, Rejected, RewriteLedger, Skipped
from trtconv.core.ledger.writing import write_ledger
from trtconv.core.model.provenance import Origin
from trtconv.core.report import OutputComparison
from trtconv.core.requests import RewriteRequest
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import parse_target

REQUEST = RewriteRequest(Path("model.onnx"), Path("model.trt.onnx"), parse_target("tensorrt==11"))
COMPARED = OutputComparison("y", "min", True, "", (1, 3), (1, 3), 2e-7, float("inf"), 1.0, 0.0, (0, 1), 1.0, 1.0)
PROOF = Proof(True, "onnxruntime", ("min",), ((("x", (1, 3)),),), (COMPARED,), node="/norm/Div")


def make_node(op="Div", inputs=("x",), outputs=("y",), name="/norm/Div", attributes=""):
    return NodeText(op, name, tuple(inputs), tuple(outputs), attributes)


NORM, PRODUCT = make_node(), make_node("Mul")


def make_entry(rule="l2norm", before=(NORM,), after=(PRODUCT,), proof=PROOF, **more):
    facts = {"why": "a reason", "node": "/norm/Div", "origin": Origin("norm", "net.py:7"), "scope": ""} | more
    return LedgerEntry(rule, before=tuple(before), after=tuple(after), proof=proof, **facts)


def make_ledger(*entries, request=REQUEST, **more):
    """The ledger of these entries, of one when there are none, with one rewrite taken back and one left out."""
    facts = {
        "trtconv": "0.1.0",
        "model": request.model.name,
        "read": (FileDigest("model.onnx", hashlib.sha256(b"").hexdigest()),),
        "target": request.target,
        "options": recorded_options(request),
        "opset": (18, 17),
        "nodes": (8, 9),
        "space": parse_space(["N=1:2:4"]),
        "float64_nodes": (),
        "sha256": "0" * 64,
        "entries": entries or (make_entry(), make_entry(node="/b/Div")),
        "skipped": (Skipped("gelu", "/act/Erf", "another constant", Origin("act", "net.py:9")),),
        "rejected": (Rejected("mish", "/m/Tanh", "it differs", Origin(), Proof(False, "onnxruntime")),),
        "whole": Proof(True, "onnxruntime", comparisons=(COMPARED,)),
        "notes": ("a note",),
    }
    return RewriteLedger(**facts | more)


def write_beside(rewritten: Path, ledger=None, **more) -> Path:
    """A ledger beside a graph that describes this graph; returns its path."""
    path = beside(rewritten, ".rewrites.json")
    write_ledger(path, ledger or make_ledger(**{"sha256": sha256_file(rewritten)} | more))
    return path
