"""Engines beside torch on one GPU in one run, turn by turn:

    speed/gpu_speed.py FOLDER JSON ENGINE_PYTHON TORCH_PYTHON SECONDS [SECONDS_FOR_AUTOTUNE]

FOLDER/NAME/model.trt.onnx are the examples' graphs for TensorRT 8.6 (benchmarks/speed/gpu_prepare.py --fixed). Two
workers, one Python with TensorRT and one with torch, hold engine and module of a case at the same time; they are asked
in turn, three rounds, so that clocks and neighbours are alike. torch.compile runs before, each case in a process and a
time limit of its own, into torch's own cache on disk. TF32 is on on both sides. Median device time between two events
around one call; inputs are random and lie on the device.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.record import machine, write_result
from benchmarks.speed.sides import ENGINE_MODES, ROOT, TORCH_MODES, TUNED, EngineSide, TorchSide, serve

NAMES = ("refinedet", "hrnet", "text_attention", "style_transfer")
LONG = ("hrnet", "refinedet", "style_transfer", "text_attention")
CASES = tuple((name, batch) for name in NAMES for batch in (1, 8))
ROUNDS = 3


def build(root: Path, name: str, batch: int) -> dict[str, Any]:
    """Build a static engine of one case with trtconv; what it took, or why not."""
    from trtconv.build import build_engine
    from trtconv.core.errors import TrtconvError
    from trtconv.core.requests import BuildRequest
    from trtconv.core.shape_space.space import parse_space

    folder = root / name
    request = BuildRequest(
        folder / "model.trt.onnx",
        folder / f"speed{batch}.engine",
        dynamic=None,
        backend="tensorrt",
        profiles=(parse_space([f"N={batch}"]),),
        timing_cache=root / "speed.cache",
        options=(("tf32", True),),
    )
    start = time.monotonic()
    try:
        build_result = build_engine(request)
    except TrtconvError as error:
        return {"error": [error.message, *error.details[:4]]}
    return {"build_s": round(time.monotonic() - start, 1), "engine_mib": round(build_result.engine_bytes / 2**20, 1)}


class Worker:
    """A process that answers `serve`'s questions; an answer that does not come in time ends it."""

    def __init__(self, python: str, kind: str, root: Path) -> None:
        self.process = subprocess.Popen(
            [python, "-m", __spec__.name, kind, str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(kind),
        )

    def ask(self, *words: Any) -> Any:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(json.dumps(words) + "\n")
            stdin.flush()
        except OSError as error:
            return {"error": f"the worker has ended: {error}"}
        for line in stdout:
            if line.startswith("@"):
                return json.loads(line[1:])
        return {"error": "the worker has ended"}


def environment(kind: str) -> dict[str, str]:
    """The environment of a worker: torch must not see the libraries that stand in for cuBLAS beside TensorRT 8.6."""
    environment = dict(os.environ)
    if kind in ("torch", "compile"):
        environment.pop("LD_LIBRARY_PATH", None)
        environment["PYTHONPATH"] = os.pathsep.join(p for p in (str(ROOT), os.environ.get("TORCH_SITE", "")) if p)
    return environment


def compile_all(python: str, root: Path, tuned: bool, jobs: int, deadline: float) -> dict[str, str]:
    """Fill torch's cache, `jobs` cases at a time; which are ready, and what happened to the others."""
    todo, busy, state = list(CASES), {}, {}
    while todo or busy:
        late = time.monotonic() > deadline
        while todo and len(busy) < jobs and not late:
            case = todo.pop(0)
            command = [python, "-m", __spec__.name, "compile", str(root), case[0], str(case[1]), TUNED if tuned else ""]
            busy[case] = subprocess.Popen(
                command, env=environment("compile"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
            )
        for case, process in list(busy.items()):
            if process.poll() is None and not late:
                continue
            if process.poll() is None:
                process.kill()
            words = (process.communicate()[1] or "").strip().splitlines()[-1:]
            state[f"{case[0]} {case[1]}"] = (
                "ready" if process.returncode == 0 else "out of time" if late else " ".join(words)[:200]
            )
            del busy[case]
        if late:
            state.update({f"{n} {b}": "out of time" for n, b in todo})
            break
        time.sleep(0.2)
    return state


def compile_one(root: Path, name: str, batch: int, mode: str) -> None:
    side = TorchSide(root)
    side.open(name, batch)
    for one_mode in [mode] if mode else ["compile", "compile + CUDA graph"]:
        side.launcher(one_mode)


def measure_case(sides: dict[str, Worker], name: str, batch: int, skipped: tuple[str, ...]) -> dict[str, Any]:
    """All modes of one case, turn by turn; the median over rounds of each round's median."""
    opened = {kind: worker.ask("open", name, batch) for kind, worker in sides.items()}
    turns = [("engine", m) for m in ENGINE_MODES] + [("torch", m) for m in TORCH_MODES if m not in skipped]
    rounds: dict[str, list[Any]] = {}
    failed = {kind: o["error"] for kind, o in opened.items() if "error" in o}
    for _ in range(ROUNDS):
        for kind, mode in turns:
            if mode in failed or kind in failed:
                continue
            answer = sides[kind].ask("run", mode, batch)
            if "error" in answer:
                failed[mode] = answer["error"]
            else:
                rounds.setdefault(mode, []).append(answer)
    for worker in sides.values():
        worker.ask("close")
    medians = {m: statistics.median(r["device"]["median"] for r in rs) * 1e3 for m, rs in rounds.items()}
    best = medians.get(ENGINE_MODES[1]) or medians.get(ENGINE_MODES[0])
    return {
        "name": name,
        "batch": batch,
        "opened": opened,
        "failed": failed,
        "skipped": list(skipped),
        "device_ms": {m: round(v, 4) for m, v in medians.items()},
        "ratio_to_engine_with_graph": {m: round(v / best, 2) for m, v in medians.items()} if best else {},
        "throughput_per_s": {m: round(statistics.median(r["throughput"] for r in rs), 1) for m, rs in rounds.items()},
        "rounds_device_ms": {m: [round(r["device"]["median"] * 1e3, 4) for r in rs] for m, rs in rounds.items()},
        "p99_ms": {m: round(max(r["device"]["p99"] for r in rs) * 1e3, 4) for m, rs in rounds.items()},
    }


def clocks() -> str:
    """Of every GPU of the machine."""
    command = [
        "nvidia-smi",
        "--query-gpu=name,driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw",
        "--format=csv,noheader",
    ]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def main() -> None:
    root, output, engine_python, torch_python, seconds = (*map(Path, sys.argv[1:3]), *sys.argv[3:6])
    start = time.monotonic()
    left = lambda: float(seconds) - (time.monotonic() - start)  # noqa: E731
    data: dict[str, Any] = {**machine("tensorrt", "onnx"), "tf32": True, "rounds": ROUNDS, "rows": []}

    def keep() -> None:
        write_result(output, data)

    # On each GPU that is visible engines are built one after another, while torch compiles on the other cores.
    gpus = [g for g in os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",") if g]
    builds = [
        subprocess.Popen(
            [engine_python, "-m", __spec__.name, "build", str(root), str(index)],
            stderr=subprocess.STDOUT,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": gpu},
        )
        for index, gpu in enumerate(gpus)
    ]
    # The measurement itself is on the first of them.
    os.environ["CUDA_VISIBLE_DEVICES"] = gpus[0]
    data["compiled"] = compile_all(torch_python, root, False, 4, time.monotonic() + 0.35 * left())
    print(f"compiled at {time.monotonic() - start:.0f} s", data["compiled"], flush=True)
    keep()
    # What is not built by then is left out; the measurement takes about 10 s a case.
    while any(b.poll() is None for b in builds) and left() > 20 + 10 * len(CASES):
        time.sleep(0.5)
    for process in builds:
        process.kill()
    print(f"built at {time.monotonic() - start:.0f} s", flush=True)
    data["builds"] = {k: v for f in sorted(root.glob("builds*.json")) for k, v in json.loads(f.read_text()).items()}
    tuning = float(sys.argv[6]) if len(sys.argv) > 6 else 0.0
    data["tuned"] = compile_all(torch_python, root, True, 4, time.monotonic() + tuning) if tuning else {}
    keep()
    sides = {"engine": Worker(engine_python, "engine", root), "torch": Worker(torch_python, "torch", root)}
    for name, batch in CASES:
        case = f"{name} {batch}"
        if left() < 8 or case not in data["builds"]:
            continue
        before = clocks()
        skipped = () if data["tuned"].get(case) == "ready" else (TUNED,)
        row = measure_case(sides, name, batch, skipped) | {"clocks": [before, clocks()]}
        data["rows"].append(row)
        print(f"{time.monotonic() - start:.0f} s", case, row["device_ms"], row["failed"], flush=True)
        keep()
    for worker in sides.values():
        worker.process.kill()


def build_all(root: Path, index: int) -> None:
    """Take one case after another, the long builds first, beside other builders; what is there already is kept."""
    file = root / f"builds{index}.json"
    results = json.loads(file.read_text()) if file.exists() else {}
    for name, batch in sorted(CASES, key=lambda c: (LONG.index(c[0]), -c[1])):
        try:
            (root / name / f"speed{batch}.taken").touch(exist_ok=False)
        except FileExistsError:
            continue
        results[f"{name} {batch}"] = build(root, name, batch)
        print(f"{name} {batch}", results[f"{name} {batch}"], flush=True)
        file.write_text(json.dumps(results))


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build_all(Path(sys.argv[2]), int(sys.argv[3]))
    elif sys.argv[1] == "compile":
        compile_one(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5])
    elif sys.argv[1] in ("engine", "torch"):
        serve(EngineSide(Path(sys.argv[2])) if sys.argv[1] == "engine" else TorchSide(Path(sys.argv[2])))
    else:
        main()
