"""`trtconv check`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trtconv.check.reporters.registry import REPORTERS
from trtconv.cli.click_options import options_of
from trtconv.cli.echo import echo
from trtconv.cli.files import FILE
from trtconv.cli.options import ConfigOption, GateOptions, OutputOptions, StrangersListCommand, ToleranceOptions
from trtconv.core.option import option
from trtconv.core.precision import FP16, FP32
from trtconv.core.requests import CheckRequest, ModuleSource
from trtconv.frontend.command_line import CommandLine

if TYPE_CHECKING:
    from trtconv.core.progress import Progress
    from trtconv.core.report import CheckReport


@dataclass(frozen=True)
class CheckOptions:
    """What only this command asks."""

    against: str | None = field(
        default=None,
        metadata=option(
            "--against",
            help="Compare with this module, or ONNX file, instead of a reference file.",
            group="Model",
            example="--against net.py:make_net",
            metavar="MODULE",
            completes="factory",
        ),
    )
    layers: bool = field(
        default=False,
        metadata=option(
            "--layers",
            help="Compare inner tensors of an engine too; names the first that differs.",
            group="Check",
            form="flag",
        ),
    )
    dump: Path | None = field(
        default=None,
        metadata=option(
            "--dump",
            help="With --layers: write all inner tensors of the engine into this folder.",
            group="Check",
            form="path",
            role="folder",
        ),
    )
    find_fp32: bool = field(
        default=False,
        metadata=option(
            "--find-fp32",
            help="Find the nodes that have to stay FP32 for half precision to be right.",
            group="Check",
            form="flag",
        ),
    )
    heal: Path | None = field(
        default=None,
        metadata=option(
            "--heal",
            help="Cure an engine that is wrong although its graph is right; write the cured files into this folder.",
            group="Check",
            form="path",
            role="folder",
        ),
    )
    target: str | None = field(
        default=None,
        metadata=option(
            "--target",
            help="Static: will this TensorRT take the graph? Nothing is compared.",
            group="Check",
            metavar="TARGET",
            completes="target",
        ),
    )


@dataclass(frozen=True)
class Destinations:
    """Where reports go, by the name of their format; `-` is stdout."""

    paths: dict[str, Path]

    @classmethod
    def of(cls, line: CommandLine) -> Destinations:
        """The reports that the command line asks for."""
        return cls({r.name: line.option_value(r.option) for r in REPORTERS if line.has(r.option)})

    @property
    def json(self) -> Path | None:
        """Where the JSON goes."""
        return self.paths.get("json")

    @property
    def others(self) -> dict[str, Path]:
        """All but the JSON, whose content is another one for `--target` and `--find-fp32`."""
        return {name: path for name, path in self.paths.items() if name != "json"}

    @property
    def on_stdout(self) -> bool:
        """True where stdout belongs to a report; annotations of GitHub are lines among others."""
        return any(str(path) == "-" for name, path in self.paths.items() if name != "github")


@click.command("check", cls=StrangersListCommand)
@click.argument("subject", type=FILE)
@options_of(
    CheckRequest,
    ModuleSource,
    ToleranceOptions,
    GateOptions,
    CheckOptions,
    ConfigOption,
    OutputOptions,
    extra=[r.option for r in REPORTERS],
)
def command(subject: Path, line: CommandLine) -> int:
    """Compare SUBJECT (an ONNX file or an engine) with what its original computed, at every sample point.

    The original is the module or the foreign ONNX file that SUBJECT was converted from, or what --against names."""
    from trtconv.check.reporters import print_report, write_reports
    from trtconv.cli.console import ConsoleProgress, make_console
    from trtconv.core.errors import InvalidRequestError
    from trtconv.frontend.assemble import check_gate, check_request, load_config
    from trtconv.pipeline import check, exit_code

    options, output, reports = line.of(CheckOptions), line.of(OutputOptions), Destinations.of(line)
    if options.target and not options.find_fp32:
        return _check_target(subject, options.target, output, reports)
    if options.find_fp32:
        return _find_fp32(subject, line)
    if (options.layers or options.dump) and subject.suffix == ".onnx":
        raise InvalidRequestError(
            f"--{'layers' if options.layers else 'dump'} looks inside an engine, and '{subject}' is an ONNX file",
            hint="name the engine built from it; where an ONNX file differs is said without an option",
        )
    if options.heal is not None:
        return _heal(subject, options, line)
    config = load_config(line.of(ConfigOption).config)
    request, gate = check_request(config, subject, options.against, line), check_gate(config, line)
    with ConsoleProgress(output.verbosity) as progress:
        progress.stage("check")
        report = check(request, progress, gate=gate, heat="html" in reports.paths)
        layers: tuple[str, ...] = ()
        # An engine that does not run here has no layers to compare; the report says why.
        if (options.layers or options.dump) and (report.comparisons or report.subject_kind != "engine"):
            report, layers = _with_layers(report, request, options.dump, progress)
    write_reports(report, **reports.paths)
    if not output.quiet and not reports.on_stdout:
        print_report(report, make_console())
    if not reports.on_stdout:
        for text in layers:
            echo(text)
    if output.quiet:
        _tell_failure(report)
    return exit_code(report)


def _tell_failure(report: CheckReport) -> None:
    """One line on stderr for a check that failed, which is all that `-q` says of it."""
    from trtconv.check.reporters.problems import problems

    if report.passed:
        return
    first = next(iter(problems(report)), None)
    reason = f": {first.message}" + (f" [{first.location}]" if first.location else "") if first is not None else ""
    echo(f"FAILED  {report.subject}{reason}", err=True)


def _check_target(model: Path, target: str, output: OutputOptions, reports: Destinations) -> int:
    """`--target`: a verdict for each node, in the same reports."""
    from collections import Counter

    from trtconv.check.reporters import write_reports
    from trtconv.cli.console import ConsoleProgress
    from trtconv.cli.show import write_document
    from trtconv.pipeline import check_target

    with ConsoleProgress(output.verbosity) as progress:
        progress.stage("check")
        report = check_target(model, target, progress)
    write_document(reports.json, "target", report.as_dict())
    write_reports(report.as_check_report(), **reports.others)
    if not output.quiet and not reports.on_stdout:
        counts = ", ".join(f"{count} {status}" for status, count in Counter(n.status for n in report.nodes).items())
        rules = sorted({n.rule for n in report.nodes if n.status == "rewritten"})
        nodes = f"{len(report.nodes)} node" + ("s" if len(report.nodes) != 1 else "")
        echo(f"{nodes}: {counts}" + (f" (rules: {', '.join(rules)})" if rules else ""))
        for finding in report.findings:
            source = f"  [{finding.source}]" if finding.source else ""
            echo(f"{finding.level:<8} {finding.message}{source}" + (f" -> {finding.hint}" if finding.hint else ""))
        verdict = "PASSED" if report.passed else "FAILED"
        echo(f"{verdict}  {model} for {report.target}, judged by {report.judged_by}")
    if output.quiet:
        _tell_failure(report.as_check_report())
    return report.exit_code


def _with_layers(
    report: CheckReport, request: CheckRequest, dump: Path | None, progress: Progress
) -> tuple[CheckReport, tuple[str, ...]]:
    """The report with the first layer that differs as its cause, and what `--layers` prints.

    The layers are compared at the first sample point that differs, else at the first of all.
    """
    from trtconv.check.compare.layer_check import check_layers
    from trtconv.check.compare.layers import describe_layers, layer_finding
    from trtconv.check.compare.reference_fit import find_reference

    failed = next((c.point for c in report.comparisons if not c.passed), "")
    differences = check_layers(
        request.subject,
        find_reference(request.subject, request.reference),
        report.tolerance,
        point=failed.split(" ")[0],
        dump=dump,
        plugins=request.plugins,
        progress=progress,
    )
    cause = layer_finding(differences) if failed else None
    findings = (cause, *report.findings) if cause else report.findings
    return replace(report, findings=findings), describe_layers(differences)


def _find_fp32(subject: Path, line: CommandLine) -> int:
    """`--find-fp32`: the nodes for which half precision misses the tolerance, and the options that keep them."""
    import json

    from trtconv.check.compare.precision import recorded_precision
    from trtconv.cli.console import ConsoleProgress
    from trtconv.cli.show import write_document
    from trtconv.frontend.assemble import load_config, tolerance_of
    from trtconv.pipeline import find_fp32

    config = load_config(line.of(ConfigOption).config)
    reports, chosen = Destinations.of(line), tolerance_of(config, line)
    request = line.request(CheckRequest, config, subject=subject, tolerance=chosen)
    recorded = recorded_precision(subject)
    precision = recorded if recorded != FP32.name else FP16.name
    target = line.of(CheckOptions).target or config.rewrite.target
    with ConsoleProgress(line.of(OutputOptions).verbosity) as progress:
        progress.stage("find-fp32")
        source, search = find_fp32(subject, request.reference, target, precision, chosen, progress)
    if write_document(reports.json, "find-fp32", search.as_dict()):
        return 0
    allowed = f"{chosen or 'the noise floor'} and roundings to {precision} at {search.points} sample points"
    runs = f"({search.runs} emulated runs{'' if search.complete else ', not all that were needed'})"
    echo(f"{len(search.nodes)} of {search.half} nodes have to stay FP32 for {precision} within {allowed} {runs}")
    for node in search.nodes:
        echo(f"  {node.name}  {node.op}  {node.origin}".rstrip())
    if search.nodes:
        options = " ".join(f"--keep-fp32 {n.name}" for n in search.nodes)
        echo(f"-> trtconv rewrite {source} --target {search.target} --precision {precision} {options}")
        echo(f"-> [rewrite] keep_fp32 = {json.dumps([n.name for n in search.nodes])}")
    return 0


def _heal(subject: Path, options: CheckOptions, line: CommandLine) -> int:
    """`--heal`: what was tried, what holds, and what it costs."""
    from trtconv.cli.console import ConsoleProgress
    from trtconv.cli.show import write_document
    from trtconv.frontend.assemble import check_request, load_config
    from trtconv.heal import HealRequest, heal_engine

    output, reports = line.of(OutputOptions), Destinations.of(line)
    request = check_request(load_config(line.of(ConfigOption).config), subject, options.against, line)
    with ConsoleProgress(output.verbosity) as progress:
        result = heal_engine(HealRequest(request, options.heal or subject.parent), progress)
    if not write_document(reports.json, "heal", result.as_dict()) and not output.quiet:
        echo(f"wrong     {result.diagnosis.words}")
        for trial in result.trials:
            echo(
                f"{'holds' if trial.holds else 'no':<9} {trial.variant.what}"
                + (f": {trial.reason}" * bool(trial.reason))
            )
        if result.price is not None:
            echo(
                f"price     {1e3 * (result.chosen.seconds or 0.0):.3g} ms, {result.price:.2f} times the wrong engine's"
            )
        for path in result.files:
            echo(f"wrote     {path}")
        if result.repro is not None:
            echo(f"repro     {result.repro}")
    return 0
