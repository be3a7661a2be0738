"""`python -m tests.zoo.baseline`: the zoo through plain `torch.onnx.export(dynamo=True)`, for comparison.

What a user does without trtconv: the default exporter at the opt size, each named dim `Dim.DYNAMIC`, the file given to
TensorRT-RTX as it is. It is judged as trtconv's file is: at the sample points and at the blind sizes of `run_case`,
with the same tolerance and the same allowance for the module's own rounding.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tests.zoo.registry import all_cases
from tests.zoo.run_case import blind_points, source_of
from trtconv.core.errors import TrtconvError
from trtconv.core.shape_space.space import ShapeSpace, parse_space
from trtconv.core.tensors import TensorSpec, parse_tensor
from trtconv.proof.comparison import describe_failure, first_failure
from trtconv.proof.points import sample_inputs, sample_points

FOLDER = Path(__file__).parent
STATUSES = ("through", "wrong", "unrunnable", "refused by TensorRT-RTX", "raises")


@dataclass(frozen=True)
class Plain:
    """`wrong`: other values than the module's, silently. `unrunnable`: ONNX Runtime refuses file or size.

    `at` says where it is wrong or unrunnable; `builds` says whether TensorRT-RTX builds it all the same.
    """

    case: str
    status: str
    at: str = ""
    builds: bool = False
    message: str = ""


def main() -> int:
    """Run the cases and write baseline.json beside this file (with `--write`)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=["*"])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=120, help="seconds for one case")
    parser.add_argument("--write", action="store_true", help="lay the results over those in baseline.json")
    parser.add_argument("--missing", action="store_true", help="only cases that baseline.json does not have")
    arguments = parser.parse_args()
    have = read() if arguments.missing else {}
    names = [n for n in all_cases() if n not in have and any(fnmatch.fnmatch(n, p) for p in arguments.cases)]
    started, result = time.monotonic(), {}
    context = multiprocessing.get_context("spawn")
    # A second recurrent layer cannot be exported in one process, and a plain user's process exports one model.
    with context.Pool(arguments.jobs, maxtasksperchild=8) as pool:
        for plain in pool.imap_unordered(_guarded, [(n, arguments.timeout) for n in names]):
            result[plain.case] = plain
            print(f"{plain.status:24} {plain.case}  {plain.at}  {plain.message[:160]}", flush=True)
            if arguments.write:
                write(result)
    print(summary(result.values()), f"in {time.monotonic() - started:.0f} s")
    return 0


def summary(result: Any) -> str:
    """How many of each, and how many wrong files TensorRT-RTX builds."""
    count = Counter(p.status for p in result)
    builds = sum(p.builds for p in result if p.status == "wrong")
    return ", ".join(f"{count[s]} {s}" for s in STATUSES) + f" ({builds} of the wrong ones build)"


def write(result: dict[str, Plain]) -> None:
    """Lay the results over the committed ones, in the zoo's order; cases that are gone are left out."""
    import torch

    merged = {**read(), **result}
    rows = [p for n in all_cases() if (p := merged.get(n))]
    data = {"torch": torch.__version__, "summary": summary(rows), "cases": [asdict(r) for r in rows]}
    (FOLDER / "baseline.json").write_text(json.dumps(data, indent=1) + "\n")


def read() -> dict[str, Plain]:
    """The committed results."""
    path = FOLDER / "baseline.json"
    return {c["case"]: Plain(**c) for c in json.loads(path.read_text())["cases"]} if path.exists() else {}


def _guarded(work: tuple[str, int]) -> Plain:
    name, timeout = work

    def too_long(*_: Any) -> None:
        raise TimeoutError(f"more than {timeout} s")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(timeout)
    try:
        with tempfile.TemporaryDirectory(prefix="zoo-plain-") as folder:
            return run_plain(name, Path(folder) / "model.onnx")
    except Exception as error:
        return Plain(name, "raises", message=f"{type(error).__name__}: {error}"[:300])
    finally:
        signal.alarm(0)


def run_plain(name: str, model: Path) -> Plain:
    """Export plainly, compare, and build."""
    from trtconv.export.module.runner import ModuleRunner
    from trtconv.export.module.source import load_module

    case = all_cases()[name]
    space, specs = parse_space([case.space]), [parse_tensor(t) for t in case.inputs]
    runner = ModuleRunner(load_module(source_of(name)), specs)
    try:
        plain_export(runner, specs, space, model)
    except Exception as error:
        cause = error.__cause__ or error
        lines = [line for line in str(cause).splitlines() if line.strip()] or [""]
        return Plain(name, "raises", message=f"{type(cause).__name__}: {lines[0]}"[:300])
    result = judge(name, runner, specs, space, model)
    refusal = build(model, specs, space)
    if refusal and result.status == "through":
        return replace(result, status="refused by TensorRT-RTX", message=refusal)
    return replace(result, builds=not refusal)


def plain_export(runner: Any, specs: list[TensorSpec], space: ShapeSpace, model: Path) -> None:
    """`torch.onnx.export` with its defaults, dynamic in each named dim."""
    import torch

    from trtconv.export.module.runner import to_tensor
    from trtconv.proof.points import SamplePoint

    point = SamplePoint("opt", tuple(space.pick("opt").items()))
    tensors = [to_tensor(a) for a in sample_inputs(specs, point).values()]
    free = {n for n, r in space.dims if r.min < r.max}
    moving = [{i: torch.export.Dim.DYNAMIC for i, d in enumerate(s.dims) if d in free} for s in specs]
    positional, keywords = runner.binding.arguments(tensors)
    shapes_positional, shapes = runner.binding.arguments(moving)
    dynamic = tuple(shapes_positional) if positional else shapes
    with open(os.devnull, "w") as nowhere, _stdout(nowhere):
        torch.onnx.export(
            runner.module,
            tuple(positional),
            str(model),
            kwargs=keywords,
            dynamic_shapes=dynamic,
            dynamo=True,
            verbose=False,
        )


class _stdout:
    """torch prints its progress; a table of results should hold nothing else."""

    def __init__(self, to: Any) -> None:
        self.to = to

    def __enter__(self) -> None:
        self.kept, sys.stdout = sys.stdout, self.to

    def __exit__(self, *_: object) -> None:
        sys.stdout = self.kept


def judge(name: str, runner: Any, specs: list[TensorSpec], space: ShapeSpace, model: Path) -> Plain:
    """Compare at the sample points and the blind sizes; the plain file's inputs and outputs go by their order."""
    from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
    from trtconv.proof.proving import compare_at
    from trtconv.proof.reference import ReferenceSample
    from trtconv.proof.sampling import measured_sample

    try:
        onnx = OnnxRuntimeRunner(model, threads=1)
    except TrtconvError as error:
        return Plain(name, "unrunnable", "load", message=error.message)
    names = _input_names(onnx.input_names, specs)
    points = [p for p in sample_points(space, specs) if not p.advisory] + blind_points(name, space)
    for point in points:
        arrays = sample_inputs(specs, point)
        want = runner(arrays)
        try:
            values = onnx({names[n]: a for n, a in arrays.items() if n in names})
        except TrtconvError as error:
            return Plain(name, "unrunnable", str(point), message=error.message)
        actual = dict(zip(want, values.values(), strict=False))
        sample = measured_sample(runner, ReferenceSample(point, arrays, want))
        failed = first_failure(compare_at(lambda _, found=actual: found, sample))
        if failed:
            return Plain(name, "wrong", str(point), message=describe_failure(failed))
    return Plain(name, "through")


def _input_names(result: tuple[str, ...], specs: list[TensorSpec]) -> dict[str, str]:
    """Our names to the file's, which writes `batch.image` as `batch_image` and leaves out nothing."""
    plain = {s.name: s.name.replace(".", "_") for s in specs}
    if all(p in result for p in plain.values()):
        return plain
    return {s.name: f for s, f in zip(specs, result, strict=False)}


def build(model: Path, specs: list[TensorSpec], space: ShapeSpace) -> str:
    """Build with TensorRT-RTX over the ranges; an empty text, or why not."""
    from trtconv.build import build_engine
    from trtconv.core.model.file import load_model, signature
    from trtconv.core.requests import BuildRequest

    try:
        inputs = signature(load_model(model)).inputs
        by_name = _input_names(tuple(i.name for i in inputs), specs)
        listed = {by_name[s.name]: s for s in specs if s.name in by_name}
        laid = tuple(replace(listed[i.name], name=i.name) for i in inputs if i.name in listed and i.names())
        used = {n for s in laid for n in s.names()}
        used_space = ShapeSpace(tuple((n, r) for n, r in space.dims if n in used))
        build_engine(BuildRequest(model, model.with_suffix(".engine"), used_space, inputs=laid, backend="tensorrt-rtx"))
    except TrtconvError as error:
        return "; ".join([error.message, *error.details[:1]]).replace(f"{model.parent}/", "")[:300]
    return ""


if __name__ == "__main__":
    sys.exit(main())
