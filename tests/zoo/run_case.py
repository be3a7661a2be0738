"""Taking one zoo case through the rooms, and judging the result at sizes that export did not look at."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.zoo.registry import all_cases
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import TrtconvError
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import BuildRequest, ExportRequest, ModuleSource, RewriteRequest
from trtconv.core.shape_space.fixed_rows import recorded_fixed_rows
from trtconv.core.shape_space.space import ShapeSpace, parse_space
from trtconv.core.targets import parse_target
from trtconv.core.tensors import parse_tensor
from trtconv.core.tolerance import Tolerance
from trtconv.proof.allowance import allowances_without_floor
from trtconv.proof.comparison import compare_outputs, describe_failure, first_failure
from trtconv.proof.points import SamplePoint, sample_inputs

STAGES = ("export", "rewrite", "build")
BLIND_SIZES = 4
# Nothing that is nearer than this needs a measurement of the module's own noise.
LIMITS = Tolerance(rtol=1e-6, atol=1e-7)


@dataclass(frozen=True)
class Outcome:
    """What became of a case. `stage` is the last one that went well; `status` is `through`, `refused` or `wrong`.

    `refused` means that trtconv said no with an error (kept in `message`); `wrong` means that it said nothing and the
    model differs from the module at a size that it did not look at.
    """

    case: str
    status: str
    stage: str = ""
    exporter: str = ""
    rules: tuple[str, ...] = ()
    message: str = ""
    seconds: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def run_case(name: str, stages: tuple[str, ...] = STAGES) -> Outcome:
    """Export, rewrite and build a case, as far as `stages` goes, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="zoo-") as folder:
        return _run(name, stages, Path(folder))


def _run(name: str, stages: tuple[str, ...], folder: Path) -> Outcome:
    case = all_cases()[name]
    space, specs = parse_space([case.space]), tuple(parse_tensor(t) for t in case.inputs)
    seconds: dict[str, float] = {}
    used: dict[str, Any] = {"stage": "", "exporter": "", "rules": ()}

    def step(stage: str, work: Callable[[], Any]) -> Any:
        started = time.monotonic()
        try:
            return work()
        finally:
            seconds[stage] = round(time.monotonic() - started, 2)

    def outcome(status: str, message: str = "") -> Outcome:
        return Outcome(name, status, used["stage"], used["exporter"], used["rules"], message, seconds)

    model = folder / "model.onnx"
    try:
        exported = step("export", lambda: _export(source_of(name), specs, space, model))
        used.update(stage="export", exporter=exported.exporter)
        differs = blind_check(name, model, space, case.inputs)
        if differs:
            return outcome("wrong", differs)
        if "rewrite" in stages:
            rewritten = step("rewrite", lambda: _rewrite(model, folder / "model.trt.onnx", case.nms))
            used.update(stage="rewrite", rules=tuple(sorted({e.rule for e in rewritten.entries})))
            model = folder / "model.trt.onnx"
            differs = blind_check(name, model, space, case.inputs)
            if differs:
                return outcome("wrong", differs)
        if "build" in stages:
            step("build", lambda: _build(model, folder / "model.engine", case.precision))
            used.update(stage="build")
    except TrtconvError as error:
        where = f" [{error.where}]" if error.where else ""
        words = "; ".join([error.message, *error.details[:2]]).replace(f"{folder}/", "")
        return outcome("refused", f"{type(error).__name__}: {words}{where}")
    return outcome("through")


def source_of(name: str) -> ModuleSource:
    """How the command line would name a case."""
    return ModuleSource("tests.zoo.registry:make", (("case", name),), base=Path(__file__).parents[2])


def _export(source: ModuleSource, specs: Any, space: ShapeSpace, model: Path) -> Any:
    from trtconv.export import export_model

    return export_model(ExportRequest(source, specs, space, model), SilentProgress())


def _rewrite(model: Path, output: Path, nms: str) -> Any:
    from trtconv.rewrite import rewrite_model

    request = RewriteRequest(model, output, parse_target("tensorrt-rtx"), nms=nms)
    return rewrite_model(request, SilentProgress())


def _build(model: Path, output: Path, precision: str) -> Any:
    from trtconv.build import build_engine

    request = BuildRequest(model, output, dynamic=ShapeSpace(), backend="tensorrt-rtx", precision=precision)
    return build_engine(request, SilentProgress())


def blind_check(name: str, model: Path, space: ShapeSpace, inputs: tuple[str, ...]) -> str:
    """Compare with the module at random sizes; an empty text when all agree, else what differs."""
    from trtconv.export.module.runner import ModuleRunner
    from trtconv.export.module.source import load_module
    from trtconv.proof.proving import compare_at
    from trtconv.proof.reference import ReferenceSample, formed_sample
    from trtconv.proof.sampling import measured_sample

    specs, form = [parse_tensor(t) for t in inputs], recorded_fixed_rows(model)
    module, onnx = ModuleRunner(load_module(source_of(name)), specs), OnnxRuntimeRunner(model)
    run = module if form is None else form.around(module)
    for point in blind_points(name, space):
        arrays = sample_inputs(specs, point)
        want, actual = run(arrays), onnx(arrays)
        failed = first_failure(compare_outputs(str(point), want, actual, allowances_without_floor(want, LIMITS)))
        if failed:
            noise = first_failure(compare_outputs(f"{point}, run again", want, run(arrays)))
            if noise:
                return f"the module differs from itself: {describe_failure(noise)}"
            sample = measured_sample(module, ReferenceSample(point, arrays, module(arrays)))
            failed = first_failure(compare_at(lambda _, found=actual: found, formed_sample(sample, form)))
        if failed:
            return describe_failure(failed)
    return ""


def blind_points(name: str, space: ShapeSpace) -> list[SamplePoint]:
    """Random sizes that depend on the case's name only, so that a failure comes again."""
    chance = random.Random(name)
    return [
        SamplePoint(f"blind-{turn}", tuple((n, chance.choice(list(r.values()))) for n, r in space.dims), seed=77 + turn)
        for turn in range(BLIND_SIZES)
    ]
