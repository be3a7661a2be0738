"""`trtconv init`: a commented config from what the module itself says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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

_HEAD = """\
# What `trtconv convert --config {name} -o out` does. Options on the command line win over this file.

[model]
module = "{module}"   # file.py:factory (relative to this file), package.module:factory, or program.pt2
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
_RANGE = "# range = [0.0, 1.0]        # value range of the sample inputs"
_RANGES = {"N": "1:1:8", "T": "1:16:128", "H": "224:224:448%32", "W": "224:224:448%32"}

_TAIL = """\
[dynamic]             # min:opt:max, with %multiple where the network needs it
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
    """Write a commented trtconv.toml with one input section per parameter of MODULE's forward."""
    from trtconv.cli.show import write_document
    from trtconv.core.artifacts import write_text
    from trtconv.core.config import Config
    from trtconv.core.errors import InvalidRequestError
    from trtconv.frontend.assemble import module_source

    options = line.of(InitOptions)
    output = options.output
    if output.exists() and not options.force:
        raise InvalidRequestError(f"'{output}' exists", hint="choose another name with -o, or replace it with --force")
    source = module_source(Config(), module, line)
    inputs, recorded = _inputs(source)
    file, colon, factory = module.rpartition(":")
    relative = f"{_relative(Path(file), output.parent)}:{factory}" if colon and file.endswith(".py") else module
    args = "\n".join(f"{k} = {_toml_value(v)}" for k, v in source.args) or "# num_classes = 21"
    text = _HEAD.format(name=output.name, module=relative, args=args)
    text += "".join(_section(i) for i in inputs) + _tail(inputs, recorded)
    write_text(output, text)
    if write_document(line.of(JsonOption).file, "init", {"config": output, "inputs": inputs}):
        return
    active = [i for i in inputs if not i.optional]
    names = ", ".join(i.name for i in active)
    unsure = [i.name for i in active if i.dims is None]
    todo = f"fill in the dims of {', '.join(unsure)}" if unsure else "check their dims and ranges"
    left_out = f" ({len(inputs) - len(active)} optional, commented out)" if len(inputs) > len(active) else ""
    echo(f"{output}: {len(active)} input(s): {names or 'none'}{left_out}; {todo}")


def _inputs(source: ModuleSource) -> tuple[tuple[LikelyInput, ...], dict[str, str]]:
    """The inputs and the ranges of their dims: what an exported program says, else what the module makes likely."""
    from trtconv.export.module.source import load_module
    from trtconv.export.signature.likely_inputs import likely_inputs

    if source.spec.endswith(".pt2"):
        from trtconv.export.module.source import require_torch
        from trtconv.export.signature.likely_inputs import LikelyInput
        from trtconv.export.signature.program_inputs import program_inputs

        require_torch()
        specs, space = program_inputs(source.base / source.spec)
        return tuple(LikelyInput(s.name, s.dtype.name, s.dims) for s in specs), {n: str(space[n]) for n in space}
    return likely_inputs(load_module(source)), {}


def _section(likely: LikelyInput) -> str:
    dims, values = _TODO_DIMS, _RANGE
    if likely.dims is not None:
        dims = f"dims = {json.dumps(list(likely.dims))}{_TODO_CHECK}"
    if likely.value_range is not None:
        values = f"range = {json.dumps(list(likely.value_range))}   # value range of the sample inputs, inclusive"
    optional = "   # forward also works without it" if likely.optional else ""
    text = _INPUT.format(optional=optional, name=likely.name, dtype=likely.dtype, dims=dims, range=values)
    if likely.optional:
        text = "".join(f"# {line}" if line.strip() else line for line in text.splitlines(keepends=True))
    return text


def _tail(inputs: Sequence[LikelyInput], recorded: Mapping[str, str]) -> str:
    """The other sections, with a range for every dim that an input names; [dynamic] takes no others."""
    used = dict.fromkeys(d for i in inputs if not i.optional for d in i.dims or () if isinstance(d, str))
    ranges = {n: recorded.get(n, _RANGES.get(n, "1:8:64")) for n in used}
    listed = "\n".join(f'{n} = "{r}"' for n, r in ranges.items()) or '# N = "1:1:8"'
    profile = " ".join(f"{n}={'1:1:1' if n == 'N' else r}" for n, r in ranges.items()) or "N=1:1:1"
    return _TAIL.format(ranges=listed, profile=profile, half=FP16.name, precisions=", ".join(TYPED_NAMES))


def _relative(path: Path, base: Path) -> str:
    import os

    return str(os.path.relpath(str(path), str(base)))


def _toml_value(value: Any) -> str:
    return json.dumps(value)
