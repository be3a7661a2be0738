"""A conversion's files as the rooms write them, without a conversion."""

from pathlib import Path

from tests.backends.onnx_models import conv_net
from tests.core.ledger.ledgers import make_entry, make_ledger
from trtconv.backends.tensorrt.manifest import EngineManifest, write_manifest
from trtconv.core.artifacts import write_json
from trtconv.core.files.artifact_set import write_sealed
from trtconv.core.files.digest import sha256_file
from trtconv.core.ledger.writing import write_ledger
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor

COMPARED = [{"output": "y", "point": "min", "passed": True}]


def write_set(folder: Path, plan: bytes = b"a plan", **more) -> Path:
    """Engine, manifest, models, reference, ledger and report that name each other by digest; returns the engine."""
    model, rewritten = conv_net(folder / "model.onnx"), conv_net(folder / "model.trt.onnx", depth=2)
    reference, ledger, engine = (folder / f"model.{s}" for s in ("reference.safetensors", "rewrites.json", "engine"))
    reference.write_bytes(b"reference")
    engine.write_bytes(b"trtf" + bytes(20) + bytes([11, 1, 0, 0]) + bytes(60) + plan)
    write_sealed(folder / "model.onnx.json", {
        "sha256": sha256_file(model), "reference_sha256": sha256_file(reference), "exporter": "dynamo",
        "comparisons": COMPARED, "sources": {"files": {"../src/net.py": "5" * 64}}, "versions": {"torch": "2.13.0"},
    })  # fmt: skip
    write_ledger(ledger, make_ledger(make_entry(), sha256=sha256_file(rewritten)))
    write_json(
        folder / "model.report.json",
        {
            "passed": True,
            "comparisons": COMPARED,
            "runner": "onnxruntime",
            "extras": {"files": {"subject": sha256_file(rewritten), "reference": sha256_file(reference)}},
        },
    )
    spec = parse_tensor("x:float32[N,3,H,W]")
    write_manifest(engine, EngineManifest(
        sha256_file(engine), engine.stat().st_size, {"model.trt.onnx": sha256_file(rewritten)}, "tensorrt", "11.1.0",
        "0.1.0", (spec,), (spec,), parse_space(["N=1:2:4 H=8:8:8 W=8:8:8"]), (), "fp32",
        reference_sha256=sha256_file(reference), ledger_sha256=sha256_file(ledger), **more,
    ))  # fmt: skip
    return engine
