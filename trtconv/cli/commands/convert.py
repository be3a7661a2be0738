"""`trtconv convert`."""

from __future__ import annotations

import click

from trtconv.cli.click_options import options_of
from trtconv.cli.completion import completer
from trtconv.cli.options import ConfigOption, JsonOption, ListCommand, OutputOptions, ToleranceOptions
from trtconv.core.requests import BuildRequest, ExportRequest, ModuleSource, RewriteRequest
from trtconv.frontend.command_line import CommandLine
from trtconv.frontend.options import ConversionOptions


@click.command("convert", cls=ListCommand)
@click.argument("module", required=False, shell_complete=completer("factory"))
@options_of(
    ModuleSource,
    ExportRequest,
    BuildRequest,
    RewriteRequest,
    ToleranceOptions,
    ConversionOptions,
    ConfigOption,
    JsonOption,
    OutputOptions,
)
def command(module: str | None, line: CommandLine) -> None:
    """Export, rewrite, build and check MODULE, or an ONNX file; write all files and manifests into a directory.

    \b
    trtconv convert net.py:make_net -o out --input images:float32[N,3,H,W] \\
        --dynamic N=1:4:16 H=320:640:1280%32 W=320:640:1280%32
    trtconv convert third.onnx -o out --dynamic N=1:1:4
    trtconv convert --config examples/refinedet.toml -o out
    """
    from trtconv.cli.show import show
    from trtconv.core.files.conversion_stamp import read_stamp
    from trtconv.core.files.set_lock import remove_leftovers
    from trtconv.frontend.conversion import ConversionOrder, run_conversion
    from trtconv.frontend.summary import Summary

    options, output, json = line.of(ConversionOptions), line.of(OutputOptions), line.of(JsonOption)
    order = ConversionOrder(module, line)
    stamp, _ = (None, "") if options.force else read_stamp(options.output, order.key)
    if stamp is not None:
        remove_leftovers(options.output / "model.onnx")
        lines = (*stamp.lines, ("unchanged", "nothing changed since; --force converts again"))
        show(Summary("convert", lines, {**stamp.data, "unchanged": True}), json, quiet=output.quiet)
        return
    from trtconv.cli.console import ConsoleProgress

    with ConsoleProgress(output.verbosity) as progress:
        _, summary = run_conversion(order, progress)
    show(summary, json, quiet=output.quiet)
