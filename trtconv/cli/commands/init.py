"""`trtconv init`: a commented config from what the module itself says."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from trtconv.cli.click_options import options_of
from trtconv.cli.command_line import CommandLine
from trtconv.cli.completion import completer
from trtconv.cli.echo import echo
from trtconv.cli.files import FileCommand
from trtconv.core.option import option
from trtconv.core.requests import ModuleSource

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
[[input]]
name = "{name}"
dtype = "float32"
dims = ["N", 3, "H", "W"]   # TODO: an integer, or a name that [dynamic] gives a range
# range = [0.0, 1.0]        # value range of the sample inputs

"""

_TAIL = """\
[dynamic]             # min:opt:max, with %multiple where the network needs it
N = "1:1:8"
H = "224:224:448%32"
W = "224:224:448%32"

[export]
# exporter = "auto"   # auto, dynamo, torchscript
# opset = 18

[build]
# precision = "fp16"  # fp32, fp16, bf16 (default: as the graph is typed)
# backend = "auto"    # auto, tensorrt, tensorrt-rtx
# profiles = ["N=1:1:1 H=224:224:448%32 W=224:224:448%32"]
# workspace = "4GiB"

[check]
rtol = 1e-4
atol = 1e-4
"""


@dataclass(frozen=True)
class InitOptions:
    """What only this command asks."""

    output: Path = field(
        default=Path("trtconv.toml"),
        metadata=option(
            "-o", "--output", help="The file to write.", group="Output", form="path", role="file", shows_default=True
        ),
    )
    force: bool = field(
        default=False, metadata=option("--force", help="Replace an existing file.", group="Output", form="flag")
    )


@click.command("init", cls=FileCommand)
@click.argument("module", shell_complete=completer("factory"))
@options_of(ModuleSource, InitOptions)
def command(module: str, line: CommandLine) -> None:
    """Write a commented trtconv.toml with one input section per parameter of MODULE's forward."""
    from trtconv.cli.assemble import module_source
    from trtconv.core.artifacts import write_text
    from trtconv.core.config import Config
    from trtconv.core.errors import InvalidRequestError

    options = line.of(InitOptions)
    output = options.output
    if output.exists() and not options.force:
        raise InvalidRequestError(f"'{output}' exists", hint="choose another name with -o, or replace it with --force")
    source = module_source(Config(), module, line)
    names = _forward_parameters(source)
    file, colon, factory = module.rpartition(":")
    relative = f"{_relative(Path(file), output.parent)}:{factory}" if colon and file.endswith(".py") else module
    args = "\n".join(f"{k} = {_toml_value(v)}" for k, v in source.args) or "# num_classes = 21"
    text = _HEAD.format(name=output.name, module=relative, args=args)
    text += "".join(_INPUT.format(name=n) for n in names) + _TAIL
    write_text(output, text)
    echo(f"{output}: {len(names)} input(s): {', '.join(names)}; fill in their dims and ranges")


def _forward_parameters(source: Any) -> list[str]:
    from trtconv.export.module.source import load_module

    module = load_module(source)
    parameters = inspect.signature(module.forward).parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_ONLY)
    return [p.name for p in parameters if p.kind in kinds and p.default is inspect.Parameter.empty]


def _relative(path: Path, base: Path) -> str:
    import os

    return str(os.path.relpath(str(path), str(base)))


def _toml_value(value: Any) -> str:
    import json

    return json.dumps(value)
