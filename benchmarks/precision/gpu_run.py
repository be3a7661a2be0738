"""FP32, fp16 and INT8 engines of TensorRT 8.6: ROOT OUT SECONDS [PART ...], of what `gpu_prepare` made in ROOT.

Parts, in the order that they are named: `digits` (the trained networks: metric, latency, layers in INT8), `beside` (the
tests of `tests/gpu` for quantisation, tuning and refitting, and networks quantised in other ways), `speed:KIND:BATCH`
(a large network, fp16 and INT8), `rivals:KIND:KIND...` (trained networks as `rivals` prepared them, INT8 by trtconv
beside nvidia-modelopt's), `tune` (the command line with its exit codes). Nothing begins after SECONDS, and what
runs then is stopped. Each part runs in processes of its own and is written to OUT/gpu_precision.json as soon as it is
there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.precision.cases import CASES, DYNAMIC, ROOT, SPEED, TARGET, VARIANTS
from benchmarks.record import machine, write_result

TESTS = ("tests/gpu/test_quantised.py", "tests/gpu/test_refit.py")
# Builders disturb each other's measurements, and slow each other down.
AT_ONCE = 4


class Record:
    """What was measured so far, in a file that is complete at any moment."""

    def __init__(self, out: Path, seconds: float) -> None:
        self.out, self._deadline = out, time.monotonic() + seconds
        self._lock = threading.Lock()
        self.data: dict[str, Any] = {**machine("tensorrt", "onnx", "onnxruntime", "pycuda"), "started": time.time()}

    @property
    def left(self) -> float:
        return self._deadline - time.monotonic()

    def put(self, part: str, name: str, result: Any) -> None:
        with self._lock:
            self.data.setdefault(part, {})[name] = result
            self.data["seconds"] = round(time.time() - self.data["started"], 1)
            write_result(self.out / "gpu_precision.json", self.data)
        print(f"{self.left:6.0f} s left  {part} {name}: {json.dumps(result)[:300]}", flush=True)

    def run(self, part: str, name: str, command: list[str], needs: float = 20.0, file: Path | None = None) -> None:
        """A child whose result is its exit code, and the JSON in `file` where it writes one."""
        if self.left < needs:
            self.put(part, name, {"skipped": f"{self.left:.0f} s were left"})
            return
        start = time.monotonic()
        facts: dict[str, Any] = {}
        try:
            child = subprocess.run(
                command, capture_output=True, text=True, timeout=max(self.left, 1.0), cwd=ROOT, check=False
            )
            facts["exit_code"], words = child.returncode, child.stdout + child.stderr
        except subprocess.TimeoutExpired as error:
            facts["exit_code"], words = None, f"out of time: {error.stderr!r}"
        facts["took_s"] = round(time.monotonic() - start, 1)
        # What a child that was stopped had written until then counts.
        result = json.loads(file.read_text()) if file is not None and file.exists() else {}
        if facts["exit_code"] != 0 or not result:
            facts["words"] = words[-1800:]
        self.put(part, name, {**facts, **result})

    def job(self, part: str, name: str, work: str, file: Path, *words: str, needs: float = 20.0) -> None:
        """A function of `jobs`, in a process of its own."""
        command = [sys.executable, "-m", "benchmarks.precision.gpu_run", "job", work, *words, str(file)]
        self.run(part, name, command, needs, file)


def digits(record: Record, root: Path, out: Path) -> None:
    """All builds at once, since no tactic matters much there; then the latencies one after the other."""
    kinds = [k for k in CASES if (root / k / "prepared.json").exists()]
    with ThreadPoolExecutor(len(kinds)) as pool:
        for kind in kinds:
            pool.submit(record.job, "digits", kind, "digits", root / kind / "built.json", str(root / kind))
    record.job("digits_latency", "all", "latency", root / "latency.json", str(root))


def beside(record: Record, root: Path, out: Path) -> None:
    """What is not timed, side by side: the tests, and networks quantised in other ways."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for test in TESTS:
            pool.submit(run_tests, record, test, out)
        for kind in VARIANTS:
            pool.submit(record.job, "variants", kind, "variants", root / kind / "variants.json", str(root / kind))


def run_tests(record: Record, test: str, out: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "--tb=short", test]
    record.run("tests", test, [*command, f"--junitxml={out / Path(test).stem}.xml"])


def speed(record: Record, root: Path, out: Path, words: list[str]) -> None:
    """A large network at one batch size, with nothing beside it."""
    kind, batch = words
    file = root / f"{kind}{batch}.json"
    record.job("speed", f"{kind} batch {batch}", "speed", file, str(root / kind), batch, str(out), needs=60)


def tune(record: Record, root: Path, out: Path) -> None:
    """The command line end to end: a contract that can be kept, and one that cannot."""
    start = [sys.executable, "-m", "trtconv", "tune"]
    common = ["--dynamic", DYNAMIC, "--target", TARGET, "--backend", "tensorrt"]
    folder, case = root / "tuned_resnet", CASES["resnet"]
    words = ["--data", case.source, "--metric", case.metric, "--max-drop", "0.5%", "--precisions", "fp16,int8"]
    command = [*start, str(root / "resnet" / "model.onnx"), *common, *words, "-o", str(folder), f"--json={folder}.json"]
    record.run("tune", "resnet", command, 45, Path(f"{folder}.json"))
    record.put("tune", "resnet files", sorted(p.name for p in folder.iterdir()) if folder.exists() else [])
    folder = root / "impossible"
    words = ["--data", str(root / "cnn" / "exact.npz"), "--metric", "psnr", "--max-drop", "1", "--precisions", "int8"]
    command = [*start, str(root / "cnn" / "model.onnx"), *common, *words, "-o", str(folder)]
    record.run("tune", "a contract that cannot be kept ends with 3", command, 30)
    record.put("tune", "and leaves a folder", folder.exists())
    run_tests(record, "tests/gpu/test_tune.py", out)


def rivals(record: Record, root: Path, out: Path, words: list[str]) -> None:
    """INT8 of two placements and fp16: built several at once, timed in turn when all are there."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for kind in words:
            file = root / f"{kind}.rivals.json"
            pool.submit(record.job, "rivals", kind, "rivals", file, str(root / kind), needs=60)
    record.job("rivals_latency", " ".join(words), "rivals_latency", root / "rivals_latency.json", str(root), *words)


PARTS = {"digits": digits, "beside": beside, "tune": tune}
PARTS_WITH_WORDS = {"speed": speed, "rivals": rivals}
ALL = (
    "digits",
    "beside",
    *(f"speed:{kind}:{batch}" for kind, batch in SPEED[:2]),
    "tune",
    *(f"speed:{kind}:{batch}" for kind, batch in SPEED[2:]),
)


def main(root: Path, out: Path, seconds: float, parts: list[str]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    record = Record(out, seconds)
    for part in parts or ALL:
        name, *words = part.split(":")
        if words:
            PARTS_WITH_WORDS[name](record, root, out, words)
        else:
            PARTS[name](record, root, out)
    print("complete" if record.left > 0 else "out of time", flush=True)


def run_job(kind: str, words: list[str]) -> None:
    from benchmarks.precision import jobs
    from trtconv.backends.tensorrt.backend import TensorRTBackend

    # 8.6 takes seconds to start in a process; this is one, and it may crash.
    TensorRTBackend.build = TensorRTBackend.build_here  # type: ignore[method-assign]
    getattr(jobs, kind)(*words)


if __name__ == "__main__":
    os.environ.setdefault("TRTCONV_CACHE", "off")
    if sys.argv[1] == "job":
        run_job(sys.argv[2], sys.argv[3:])
    else:
        main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), float(sys.argv[3]), sys.argv[4:])
