"""`trtconv init`: a commented config from what the module itself says."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trtconv.cli.click_options import options_of
from trtconv.cli.completion import completer
from trtconv.cli.echo import echo
from trtconv.cli.files import FileCommand
from trtconv.cli.options import JsonOption
from trtconv.core.option import option
from trtconv.core.precision import FP16, TYPED_NAMES
from trtconv.core.requests import ModuleSource
from trtconv.frontend.command_line import CommandLine

if TYPE_CHECKING:
    from trtconv.export.signature.likely_inputs import LikelyInput
    from trtconv.frontend.starting_inputs import StartingInputs

_HEAD = """\
# What `trtconv convert --config {name} -o out` does. Options on the command line win over this file.

[model]
module = "{module}"   # file.py:factory (relative to this file), package.module:factory, program.pt2 or model.onnx
# weights = "weights.safetensors"
seed = 0

[model.args]          # keyword arguments of the factory
{args}

"""

_INPUT = """\
[[input]]{optional}
name = "{name}"
dtype = "{dtype}"
{dims}
{range}

"""

_TODO_DIMS = '# dims = ["N", 10]        # TODO: nothing tells the shape of this input; a name gets a range in [dynamic]'
_TODO_CHECK = "   # check: an integer, or a name that [dynamic] gives a range"
_RAN = "   # forward ran with these; a name has its range in [dynamic]"
_RANGE = "# range = [0.0, 1.0]        # value range of the sample inputs"
_RANGES = {"N": "1:1:8", "T": "1:16:128", "H": "224:224:448%32", "W": "224:224:448%32"}

_TAIL = """\
[dynamic]             # {note}; with %multiple where the network needs it
{ranges}

[export]
# exporter = "auto"   # auto, dynamo, torchscript
# opset = 18

[build]
# precision = "{half}"  # {precisions} (default: as the graph is typed)
# backend = "auto"    # auto, tensorrt, tensorrt-rtx
# profiles = ["{profile}"]
# workspace = "4GiB"

[check]
# rtol = 1e-4         # limits of your own; default: the noise floor of the module
# atol = 1e-4
"""


@dataclass(frozen=True)
class InitOptions:
    """What only this command asks."""

    output: Path = field(
        default=Path("trtconv.toml"),
        metadata=option(
            "-o",
            "--output",
            help="The file to write.",
            group="Output",
            example="-o trtconv.toml",
            form="path",
            role="file",
            shows_default=True,
        ),
    )
    force: bool = field(
        default=False, metadata=option("--force", help="Replace an existing file.", group="Output", form="flag")
    )


@click.command("init", cls=FileCommand)
@click.argument("module", shell_complete=completer("factory"))
@options_of(ModuleSource, InitOptions, JsonOption)
def command(module: str, line: CommandLine) -> None:
    """Write a commented trtconv.toml with one input section per tensor that MODULE's forward, or an ONNX file, takes.

    Which inputs forward takes is learnt by running it: dims, dtypes, and ranges at which it ran.
    """
    from trtconv.cli.console import ConsoleProgress
    from trtconv.cli.show import write_document
    from trtconv.core.artifacts import write_text
    from trtconv.core.config import Config
    from trtconv.core.errors import InvalidRequestError
    from trtconv.frontend.assemble import module_source
    from trtconv.frontend.starting_inputs import starting_inputs

    options = line.of(InitOptions)
    output = options.output
    if output.exists() and not options.force:
        raise InvalidRequestError(f"'{output}' exists", hint="choose another name with -o, or replace it with --force")
    source = module_source(Config(), module, line)
    json = line.of(JsonOption).file
    with ConsoleProgress(0 if json is None else -1) as progress:
        progress.stage("init")
        progress.phase("running forward with inputs that it may take")
        start = starting_inputs(source)
    file, colon, factory = module.rpartition(":") if not module.endswith((".onnx", ".pt2")) else (module, "", "")
    is_file = file.endswith((".py", ".onnx", ".pt2"))
    relative = f"{_relative(Path(file), output.parent)}{colon}{factory}" if is_file else module
    args = "\n".join(f"{k} = {_toml_value(v)}" for k, v in source.args) or "# num_classes = 21"
    text = _HEAD.format(name=output.name, module=relative, args=args)
    text += "".join(_section(i, start) for i in start.inputs) + _tail(start)
    write_text(output, text)
    if not write_document(json, "init", {"config": output, **vars(start)}):
        _show(output, module, start)


def _show(output: Path, module: str, start: StartingInputs) -> None:
    left_out = len(start.inputs) - len(start.required)
    optional = f" ({left_out} optional, commented out)" if left_out else ""
    names = ", ".join(i.name for i in start.required) or "none"
    echo(f"{output}: {len(start.required)} input(s): {names}{optional}")
    if start.ran:
        for likely in start.required:
            echo(f"  {_spec_text(likely)}")
        for path in start.any_length:
            echo(f"  '{path}' is a list of any length: write as many [[input]] as you serve, {path}.0, {path}.1, ...")
        echo(f"  {_ranges_text(start)}; widen them to what you serve, then: trtconv convert --config {output} -o out")
        return
    unsure = [i.name for i in start.required if i.dims is None]
    todo = f"fill in the dims of {', '.join(unsure)}" if unsure else "correct the dims, dtypes and ranges"
    if start.problem:
        echo(f"forward ran with no inputs that were tried; it came furthest with {start.problem}", err=True)
    if start.where:
        echo(f"  at {start.where}", err=True)
    if start.required:
        echo(f"  -> {todo} in {output}, or type: trtconv export {module} {start.options}", err=True)


def _spec_text(likely: LikelyInput) -> str:
    values = "" if likely.value_range is None else f"={likely.value_range[0]}:{likely.value_range[1]}"
    return f"{likely.name}:{likely.dtype}[{','.join(map(str, likely.dims or ()))}]{values}"


def _ranges_text(start: StartingInputs) -> str:
    listed = " ".join(f"{n}={r}" for n, r in start.ranges.items())
    return f"forward ran with these at {listed}" if listed else "forward ran with these"


def _section(likely: LikelyInput, start: StartingInputs) -> str:
    dims, values = _TODO_DIMS, _RANGE
    if likely.dims is not None:
        dims = f"dims = {json.dumps(list(likely.dims))}{_RAN if start.ran and not likely.optional else _TODO_CHECK}"
    if likely.value_range is not None:
        values = f"range = {json.dumps(list(likely.value_range))}   # value range of the sample inputs, inclusive"
    optional = "   # forward also works without it" if likely.optional else ""
    text = _INPUT.format(optional=optional, name=likely.name, dtype=likely.dtype, dims=dims, range=values)
    if likely.optional:
        text = "".join(f"# {line}" if line.strip() else line for line in text.splitlines(keepends=True))
    return text


def _tail(start: StartingInputs) -> str:
    """The other sections, with a range for every dim that an input names; [dynamic] takes no others."""
    used = dict.fromkeys(d for i in start.required for d in i.dims or () if isinstance(d, str))
    ranges = {n: start.ranges.get(n, _RANGES.get(n, "1:8:64")) for n in used}
    listed = "\n".join(f'{n} = "{r}"' for n, r in ranges.items()) or '# N = "1:1:8"'
    profile = " ".join(f"{n}={'1:1:1' if n == 'N' else r}" for n, r in ranges.items()) or "N=1:1:1"
    note = "sizes at which forward ran: widen them to what you serve" if start.ran else "min:opt:max"
    return _TAIL.format(note=note, ranges=listed, profile=profile, half=FP16.name, precisions=", ".join(TYPED_NAMES))


def _relative(path: Path, base: Path) -> str:
    import os

    return str(os.path.relpath(str(path), str(base)))


def _toml_value(value: Any) -> str:
    return json.dumps(value)
