"""`trtconv tune`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trtconv.cli.click_options import options_of
from trtconv.cli.completion import completer
from trtconv.cli.echo import note_teller
from trtconv.cli.options import ConfigOption, JsonOption, ListCommand, OutputOptions
from trtconv.core.option import option
from trtconv.core.requests import BuildRequest, ExportRequest, ModuleSource, RewriteRequest
from trtconv.core.requests.tune import ContractRequest
from trtconv.frontend.command_line import CommandLine

if TYPE_CHECKING:
    from trtconv.frontend.summary import Summary
    from trtconv.tune.room import TuneResult


@dataclass(frozen=True)
class TuneOptions:
    """What only this command asks."""

    output: Path = field(
        default=Path("out"),
        metadata=option(
            "-o",
            "--output",
            help="The directory to write into.",
            group="Output",
            form="path",
            role="folder",
            shows_default=True,
        ),
    )
    repeat: Path | None = field(
        default=None,
        metadata=option(
            "--repeat",
            help="Take the choice of this model.tune.json, judge it again and search nothing.",
            group="Build",
            form="path",
        ),
    )


@click.command("tune", cls=ListCommand)
@click.argument("module", required=False, shell_complete=completer("factory"))
@options_of(
    ModuleSource, ExportRequest, ContractRequest, BuildRequest, RewriteRequest, TuneOptions, ConfigOption, JsonOption,
    OutputOptions, without=("--precision", "--rest", "--keep-fp32", "--align", "--pad-to-multiple"),
)  # fmt: skip
def command(module: str | None, line: CommandLine) -> None:
    """Find the fastest engine for MODULE, or an ONNX file, that keeps the contract; write it with the evidence.

    \b
    trtconv tune net.py:make --input x:float32[N,1,8,8] --dynamic N=1:8:32 \\
        --data digits.npz --metric top1 --max-drop 0.5% --precisions fp16,int8 -o out
    """
    from trtconv.cli.console import ConsoleProgress
    from trtconv.cli.show import show
    from trtconv.frontend.assemble import load_config, tune_request
    from trtconv.tune.room import tune

    options, output = line.of(TuneOptions), line.of(OutputOptions)

    with ConsoleProgress(output.verbosity) as progress:
        config = load_config(line.of(ConfigOption).config)
        note = note_teller(quiet=output.quiet)
        request = replace(tune_request(config, module, options.output, line, note), repeat=options.repeat)
        result = tune(request, progress)
    show(_summary(result), line.of(JsonOption), quiet=output.quiet)


def _summary(result: TuneResult) -> Summary:
    from trtconv.frontend.summary import Summary

    facts, chosen = result.facts, result.facts["chosen"]
    metric, fp32 = facts["contract"]["metric"], facts["baseline"]
    shares = ", ".join(f"{100 * share:.0f}% {name}" for name, share in chosen["shares"].items())
    lines = [
        ("chosen", f"{chosen['name']}: layers with weights {shares or 'none'}"),
        (
            "contract",
            f"{metric} {facts['shipped']['judging']:.4f}, fp32 {fp32['judging']:.4f}: a drop of "
            f"{chosen['drop']:.4f} ± {chosen['scatter']:.4f}, at most {facts['contract']['max_drop']}",
        ),
        ("judged on", f"{facts['data']['parts']['judging']} samples that the search never saw"),
        ("speed", _speed(chosen, fp32, facts["speed"])),
    ]
    left_out = [s for s in facts["sensitivities"] if s["precision"] == chosen["precision"]]
    left_out = sorted((s for s in left_out if s["group"] not in chosen["groups"]), key=lambda s: float(s["decibels"]))
    lines += [("left out", f"{s['group']}: {s['decibels']:.0f} dB alone") for s in left_out[:5]]
    if not facts["complete"]:
        lines.append(("note", "the budget ended the search; a larger set may keep the contract"))
    lines.append(("files", f"{result.folder}/: " + ", ".join(p.name for p in result.files)))
    data = {name: value for name, value in facts.items() if name != "schema"}
    return Summary("tune", tuple(lines), {**data, "files": list(result.files), "notes": list(result.notes)})


def _speed(chosen: dict[str, object], fp32: dict[str, object], text: str) -> str:
    ours, theirs = chosen["seconds"], fp32["seconds"]
    if not isinstance(ours, float) or not isinstance(theirs, float):
        return text
    return f"{1e3 * ours:.3g} ms, fp32 {1e3 * theirs:.3g} ms: {theirs / ours:.2f} times as fast"
