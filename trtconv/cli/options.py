"""Options that several commands share, and lists of values after one option."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from trtconv.core.shape_space.padding import MODES

F = TypeVar("F", bound=Callable[..., Any])

PAD = "--pad-to-multiple"
_SWALLOWED = {
    # Wider than a range, so that a wrong one is named; but no path, which may be the model.
    "--dynamic": re.compile(r"(?!-)[^/\\=]*=[^/\\]*(?<!\.onnx)(?<!\.pt2)\Z"),
    "--input": re.compile(r"[^-\[\]=][^\[\]=]*\[[^\]]*\](=\S+)?\Z"),
    "--arg": re.compile(r"[A-Za-z_]\w*=.*\Z"),
}


class ListCommand(click.Command):
    """A command in which `--dynamic A=1:2:4 B=8` means `--dynamic A=1:2:4 --dynamic B=8`.

    A bare `--dynamic` (as `build` takes it) becomes an empty value. Words that do not look like a value of the
    option end the list, so that a path after it stays an argument.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Spread the lists, then parse as usual."""
        return super().parse_args(ctx, spread_lists(args))


def spread_lists(args: list[str]) -> list[str]:
    """Give every value its own option."""
    result: list[str] = []
    index = 0
    while index < len(args):
        word = args[index]
        index += 1
        pattern = _SWALLOWED.get(word)
        if word == PAD and (index == len(args) or args[index] not in MODES):
            result.append(f"{PAD}=auto")
            continue
        if pattern is None:
            result.append(word)
            continue
        start = index
        while index < len(args) and pattern.match(args[index]):
            result += [f"{word}={args[index]}"]
            index += 1
        if index == start:
            if word == "--dynamic":
                result.append("--dynamic=")
            elif index < len(args):
                result += [word, args[index]]
                index += 1
            else:
                result.append(word)
    return result


def compose(*options: Callable[[F], F]) -> Callable[[F], F]:
    """One decorator out of several, listed in the order in which `--help` shows them."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


FILE = click.Path(path_type=Path)

output_options = compose(
    click.option("-v", "--verbose", count=True, help="Show notes and the tools' own messages."),
    click.option("-q", "--quiet", is_flag=True, help="Print errors only."),
)
json_flag = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on stdout.")
config_option = click.option("--config", type=FILE, help="A trtconv.toml; options given here win over it.")

module_options = compose(
    click.option("--arg", "args", multiple=True, metavar="KEY=VALUE", help="Keyword argument of the factory."),
    click.option("--weights", type=FILE, help="Safetensors file, or a state dict (loaded with weights_only)."),
    click.option("--sample", metavar="FILE.py:FUNCTION", help="Makes inputs that random values would not make valid."),
    click.option("--seed", type=int, help="Seed of the factory's weights and of the sample values (default 0)."),
)
shape_options = compose(
    click.option(
        "--input", "inputs", multiple=True, metavar="NAME:DTYPE[D0,...]", help="An input; dims: integers or names."
    ),
    click.option("--dynamic", multiple=True, metavar="NAME=MIN:OPT:MAX[%MULTIPLE]", help="The range of a named dim."),
)
export_options = compose(
    click.option("--exporter", type=click.Choice(["auto", "dynamo", "torchscript"]), help="Default auto: by evidence."),
    click.option("--opset", type=int, help="ONNX opset (default: the exporter's best for the target)."),
)
align_option = click.option("--align", is_flag=True, help="Narrow ranges to the multiples at which all is defined.")
pad_option = click.option(
    PAD, type=click.Choice(MODES), metavar="[MODE]",
    help="Pad inputs to such multiples and cut outputs back. MODE: auto, reflect, edge, zero.",
)  # fmt: skip
tolerance_options = compose(
    click.option("--rtol", type=float, help="Relative tolerance (default: the noise floor)."),
    click.option("--atol", type=float, help="Absolute tolerance (default: the noise floor)."),
)
rewrite_options = compose(
    click.option("--target", metavar="TARGET", help="tensorrt==8.6, tensorrt==10, tensorrt==11 or tensorrt-rtx."),
    click.option("--only", multiple=True, metavar="RULE", help="Apply only this rule (repeatable)."),
    click.option("--skip", multiple=True, metavar="RULE", help="Leave this rule out (repeatable)."),
    click.option("--rules", "rule_files", multiple=True, type=FILE, help="A Python file with rules of your own."),
    click.option("--plugins", metavar="auto|never|NAME,...", help="Use plugin nodes where they pay (default never)."),
    click.option("--keep-fp32", multiple=True, metavar="NODE", help="With a half precision: this node stays FP32."),
    click.option("--no-proof", is_flag=True, help="Skip the numeric proof of each rewrite."),
)
build_options = compose(
    click.option("--profile", "profiles", multiple=True, metavar='"N=1:1:1 H=..."', help="A profile (repeatable)."),
    click.option("--backend", type=click.Choice(["auto", "tensorrt", "tensorrt-rtx"]), help="What builds the engine."),
    click.option("--precision", type=click.Choice(["fp32", "fp16", "bf16"]), help="Default: as the graph is."),
    click.option("--workspace", metavar="SIZE", help="Limit of scratch memory, e.g. 4GiB."),
    click.option("--timing-cache", type=FILE, help="Timing cache to read and update."),
    click.option("--opt-level", type=click.IntRange(0, 5), help="Builder optimization level."),
    click.option("--compute-capability", metavar="8.6,8.9,...", help="GPUs to build for (tensorrt-rtx)."),
    click.option("--plugin", "plugin_libraries", multiple=True, type=FILE, help="A plugin library to load."),
    click.option("--option", "build_options", multiple=True, metavar="KEY=VALUE", help="tf32, refit and others."),
)  # fmt: skip


def verbosity(verbose: int, quiet: bool) -> int:
    """-1 quiet, 0 normal, 1 and more verbose."""
    return -1 if quiet else verbose
