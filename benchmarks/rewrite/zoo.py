"""The conversion zoo through torch's own exporters and the whole rule pack, for every target, twice.

    python -m benchmarks rewrite.zoo [--exporter torchscript --exporter dynamo:4] [--json FILE]

`dynamo:4` takes every fourth case. `trtconv export` writes tidy graphs; here the rules meet what a user brings who
exported by himself. For each graph and target: every rewrite is proved and the whole graph compared, a second run has
to change nothing, and a second process with another hash seed has to write the same model and the same ledger, to the
byte. Prints what was not so, counts the rewrites that the proof stopped, and exits with 1 when a run was not stable or
crashed.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import onnx

from benchmarks.record import write_result
from trtconv.core.errors import TrtconvError
from trtconv.core.model.file import set_metadata
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import KNOWN_TARGETS, parse_target
from trtconv.core.tensors import parse_tensor
from trtconv.proof.points import SamplePoint, sample_inputs
from trtconv.rewrite import rewrite_model

SECONDS = 40
WHOLE = {True: "equal", False: "DIFFERENT", None: "not run by ONNX Runtime before the rewrite either"}


def export_all(exporter: str, folder: Path, every: int) -> tuple[int, int]:
    """Export every case that the exporter takes; how many it took and how many not."""
    from tests.zoo.registry import all_cases

    def too_long(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, too_long)
    folder.mkdir(parents=True)
    samples = missed = 0
    for name in list(all_cases())[::every]:
        signal.alarm(SECONDS)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                export(name, exporter, folder / f"{name.replace('/', '__')}.onnx")
            samples += 1
        except Exception:
            missed += 1
        finally:
            signal.alarm(0)
    return samples, missed


def export(name: str, exporter: str, path: Path) -> None:
    """One case at the opt sizes with every named dim dynamic, and its shape space recorded as `trtconv export` does."""
    import torch

    from tests.zoo.registry import all_cases
    from tests.zoo.run_case import source_of
    from trtconv.export.module.runner import ModuleRunner, to_tensor
    from trtconv.export.module.source import load_module

    case = all_cases()[name]
    space, specs = parse_space([case.space]), [parse_tensor(t) for t in case.inputs]
    module = ModuleRunner(load_module(source_of(name)), specs).module
    values = sample_inputs(specs, SamplePoint("opt", tuple(space.pick("opt").items())))
    inputs, names = tuple(to_tensor(v) for v in values.values()), [s.name for s in specs]
    axes = [{i: d for i, d in enumerate(s.dims) if isinstance(d, str)} for s in specs]
    temporary = path.with_suffix(".tmp")
    try:
        if exporter == "torchscript":
            torch.onnx.export(
                module, inputs, str(temporary), dynamo=False, opset_version=17, input_names=names,
                dynamic_axes=dict(zip(names, axes, strict=True)), do_constant_folding=False,
            )  # fmt: skip
        else:
            shapes = tuple(dict.fromkeys(a, torch.export.Dim.DYNAMIC) for a in axes)
            torch.onnx.export(
                module, inputs, str(temporary), dynamo=True, input_names=names, dynamic_shapes=shapes, verbose=False,
                external_data=False,
            )  # fmt: skip
        model = onnx.load(str(temporary))
    finally:
        temporary.unlink(missing_ok=True)
    set_metadata(model, "trtconv.space", str(space))
    set_metadata(model, "trtconv.inputs", "\n".join(str(s) for s in specs))
    path.write_bytes(model.SerializeToString())


def judge(model: Path, target: str, again: bool) -> dict[str, object]:
    """Digest of what was written, counts, and what was wrong."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "model.trt.onnx")
        request = RewriteRequest(model, output, parse_target(target))
        try:
            result = rewrite_model(request, SilentProgress())
        except TrtconvError as error:
            return {"digest": error.message, "verdict": "refused", "detail": error.message}
        written = output.read_bytes()
        rows: dict[str, object] = {
            "digest": hashlib.sha256(written + result.ledger.read_bytes()).hexdigest(),
            "verdict": "stable",
            "rules": [e.rule for e in result.entries],
            "rejected": [f"{r.rule}: {r.reason}"[:200] for r in result.rejected],
            "whole": None if result.whole is None else result.whole.passed,
        }
        if again:
            twice = Path(folder, "twice.trt.onnx")
            second = rewrite_model(RewriteRequest(output, twice, parse_target(target)), SilentProgress())
            if second.entries or twice.read_bytes() != written:
                rows |= {"verdict": "UNSTABLE", "detail": f"a second run fires {[e.rule for e in second.entries]}"}
        return rows


def judge_all(folder: Path, again: bool) -> dict[str, dict[str, object]]:
    """Every graph for every target; a crash is kept as a verdict."""
    rows = {}
    for model in sorted(folder.rglob("*.onnx")):
        for target in KNOWN_TARGETS:
            try:
                row = judge(model, target, again)
            except Exception as error:
                row = {"digest": "", "verdict": "CRASHED", "detail": f"{type(error).__name__}: {error}"[:300]}
            rows[f"{model.parent.name}/{model.stem} for {target}"] = row
    return rows


def in_another_process(folder: Path) -> dict[str, dict[str, object]]:
    """The same with another hash seed, the second runs left out."""
    output = folder / "again.json"
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    command = [sys.executable, "-m", __spec__.name, "--judge", str(folder), str(output)]
    subprocess.run(command, check=True, env=environment)
    return dict(json.loads(output.read_text()))


def summary(rows: dict[str, dict[str, object]]) -> dict[str, object]:
    """Counts by target, rules that fired, and the rows that people should look at."""
    by_target: dict[str, collections.Counter[str]] = {t: collections.Counter() for t in KNOWN_TARGETS}
    rules, odd = collections.Counter(), {}
    for name, row in rows.items():
        counts = by_target[name.rsplit(" for ", 1)[1]]
        counts[str(row["verdict"])] += 1
        counts["rewrites"] += len(row.get("rules", ()))
        counts["rewrites that the proof stopped"] += len(row.get("rejected", ()))
        if row.get("rules"):
            counts[f"whole graph {WHOLE[row['whole']]}"] += 1
        rules.update(row.get("rules", ()))
        if row["verdict"] != "stable" or row.get("rejected"):
            odd[name] = row.get("detail") or row.get("rejected")
    return {"targets": by_target, "rules": dict(rules.most_common()), "look_at": odd}


def main() -> int:
    if sys.argv[1:2] == ["--judge"]:
        Path(sys.argv[3]).write_text(json.dumps(judge_all(Path(sys.argv[2]), again=False)))
        return 0
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--exporter", action="append", help="torchscript or dynamo, with :N every N-th case")
    words.add_argument("--json", type=Path)
    args = words.parse_args()
    from importlib.metadata import version

    result: dict[str, object] = {
        "date": time.strftime("%Y-%m-%d"),
        "command": "python -m benchmarks rewrite.zoo " + " ".join(sys.argv[1:]),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("torch", "onnx", "onnxruntime", "numpy")},
        "cpus": os.cpu_count(),
    }
    with tempfile.TemporaryDirectory() as text:
        folder, exported = Path(text), {}
        for choice in args.exporter or ("torchscript", "dynamo"):
            exporter, _, every = choice.partition(":")
            sample_count, missed = export_all(exporter, folder / exporter, int(every or 1))
            exported[exporter] = {"exported": sample_count, "refused by the exporter": missed}
        rows, others = judge_all(folder, again=True), in_another_process(folder)
    for name, row in rows.items():
        if row["digest"] != others[name]["digest"] and row["verdict"] != "CRASHED":
            row |= {"verdict": "UNSTABLE", "detail": "another process wrote other bytes"}
    result |= {"exporters": exported, **summary(rows)}
    print(json.dumps({k: v for k, v in result.items() if k != "rules"}, indent=1))
    if args.json:
        write_result(args.json, result)
    return int(any(row["verdict"] in ("UNSTABLE", "CRASHED") for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
