"""`trtconv tune`."""

from __future__ import annotations

from dataclasses import replace

import click

from trtconv.cli.click_options import options_of
from trtconv.cli.completion import completer
from trtconv.cli.echo import note_teller
from trtconv.cli.options import ConfigOption, JsonOption, ListCommand, OutputOptions
from trtconv.core.requests import BuildRequest, ExportRequest, ModuleSource, RewriteRequest
from trtconv.core.requests.tune import ContractRequest
from trtconv.frontend.command_line import CommandLine
from trtconv.frontend.options import TuneOptions


@click.command("tune", cls=ListCommand)
@click.argument("module", required=False, shell_complete=completer("factory"))
@options_of(
    ModuleSource,
    ExportRequest,
    ContractRequest,
    BuildRequest,
    RewriteRequest,
    TuneOptions,
    ConfigOption,
    JsonOption,
    OutputOptions,
    without=("--precision", "--rest", "--keep-fp32", "--align", "--pad-to-multiple"),
)
def command(module: str | None, line: CommandLine) -> None:
    """Find the fastest engine for MODULE, or an ONNX file, that keeps the contract; write it with the evidence.

    \b
    trtconv tune net.py:make --input x:float32[N,1,8,8] --dynamic N=1:8:32 \\
        --data digits.npz --metric top1 --max-drop 0.5% --precisions fp16,int8 -o out
    """
    from trtconv.cli.console import ConsoleProgress
    from trtconv.cli.show import show
    from trtconv.frontend.assemble import load_config, tune_request
    from trtconv.frontend.tune_summary import tune_summary
    from trtconv.tune.room import tune

    options, output = line.of(TuneOptions), line.of(OutputOptions)

    with ConsoleProgress(output.verbosity) as progress:
        config = load_config(line.of(ConfigOption).config)
        note = note_teller(quiet=output.quiet)
        request = replace(tune_request(config, module, options.output, line, note), repeat=options.repeat)
        result = tune(request, progress)
    show(tune_summary(result), line.of(JsonOption), quiet=output.quiet)
