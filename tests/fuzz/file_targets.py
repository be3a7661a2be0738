"""Targets that take a file: manifests, references, ledgers, baselines, stamps, cache entries, engines, archives."""

from __future__ import annotations

import functools
import io
import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.core.ledger.ledgers import make_ledger
from tests.fuzz.strategies import changed_bytes, changed_json, json_bytes
from tests.fuzz.target import Finding, Target
from trtconv.backends.tensorrt.manifest import EngineManifest, parse_engine_manifest, write_manifest
from trtconv.backends.tensorrt.plan_header import read_plan_header
from trtconv.backends.tensorrt.timing_cache import CacheKey, read_cache
from trtconv.build.cache.store import EngineCache
from trtconv.build.cache.store.entry import RECORD
from trtconv.build.inspection import engine_facts, raw_engine_facts
from trtconv.check.gate.baseline import read_baseline
from trtconv.check.reporters.html.page_rewrites import rejected_groups, rewrite_groups
from trtconv.core.artifacts import beside, manifest_path, read_json
from trtconv.core.files.artifact_set import sealed
from trtconv.core.files.conversion_stamp import NAME, SCHEMA, environment_key, read_stamp
from trtconv.core.files.digest import sha256_file
from trtconv.core.ledger.facts import rewrite_facts
from trtconv.core.ledger.options import same_rewrite
from trtconv.core.ledger.reading import ledger_of, read_ledger
from trtconv.core.ledger.writing import ledger_data, write_ledger
from trtconv.core.report import SCHEMA as REPORT_SCHEMA
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.core.trust.attestation import statement
from trtconv.core.trust.signed_set import read_set
from trtconv.frontend.documents import plain
from trtconv.plugins.libraries.user_library import read_record, record_path
from trtconv.proof.points import SamplePoint
from trtconv.proof.reference import ReferenceInfo, ReferenceSample, read_samples, write_reference
from trtconv.tune.evidence import read_chosen
from trtconv.tune.measure import MetricScore
from trtconv.tune.state import SCHEMA as STATE_SCHEMA
from trtconv.tune.state import SearchState

CHOICE = {"chosen": {"name": "fp16", "candidate": {
    "precision": "fp16", "groups": ["a", "b"], "rest": "fp32", "rest_fp32": ["c"]}}}  # fmt: skip
STATE = {"schema": STATE_SCHEMA, "key": {"model": "a"}, "measured": {
    "search/a": {"value": 0.5, "decibels": 40.0, "folds": [0.5, 0.4]}}}  # fmt: skip
PARTS = {"model": {"m.onnx": "a" * 64}, "precision": "fp32", "backend": "tensorrt 11.1"}
STAMP = {
    "schema": SCHEMA, "command": {"a": 1}, "environment": {}, "read": {"/tmp/a": {"size": 1, "mtime_ns": 2}},
    "written": {"model.onnx": {"size": 0, "mtime_ns": 1}}, "set": {"model": ["model.onnx", "a" * 64]},
    "lines": [["a", "b"]], "data": {}, "sources": {},
}  # fmt: skip
REPORT = {
    "kind": "check",
    "schema": REPORT_SCHEMA,
    "environment": {"gpu": "x"},
    "extras": {"measured": {"latency_ms": {"value": 1.0, "runs": [1.0, 1.1]}}},
    "comparisons": [{"output": "y", "point": "min", "passed": True, "max_scaled": 0.1}],
}
ENGINE = b"trtf" + bytes(20) + bytes([11, 1, 0, 0]) + bytes(100)


@functools.cache
def manifest_json() -> dict[str, Any]:
    """A manifest as it is written."""
    spec = parse_tensor("x:float32[N,3]")
    manifest = EngineManifest(
        "a" * 64, 128, {"m.onnx": "b" * 64}, "tensorrt", "11.1.0", "0.1.0", (spec,), (spec,), parse_space(["N=1:2:4"]),
        ({"x": ((1, 3), (2, 3), (4, 3))},), "fp32", {"tf32": True}, ("9.0",), {"p.so": "c" * 64}, {"FP32": 3},
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        return read_json(write_manifest(Path(folder) / "m.engine", manifest))


def _manifest(data: bytes, folder: Path) -> None:
    """An edited manifest is refused by its seal; one that was sealed anew is read field by field."""
    path = folder / "m.engine.json"
    path.write_bytes(data)
    value = read_json(path, "engine manifest")
    manifest = parse_engine_manifest(value, path)
    if value != manifest_json():
        raise Finding("an edited manifest was accepted")
    str(manifest)


def _sealed_manifest(value: Any, folder: Path) -> None:
    """One that was sealed anew is read field by field, and what it then says is told."""
    if not isinstance(value, dict):
        return
    engine = folder / "m.engine"
    engine.write_bytes(ENGINE)
    facts = {"engine_sha256": sha256_file(engine), "engine_bytes": len(ENGINE)}
    text = json.dumps(sealed({**value, **facts}))
    manifest_path(engine).write_bytes(text.encode("utf-8", "surrogatepass"))
    engine_facts(engine)
    json.dumps(plain(raw_engine_facts(engine)), allow_nan=False)
    statement(read_set(engine), "0.1.0")


def _tune_choice(data: bytes, folder: Path) -> None:
    path = folder / "m.tune.json"
    path.write_bytes(data)
    str(read_chosen(path))


def _search_state(value: Any, folder: Path) -> None:
    """What cannot be read is measured again; what can is a measurement."""
    path = folder / "state.json"
    path.write_text(json.dumps(value))
    state = SearchState(path, STATE["key"])
    for name in value.get("measured", ()) if state.resumed else ():
        earlier = state.get(name)
        if earlier is not None:
            MetricScore(earlier["value"], earlier["decibels"], tuple(earlier["folds"])).value + 0.0


@functools.cache
def ledger_json() -> dict[str, Any]:
    """A ledger as it is written, with whatever it may hold."""
    with tempfile.TemporaryDirectory() as folder:
        write_ledger(Path(folder) / "l.json", make_ledger())
        return read_json(Path(folder) / "l.json")


def _ledger(data: bytes, folder: Path) -> None:
    """An edited ledger is refused by its seal."""
    path = folder / "m.rewrites.json"
    path.write_bytes(data)
    read_ledger(path)
    if read_json(path) != ledger_json():
        raise Finding("an edited ledger was accepted")


def _sealed_ledger(value: Any, folder: Path) -> None:
    """One that was sealed anew is read field by field, and all that reads it does with what it then says."""
    if not isinstance(value, dict):
        return
    graph = folder / "m.trt.onnx"
    path = beside(graph, ".rewrites.json")
    graph.write_bytes(b"")
    text = json.dumps(sealed({**value, "sha256": sha256_file(graph)}))
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    ledger = ledger_of(graph)
    if ledger is None or sealed(ledger_data(ledger)) != read_json(path):
        raise Finding("a ledger that is not written as it is read")
    rewrite_facts(graph)
    rewrite_groups(ledger.entries)
    rejected_groups(ledger.rejected)
    statement(read_set(graph), "0.1.0")
    same_rewrite(ledger, folder / "m.onnx", graph)


@functools.cache
def reference_bytes() -> bytes:
    """A reference with one point."""
    point = SamplePoint("min", (("N", 1),), "random", 0)
    spec = parse_tensor("x:float32[N,3]")
    info = ReferenceInfo((point,), (spec,), ("y",), parse_space(["N=1:2:4"]))
    sample = ReferenceSample(point, {"x": np.ones((1, 3), np.float32)}, {"y": np.ones((1, 3), np.float32)})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.safetensors"
        write_reference(path, info, [sample])
        return path.read_bytes()


@functools.cache
def reference_header() -> dict[str, Any]:
    """What trtconv itself writes into the safetensors header."""
    size = int.from_bytes(reference_bytes()[:8], "little")
    header = json.loads(reference_bytes()[8 : 8 + size])
    return dict(json.loads(header["__metadata__"]["trtconv"]))


def _with_header(header: bytes) -> bytes:
    data = reference_bytes()
    size = int.from_bytes(data[:8], "little")
    outer = json.loads(data[8 : 8 + size])
    outer["__metadata__"]["trtconv"] = header.decode("utf-8", "replace")
    text = json.dumps(outer).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + data[8 + size :]


def _reference(data: bytes, folder: Path) -> None:
    path = folder / "r.safetensors"
    path.write_bytes(data)
    list(read_samples(path))


def _baseline(data: bytes, folder: Path) -> None:
    path = folder / "b.json"
    path.write_bytes(data)
    read_baseline(path)


def _stamp(value: Any, folder: Path) -> None:
    """An earlier conversion is only believed when all its files are there as it says; here none is."""
    if isinstance(value, dict) and value.get("environment") == {}:
        value = {**value, "environment": environment_key()}
    (folder / NAME).write_text(json.dumps(value))
    stamp, _ = read_stamp(folder, {"a": 1})
    if stamp is not None and not (value.get("read") == {} and value.get("written") == {}):
        raise Finding("a conversion that did not happen was believed")


def _cache_entry(change: tuple[str, bytes], folder: Path) -> None:
    """An entry with one file changed is a miss; an engine that comes out of the cache is what went in."""
    name, data = change
    engine, root = folder / "built.engine", folder / "cache"
    engine.write_bytes(ENGINE)
    cache = EngineCache(root)
    cache.store(PARTS, engine, {"manifest": {"a": 1}})
    (entry,) = [p for p in root.iterdir() if p.is_dir()]
    (entry / name).write_bytes(data)
    lookup = cache.restore(PARTS, folder / "out.engine", lambda entry: "")
    if lookup.entry is not None and (folder / "out.engine").read_bytes() != ENGINE:
        raise Finding("a changed engine came out of the cache")
    cache.survey()
    cache.verify()
    if not root.exists() or not engine.exists():
        raise Finding("more than the entry was removed")


@functools.cache
def cache_files() -> dict[str, bytes]:
    """The files of an entry."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "e").write_bytes(ENGINE)
        EngineCache(folder / "cache").store(PARTS, folder / "e", {"manifest": {"a": 1}})
        (entry,) = [p for p in (folder / "cache").iterdir() if p.is_dir()]
        return {p.name: p.read_bytes() for p in entry.iterdir()}


@st.composite
def cache_changes(draw: st.DrawFn) -> tuple[str, bytes]:
    """A file of an entry and its new content."""
    name = draw(st.sampled_from(sorted(cache_files())))
    content = cache_files()[name]
    if name == RECORD:
        return name, draw(json_bytes(json.loads(content)))
    return name, draw(changed_bytes(st.just(content)))


def _header(data: bytes, folder: Path) -> None:
    path = folder / "m.engine"
    path.write_bytes(data)
    read_plan_header(path)


@functools.cache
def timing_archive() -> bytes:
    """An archive with one member under the key that is asked for."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(CacheKey(()).entry, b"x" * 500)
    return stream.getvalue()


def _timing(data: bytes, folder: Path) -> None:
    path = folder / "timing.cache"
    path.write_bytes(data)
    read_cache(path, CacheKey(()))


def _plugin_record(data: bytes, folder: Path) -> None:
    library = folder / "libown.so"
    library.write_bytes(b"x")
    record_path(library).write_bytes(data)
    read_record(library)


PLUGIN_RECORD = {"sha256": "a" * 64, "plugins": [{"name": "Own", "version": "1"}], "sources": ["a.py"], "target": "x"}
TARGETS = (
    Target("manifest", st.deferred(lambda: json_bytes(manifest_json())), _manifest),
    Target("sealed-manifest", st.deferred(lambda: changed_json(manifest_json())), _sealed_manifest),
    Target("tune-choice", json_bytes(CHOICE), _tune_choice),
    Target("search-state", changed_json(STATE).filter(lambda v: isinstance(v, dict)), _search_state),
    Target("ledger", st.deferred(lambda: json_bytes(ledger_json())), _ledger),
    Target("sealed-ledger", st.deferred(lambda: changed_json(ledger_json())), _sealed_ledger),
    Target("reference", st.deferred(lambda: st.one_of(
        changed_bytes(st.just(reference_bytes())), json_bytes(reference_header()).map(_with_header))), _reference),
    Target("baseline", json_bytes(REPORT), _baseline),
    Target("stamp", changed_json(STAMP), _stamp),
    Target("cache-entry", cache_changes(), _cache_entry),
    Target("plan-header", changed_bytes(st.just(ENGINE)), _header),
    Target("timing-cache", st.deferred(lambda: changed_bytes(st.just(timing_archive()))), _timing),
    Target("plugin-record", json_bytes(PLUGIN_RECORD), _plugin_record),
)  # fmt: skip
