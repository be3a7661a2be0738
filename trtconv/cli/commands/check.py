"""`trtconv check`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtconv.cli.options import (
    FILE,
    ListCommand,
    compose,
    config_option,
    module_options,
    output_options,
    tolerance_options,
    verbosity,
)

if TYPE_CHECKING:
    from trtconv.core.config import Config
    from trtconv.core.progress import Progress
    from trtconv.core.report import CheckReport
    from trtconv.core.requests import CheckRequest
    from trtconv.core.tolerance import Tolerance

report_options = compose(
    click.option("--json", "json_file", type=FILE, help="Write the report as JSON (- for stdout)."),
    click.option("--junit", type=FILE, help="Write JUnit XML."),
    click.option("--sarif", type=FILE, help="Write SARIF 2.1.0."),
    click.option("--html", type=FILE, help="Write one offline HTML file."),
    click.option("--markdown", type=FILE, help="Write Markdown for a pull request."),
    click.option("--github", is_flag=True, help="Write GitHub annotations and the step summary."),
)


@click.command("check", cls=ListCommand)
@click.argument("subject", type=FILE)
@click.option("--reference", type=FILE, help="Reference file (default: the one beside SUBJECT).")
@click.option("--against", metavar="MODULE", help="Compare with this module instead of a reference file.")
@module_options
@tolerance_options
@click.option("--plugin", "plugin_libraries", multiple=True, type=FILE, help="A plugin library that the engine needs.")
@click.option("--layers", is_flag=True, help="Compare inner tensors of an engine too; names the first that differs.")
@click.option("--dump", type=FILE, help="With --layers: write all inner tensors of the engine into this folder.")
@click.option("--find-fp32", is_flag=True, help="Find the nodes that have to stay FP32 for half precision to be right.")
@click.option("--baseline", type=FILE, help="Fail when errors, latency or sizes grew against this earlier report.")
@click.option("--update-baseline", is_flag=True, help="Write the report to --baseline instead of comparing.")
@click.option("--target", metavar="TARGET", help="Static: will this TensorRT take the graph? Nothing is compared.")
@report_options
@config_option
@output_options
def command(subject: Path, reference: Path | None, against: str | None, config: Path | None, **values: Any) -> int:
    """Compare SUBJECT (an ONNX file or an engine) with what the module computed, at every sample point."""
    from trtconv.check.gate.judge import read_gate
    from trtconv.check.reporters import print_report, write_reports
    from trtconv.cli.assemble import load_config, module_source, output_tolerances, tolerance
    from trtconv.cli.console import ConsoleProgress, make_console
    from trtconv.core.requests import CheckRequest
    from trtconv.pipeline import check, exit_code

    if values["target"] and not values["find_fp32"]:
        return _check_target(subject, values)
    settings = load_config(config)
    chosen = tolerance(settings.check, values["rtol"], values["atol"])
    if values["find_fp32"]:
        return _find_fp32(subject, settings, chosen, {**values, "reference": reference})
    request = CheckRequest(
        subject=subject,
        reference=reference,
        against=module_source(settings, against, values) if against else None,
        tolerance=chosen,
        outputs=output_tolerances(settings.check, chosen),
        plugins=tuple(values["plugin_libraries"]),
    )
    if values["update_baseline"] and not values["baseline"]:
        raise click.UsageError("--update-baseline needs --baseline FILE")
    limits = settings.check
    gate = read_gate(limits.budgets, limits.baseline, values["baseline"], update=values["update_baseline"])
    with ConsoleProgress(verbosity(values["verbose"], values["quiet"])) as progress:
        progress.stage("check")
        report = check(request, progress, gate=gate, heat=values["html"] is not None)
        layers: tuple[str, ...] = ()
        # An engine that does not run here has no layers to compare; the report says why.
        if (values["layers"] or values["dump"]) and (report.comparisons or report.subject_kind != "engine"):
            report, layers = _with_layers(report, request, values["dump"], progress)
    json_file = values["json_file"]
    names = ("junit", "sarif", "html", "markdown", "github")
    write_reports(report, json=json_file, **{n: values[n] for n in names if values[n]})
    if not values["quiet"] and str(json_file) != "-":
        print_report(report, make_console())
    if str(json_file) != "-":
        for line in layers:
            click.echo(line)
    return exit_code(report)


def _check_target(model: Path, values: dict[str, Any]) -> int:
    """`--target`: a verdict for each node, in the same reports."""
    import json
    from collections import Counter

    from trtconv.check.reporters import write_reports
    from trtconv.cli.console import ConsoleProgress
    from trtconv.core.artifacts import write_json
    from trtconv.pipeline import check_target

    with ConsoleProgress(verbosity(values["verbose"], values["quiet"])) as progress:
        progress.stage("check")
        report = check_target(model, values["target"], progress)
    json_file = values["json_file"]
    if json_file is not None and str(json_file) == "-":
        click.echo(json.dumps(report.as_dict(), indent=1))
    elif json_file is not None:
        write_json(json_file, report.as_dict())
    told = report.as_check_report()
    names = ("junit", "sarif", "html", "markdown", "github")
    write_reports(told, **{n: values[n] for n in names if values[n]})
    if not values["quiet"] and str(json_file) != "-":
        counts = ", ".join(f"{count} {status}" for status, count in Counter(n.status for n in report.nodes).items())
        rules = sorted({n.rule for n in report.nodes if n.status == "rewritten"})
        named = f"{len(report.nodes)} node" + ("s" if len(report.nodes) != 1 else "")
        click.echo(f"{named}: {counts}" + (f" (rules: {', '.join(rules)})" if rules else ""))
        for finding in report.findings:
            place = f"  [{finding.source}]" if finding.source else ""
            click.echo(f"{finding.level:<8} {finding.message}{place}" + (f" -> {finding.hint}" if finding.hint else ""))
        verdict = "PASSED" if report.passed else "FAILED"
        click.echo(f"{verdict}  {model} for {report.target}, judged by {report.judged_by}")
    return report.exit_code


def _with_layers(
    report: CheckReport, request: CheckRequest, dump: Path | None, progress: Progress
) -> tuple[CheckReport, tuple[str, ...]]:
    """The report with the first layer that differs as its cause, and what `--layers` prints.

    The layers are compared at the first sample point that differs, else at the first of all.
    """
    from dataclasses import replace

    from trtconv.check.compare.layer_check import check_layers
    from trtconv.check.compare.layers import describe_layers, layer_finding
    from trtconv.check.compare.reference_fit import find_reference

    failed = next((c.point for c in report.comparisons if not c.passed), "")
    found = check_layers(
        request.subject, find_reference(request.subject, request.reference), report.tolerance,
        point=failed.split(" ")[0], dump=dump, plugins=request.plugins, progress=progress,
    )  # fmt: skip
    cause = layer_finding(found) if failed else None
    findings = (cause, *report.findings) if cause else report.findings
    return replace(report, findings=findings), describe_layers(found)


def _find_fp32(subject: Path, settings: Config, chosen: Tolerance | None, values: dict[str, Any]) -> int:
    """`--find-fp32`: the nodes for which half precision misses the tolerance, and the options that keep them."""
    import json

    from trtconv.check.compare.precision import recorded_precision
    from trtconv.cli.console import ConsoleProgress
    from trtconv.core.artifacts import write_json
    from trtconv.pipeline import find_fp32

    recorded = recorded_precision(subject)
    precision = recorded if recorded != "fp32" else "fp16"
    with ConsoleProgress(verbosity(values["verbose"], values["quiet"])) as progress:
        progress.stage("find-fp32")
        source, found = find_fp32(
            subject, values["reference"], values["target"] or settings.rewrite.target, precision, chosen, progress
        )
    json_file = values["json_file"]
    if json_file is not None and str(json_file) == "-":
        click.echo(json.dumps(found.as_dict(), indent=1))
        return 0
    if json_file is not None:
        write_json(json_file, found.as_dict())
    allowed = f"{chosen or 'the noise floor'} and roundings to {precision} at {found.points} sample points"
    click.echo(f"{len(found.nodes)} of {found.half} nodes have to stay FP32 for {precision} within {allowed}"
               f" ({found.runs} emulated runs{'' if found.complete else ', not all that were needed'})")  # fmt: skip
    for node in found.nodes:
        click.echo(f"  {node.name}  {node.op}  {node.origin}".rstrip())
    if found.nodes:
        options = " ".join(f"--keep-fp32 {n.name}" for n in found.nodes)
        click.echo(f"-> trtconv rewrite {source} --target {found.target} --precision {precision} {options}")
        click.echo(f"-> [rewrite] keep_fp32 = {json.dumps([n.name for n in found.nodes])}")
    return 0
