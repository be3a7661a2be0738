"""What a second precision of a target costs: a rewrite of its own, or the types alone from the FP32 rewrite.

Each config is exported once and rewritten for three targets with the commands of a sweep: to fp32, to fp16 from the
export (`own`), and to fp16 from the fp32 rewrite (`typed`). Models and ledgers of the two ways are compared byte by
byte. CPU seconds of whole processes, user and system; one thread, so that they hardly depend on what else runs.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.record import machine, write_result

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "benchmarks/results/sweep_shared_rewrite.json"
CONFIGS = ("hrnet", "refinedet", "text_attention", "style_transfer", "mtcnn_pnet", "stn")
TARGETS = ("tensorrt-rtx", "tensorrt==10", "tensorrt==8.6")
SINGLE = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def run(*words: object) -> float:
    """Run a command of trtconv; the CPU seconds that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "trtconv", *map(str, words)],
        env={**os.environ, **SINGLE, "PYTHONPATH": str(ROOT), "TRTCONV_CACHE": "off"},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(model: Path, target: str, folder: Path, config: Path) -> dict[str, object]:
    """CPU seconds of the three rewrites, how many rules fired, and whether both ways to fp16 wrote the same bytes."""
    words = ("--target", target, "--config", config, "-q")
    base, own, typed = (folder / name / "model.trt.onnx" for name in ("base", "own", "typed"))
    seconds = {
        "fp32": run("rewrite", model, "-o", base, "--precision", "fp32", *words),
        "fp16_own": run("rewrite", model, "-o", own, "--precision", "fp16", *words),
        "fp16_typed": run("rewrite", model, "-o", typed, "--precision", "fp16", "--rewritten", base, *words),
    }
    names = ("model.trt.onnx", "model.rewrites.json")
    same = all((own.parent / name).read_bytes() == (typed.parent / name).read_bytes() for name in names)
    ledgers = [json.loads((path.parent / "model.rewrites.json").read_text()) for path in (base, own)]
    return {
        "cpu_seconds": {name: round(value, 2) for name, value in seconds.items()},
        "rewrites": len(ledgers[0]["entries"]),
        "same_rules_in_both_precisions": ledgers[0]["entries"] == ledgers[1]["entries"],
        "same_bytes": same,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--configs", nargs="+", default=CONFIGS, help="names in examples/")
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    record: dict[str, object] = {**machine("onnx", "onnxruntime", "torch"), "networks": {}}
    for name in arguments.configs:
        config = ROOT / "examples" / f"{name}.toml"
        with tempfile.TemporaryDirectory(prefix="shared-rewrite-") as folder:
            model = Path(folder) / "model.onnx"
            part: dict[str, object] = {"export_cpu_seconds": round(run("export", "--config", config, "-o", model), 2)}
            for target in TARGETS:
                part[target] = measure(model, target, Path(folder) / target, config)
            record["networks"][name] = part
            print(name, json.dumps(part), flush=True)
        write_result(arguments.output, record)


if __name__ == "__main__":
    main()
