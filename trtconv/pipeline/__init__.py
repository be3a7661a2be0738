"""`trtconv convert`: the only place that calls all four rooms."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.cuda.driver import probe_cuda
from trtconv.core.artifacts import beside
from trtconv.core.errors import InvalidRequestError, MissingDependencyError, OverBudgetError
from trtconv.core.files.earlier import telling_of_earlier
from trtconv.core.files.output_paths import ENGINE, MODEL, require_replaceable
from trtconv.core.files.set_lock import locked_set
from trtconv.core.precision import FP32
from trtconv.core.processors import seldom_collected
from trtconv.core.progress import Progress, SilentProgress
from trtconv.core.report import CheckReport
from trtconv.core.requests import BuildRequest, CheckRequest, ExportRequest, ModuleSource, RewriteRequest
from trtconv.core.targets import KNOWN_TARGETS, Target
from trtconv.core.text.brief import brief_repr
from trtconv.originals import make_model, original_in_words
from trtconv.pipeline.foreign import FileInterface, against_file, file_reference, is_onnx
from trtconv.pipeline.live_module import module_of
from trtconv.pipeline.report_files import reported_if_it_fails, write_report
from trtconv.pipeline.rule_at_fault import rule_at_fault
from trtconv.pipeline.stages import Stages, naming_what_was_left
from trtconv.pipeline.verdict import keep_if_equal

if TYPE_CHECKING:
    from trtconv.build import BuildResult
    from trtconv.build.cache.store import EngineCache
    from trtconv.check.gate.bench import BenchReport
    from trtconv.check.gate.judge import Gate
    from trtconv.check.repro.cut import Repro
    from trtconv.check.target.report import TargetReport
    from trtconv.core.tolerance import Tolerance
    from trtconv.export import ExportResult
    from trtconv.foreign import ForeignRequest, ForeignResult
    from trtconv.rewrite import RewriteResult
    from trtconv.rewrite.precision.search.fp32_nodes import Fp32Nodes


@dataclass(frozen=True)
class ConvertRequest:
    """The four requests of one conversion; `export` says where the model is from. `lay_out` fills in the paths."""

    export: ExportRequest | ForeignRequest
    rewrite: RewriteRequest
    build: BuildRequest
    check: CheckRequest
    gate: Gate | None = None


@dataclass(frozen=True)
class ConvertResult:
    """What each room returned, and the seconds that it took."""

    export: ExportResult | ForeignResult
    rewrite: RewriteResult
    rewritten: CheckReport
    build: BuildResult
    engine: CheckReport
    report: Path
    seconds: Mapping[str, float] = field(default_factory=dict)
    target: Target | None = None

    __repr__ = brief_repr

    @property
    def passed(self) -> bool:
        """True when the rewritten model equals the original and the engine, where it could run, does too."""
        return self.rewritten.passed and (self.engine.passed or not self.engine.comparisons)


def lay_out(request: ConvertRequest, directory: Path) -> ConvertRequest:
    """The same request with the file names of a conversion into `directory`."""
    model, rewritten, engine = directory / "model.onnx", directory / "model.trt.onnx", directory / "model.engine"
    return ConvertRequest(
        export=dataclasses.replace(request.export, output=model),
        rewrite=dataclasses.replace(request.rewrite, model=model, output=rewritten),
        build=dataclasses.replace(request.build, model=rewritten, output=engine),
        check=dataclasses.replace(request.check, subject=engine, allow_unrunnable=True, sources_known=True),
        gate=request.gate,
    )


@seldom_collected()
def convert(
    request: ConvertRequest, progress: Progress | None = None, *, cache: EngineCache | None = None
) -> ConvertResult:
    """Export, rewrite, build (or take the engine from `cache`) and check.

    Raises AccuracyError when a step changes what the module or the ONNX file computes (the wrong file then has
    `.rejected` after its name), OverBudgetError when the engine exceeds a limit of `request.gate`, UnsupportedError
    when the target lacks a node, OutputBusyError when another process writes there, and what the rooms raise.
    """
    require_possible(request)
    outputs = [r.output for r in (request.export, request.rewrite, request.build)]
    with locked_set(request.build.output), telling_of_earlier(outputs):
        return _convert(request, progress or SilentProgress(), cache)


def _convert(request: ConvertRequest, progress: Progress, cache: EngineCache | None) -> ConvertResult:
    from trtconv.build.cache.lookup import build_cached
    from trtconv.check import check_model
    from trtconv.rewrite import rewrite_model

    original = original_in_words(request.export)
    stages = Stages(progress)
    exported = stages.timed("export", lambda: make_model(request.export, progress))
    rewritten = stages.timed("rewrite", lambda: rewrite_model(request.rewrite, progress))
    if isinstance(request.export, ExportRequest) and request.export.align:
        steps = tuple((n, r.multiple) for n, r in exported.space.dims if r.multiple > 1)
        request = dataclasses.replace(request, build=dataclasses.replace(request.build, multiples=steps))
    # A quantised model fits the user's data; at random inputs it saturates where it never does in use.
    reference = rewritten.reference or exported.reference
    judged = dataclasses.replace(request.check, subject=request.rewrite.output, reference=reference)
    if probe_cuda().gpus:
        # The engine will be compared, with allowances of its own: its power is the one that counts.
        judged = dataclasses.replace(judged, power=0)
    graph = stages.timed("check", lambda: check_model(judged, progress, heat=True))
    engine_request = dataclasses.replace(request.check, reference=reference)
    with reported_if_it_fails(graph, request.build.output):
        page = beside(request.build.output, ".report.html")
        blame = partial(rule_at_fault, request.rewrite, rewritten, judged, progress)
        keep_if_equal(graph, request.rewrite.output, page, original, blame)
        with naming_what_was_left(rewritten):
            built = stages.timed("build", lambda: build_cached(request.build, progress, cache=cache).result)
        engine = stages.timed("check engine", lambda: check_model(engine_request, progress, heat=True))
    if engine.comparisons:
        # Inner tensors were compared in the graph; the engine's report is the one that is kept.
        engine = dataclasses.replace(engine, extras={**graph.extras, **engine.extras})
        report = write_report(engine, request.build.output)
        keep_if_equal(engine, request.build.output, report, original)
    else:
        # Now the engine is there to be shown, with the reason for which it was not run.
        graph = dataclasses.replace(graph, findings=(*graph.findings, *engine.findings))
        report = write_report(graph, request.build.output)
    engine = within_budget(engine, graph, engine_request, request.gate, progress)
    return ConvertResult(exported, rewritten, graph, built, engine, report, stages.seconds, request.rewrite.target)


def require_possible(request: ConvertRequest) -> None:
    """Raise for what the later rooms would refuse whatever the model is: an export may take minutes."""
    from trtconv.build.resolve import require_request as require_build
    from trtconv.rewrite import require_request as require_rewrite

    for room, kind in ((request.export, MODEL), (request.rewrite, MODEL), (request.build, ENGINE)):
        require_replaceable(room.output, kind)
    for name in (n for profile in request.build.profiles for n in profile):
        _ = request.export.space[name]
    require_rewrite(request.rewrite)
    require_build(request.build)


def within_budget(
    engine: CheckReport, graph: CheckReport, request: CheckRequest, gate: Gate | None, progress: Progress
) -> CheckReport:
    """The engine's report with its budgets judged and written; raises OverBudgetError for the first one exceeded.

    Where the engine could not run, what can be judged without running it is judged, in the graph's report.
    """
    if gate is None or not gate.budgets.limits():
        return engine
    from trtconv.check.gate.judge import apply_gate

    judged = apply_gate(engine if engine.comparisons else graph, request, gate, progress)
    write_report(judged, request.subject)
    over = [f for f in judged.errors if f.kind == "budget"]
    if over:
        raise OverBudgetError(over[0].message, hint=over[0].hint, details=[f.message for f in over[1:]])
    return judged if engine.comparisons else engine


def check(
    request: CheckRequest, progress: Progress | None = None, *, gate: Gate | None = None, heat: bool = False
) -> CheckReport:
    """`trtconv check`, with the module itself as the reference when the request names one, and its limits."""
    from trtconv.check import check_model

    progress = progress or SilentProgress()
    if request.against and is_onnx(request.against.spec):
        report = check_model(request, progress, original=against_file(request), heat=heat)
    else:
        runner, outputs = module_of(request) if request.against else (None, None)
        report = check_model(request, progress, module_runner=runner, module_outputs=outputs, heat=heat)
    if gate is None:
        return report
    from trtconv.check.gate.judge import apply_gate

    return apply_gate(report, request, gate, progress)


def check_target(model: Path, target: str, progress: Progress | None = None) -> TargetReport:
    """`trtconv check --target`: will the target take what the rewrite rules make of this graph?"""
    from trtconv.check.target.report import check_target as judge
    from trtconv.core.targets import parse_target
    from trtconv.rewrite import rewrite_model

    def rewriter(source: Path, goal: Target, output: Path) -> list[tuple[str, tuple[str, ...]]]:
        result = rewrite_model(RewriteRequest(source, output, goal, proof=False), SilentProgress())
        return [(e.rule, tuple(n.name for n in e.before)) for e in result.entries]

    return judge(model, parse_target(target), progress, rewriter=rewriter)


def aligned_build(request: BuildRequest, progress: Progress) -> BuildRequest:
    """`trtconv build --align`: the request with its profiles narrowed to sizes at which the graph is defined."""
    from trtconv.build.profiles import plan_profiles
    from trtconv.core.model.file import load_model, signature
    from trtconv.proof.undefined_sizes import required_multiples
    from trtconv.rewrite.alignment.undefined_sizes import undefined_dims

    model = load_model(request.model)
    plan = plan_profiles(request, signature(model))
    multiples = required_multiples(undefined_dims(model, plan.space, plan.inputs))
    chosen = dataclasses.replace(request, multiples=tuple(multiples.items()))
    space = plan_profiles(chosen, signature(model)).space
    progress.note(f"--align: the shape space is {space}" if multiples else "--align had nothing to do")
    return chosen


def find_fp32(
    subject: Path,
    reference: Path | None,
    target: str | None,
    precision: str,
    tolerance: Tolerance | None,
    progress: Progress,
) -> tuple[Path, Fp32Nodes]:
    """`trtconv check --find-fp32`: the FP32 model that was searched, and its nodes that have to stay FP32.

    The model is the exported one beside the subject; the target that of the subject's ledger unless one is given.
    Raises InvalidRequestError when there is no FP32 model or no reference, AccuracyError as `find_fp32_nodes` does.
    """
    from trtconv.check.blame.origins import graph_of
    from trtconv.check.compare.intermediates import exported_beside
    from trtconv.check.compare.precision import recorded_precision
    from trtconv.check.compare.reference_fit import find_reference, require_own_reference
    from trtconv.core.ledger.reading import ledger_of
    from trtconv.core.targets import parse_target
    from trtconv.rewrite.precision.search.fp32_nodes import find_fp32_nodes

    graph = graph_of(subject)
    source = (exported_beside(graph) or graph) if graph is not None else None
    if source is None or recorded_precision(source) != FP32.name:
        raise InvalidRequestError(
            f"there is no FP32 model beside '{subject}'", hint="name the exported model: trtconv check model.onnx"
        )
    require_own_reference(source, reference)
    ledger = None if target else ledger_of(subject)
    chosen = ledger.target if ledger else parse_target(target or installed_target("auto")[0])
    request = RewriteRequest(source, source, chosen, precision=precision)
    return source, find_fp32_nodes(request, find_reference(subject, reference), tolerance, progress)


def default_target(backend: str) -> str:
    """The rewrite target that fits what will build here: the installed backend and its version."""
    from trtconv.backends.select import choose_backend

    capabilities = choose_backend(backend).capabilities()
    if capabilities.name == "tensorrt-rtx":
        return "tensorrt-rtx"
    return f"{capabilities.name}=={capabilities.version}"


# What a graph is rewritten for where nothing is installed that would tell: the newest that needs no flags.
UNTOLD_TARGETS = {"tensorrt-rtx": "tensorrt-rtx"}
UNTOLD_TARGET = "tensorrt==11"


def installed_target(backend: str) -> tuple[str, str]:
    """`default_target`, or a fixed one where no TensorRT is installed; then with a note that says so and lists all."""
    try:
        return default_target(backend), ""
    except MissingDependencyError as error:
        target = UNTOLD_TARGETS.get(backend, UNTOLD_TARGET)
        choices = ", ".join(KNOWN_TARGETS)
        return target, f"{error.message}; the target is {target}; --target chooses another one: {choices}"


def exit_code(report: CheckReport) -> int:
    """See `CheckReport.exit_code`."""
    return report.exit_code


def bench(
    subject: Path,
    source: ModuleSource | None,
    progress: Progress,
    *,
    interface: FileInterface | None = None,
    **options: Any,
) -> BenchReport:
    """`trtconv bench`, beside the module in torch when `source` names one; an ONNX file needs no reference."""
    from trtconv.check.gate.bench import bench_model

    module = None
    if source is not None:
        from trtconv.export.module.source import load_module

        module = load_module(source)
    with file_reference(subject, options.pop("reference", None), interface, options.get("points")) as reference:
        return bench_model(subject, reference=reference, module=module, progress=progress, **options)


def repro(request: CheckRequest, output: Path, **options: Any) -> Repro | None:
    """`trtconv repro`; an ONNX file needs no reference."""
    from trtconv.check.repro.cut import make_repro

    interface = FileInterface(request.inputs, request.space)
    with file_reference(request.subject, request.reference, interface) as reference:
        return make_repro(dataclasses.replace(request, reference=reference), output, **options)
