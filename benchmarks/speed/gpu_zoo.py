"""The zoo for TensorRT 8.6: prepare OUT [CASE ...] (with torch), then run OUT JSON (with GPUs).

`prepare` exports and rewrites every case with target tensorrt==8.6; `run` builds each engine and checks it at all
sample points against the module's saved outputs. A case is equal, refused (with the reason), wrong, or was not
exported. A `run` that was stopped goes on with the cases that have no result yet. Cases are spread over the GPUs that
CUDA_VISIBLE_DEVICES names; ZOO_JOBS sets how many processes there are.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.record import machine, write_result
from trtconv.core.model.bodies import walk_nodes

JOBS = int(os.environ.get("ZOO_JOBS", "12"))


def operators(graph: Any) -> list[str]:
    """The ONNX operators of a graph, those of bodies included, each once."""
    return sorted({n.op_type for n in walk_nodes(graph.node) if n.domain in ("", "ai.onnx")})


def prepare_one(work: tuple[str, str]) -> dict[str, Any]:
    name, out = work
    import onnx
    import torch

    from tests.zoo.registry import all_cases
    from tests.zoo.run_case import source_of
    from trtconv.core.errors import TrtconvError
    from trtconv.core.progress import SilentProgress
    from trtconv.core.requests import ExportRequest, RewriteRequest
    from trtconv.core.shape_space.space import parse_space
    from trtconv.core.targets import parse_target
    from trtconv.core.tensors import parse_tensor
    from trtconv.export import export_model
    from trtconv.rewrite import rewrite_model

    torch.set_num_threads(1)
    case = all_cases()[name]
    folder = Path(out) / name.replace("/", "__")
    folder.mkdir(parents=True, exist_ok=True)
    space, specs = parse_space([case.space]), tuple(parse_tensor(t) for t in case.inputs)
    record: dict[str, Any] = {"case": name, "stage": "export", "torch": torch.__version__}
    try:
        export_model(ExportRequest(source_of(name), specs, space, folder / "model.onnx"), SilentProgress())
        record["stage"] = "rewrite"
        rewrite_model(
            RewriteRequest(folder / "model.onnx", folder / "model.trt.onnx", parse_target("tensorrt==8.6")),
            SilentProgress(),
        )
        record["stage"] = "prepared"
        record["operators"] = operators(onnx.load(str(folder / "model.trt.onnx"), load_external_data=False).graph)
    except TrtconvError as error:
        record["reason"] = f"{error.message}"[:300]
    except Exception as error:
        record["reason"] = f"internal: {type(error).__name__}: {error}"[:300]
    (folder / "prepared.json").write_text(json.dumps(record))
    return record


def prepare(out: str, names: list[str]) -> None:
    from tests.zoo.registry import all_cases

    names = names or list(all_cases())
    context = multiprocessing.get_context("spawn")
    with context.Pool(JOBS, maxtasksperchild=20) as pool:
        for count, result in enumerate(pool.imap_unordered(prepare_one, [(n, out) for n in names])):
            print(count, result, flush=True)
    (Path(out) / "done").write_text("done")


def run_one(folder: str) -> dict[str, Any]:
    from trtconv.build import build_engine
    from trtconv.check import check_model
    from trtconv.core.errors import TrtconvError
    from trtconv.core.requests import BuildRequest, CheckRequest
    from trtconv.core.shape_space.space import ShapeSpace

    case_folder = Path(folder)
    data = json.loads((case_folder / "prepared.json").read_text())
    if data["stage"] != "prepared":
        return {**data, "verdict": "not exported" if data["stage"] == "export" else "refused by rewrite"}
    start = time.monotonic()
    try:
        build_result = build_engine(
            BuildRequest(
                case_folder / "model.trt.onnx", case_folder / "model.engine", dynamic=ShapeSpace(), backend="tensorrt"
            )
        )
        reference = case_folder / "model.reference.safetensors"
        report = check_model(CheckRequest(build_result.engine, reference=reference, source_check=False))
    except TrtconvError as error:
        return {
            **data,
            "verdict": "refused by TensorRT",
            "reason": " | ".join([error.message, *error.details[:3]])[:500],
        }
    except Exception as error:
        return {**data, "verdict": "crashed", "reason": f"{type(error).__name__}: {error}"[:300]}
    worst = report.worst
    failed = next((c for c in report.comparisons if not c.passed), None)
    return {
        **data,
        "verdict": "equal" if report.passed else "differs, found by check",
        "points": len({c.point for c in report.comparisons}),
        "max_abs": worst.max_abs if worst else None,
        "max_share": max((c.max_share for c in report.comparisons if c.max_share is not None), default=None),
        "seconds": round(time.monotonic() - start, 1),
        "reason": (
            f"{failed.output} at {failed.point}: {failed.reason}; max_abs {failed.max_abs}"
            if failed
            else "; ".join(f.message for f in report.errors)
        ),
    }


def worker(root: str) -> None:
    """Take one case after another; a case is taken by making its file, so that workers do not meet."""
    from trtconv.backends.tensorrt.backend import TensorRTBackend

    # 8.6 takes seconds to start in a process; here a crash ends this worker, which `run` replaces.
    TensorRTBackend.build = TensorRTBackend.build_here  # type: ignore[method-assign]
    for prepared in sorted(Path(root).glob("*/prepared.json")):
        try:
            (prepared.parent / "taken").touch(exist_ok=False)
        except FileExistsError:
            continue
        (prepared.parent / "result.json").write_text(json.dumps(run_one(str(prepared.parent))))


def run(root: str, output: str) -> None:
    for claim in Path(root).glob("*/taken"):
        if not (claim.parent / "result.json").exists():
            claim.unlink()
    command = [sys.executable, "-m", __spec__.name, "worker", root]
    gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")

    def start(index: int) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": gpus[index % len(gpus)]}
        return subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment)

    cases = len(list(Path(root).glob("*/prepared.json")))
    workers = [start(i) for i in range(JOBS)]
    while any(w.poll() is None for w in workers):
        time.sleep(2)
        collect(root, output)
        for index, process in enumerate(workers):
            claims = len(list(Path(root).glob("*/taken")))
            if process.poll() not in (None, 0) and claims < cases:
                workers[index] = start(index)
    results = collect(root, output)
    for result in results:
        if result["verdict"] != "equal":
            print(result, flush=True)
    print(Counter(str(r["verdict"]) for r in results))


def collect(root: str, output: str) -> list[dict[str, Any]]:
    results = []
    for claim in sorted(Path(root).glob("*/taken")):
        result = claim.parent / "result.json"
        name = claim.parent.name.replace("__", "/")
        text = result.read_text() if result.exists() else ""
        results.append(
            json.loads(text) if text else {"case": name, "verdict": "crashed", "reason": "the process ended"}
        )
    write(results, output)
    return results


def write(results: list[dict[str, Any]], output: str) -> None:
    counts = Counter(str(r["verdict"]) for r in results)
    reached = sum(n for v, n in counts.items() if v != "not exported")
    torches = sorted({str(r.pop("torch")) for r in results if "torch" in r})
    data = {
        **machine("tensorrt", "onnx", "onnxruntime"),
        "exported_with_torch": torches,
        "counts": dict(sorted(counts.items())),
        "exported": reached,
        "equal_share_of_exported": round(counts["equal"] / reached, 4) if reached else None,
        "cases": sorted(results, key=lambda r: str(r["case"])),
    }
    write_result(Path(output), data)


if __name__ == "__main__":
    if sys.argv[1] == "prepare":
        prepare(sys.argv[2], sys.argv[3:])
    elif sys.argv[1] == "worker":
        worker(sys.argv[2])
    else:
        run(sys.argv[2], sys.argv[3])
