"""Keyword arguments are the command line's options."""

from pathlib import Path

import click
import pytest

from trtconv.api import keywords
from trtconv.api.calls import _CHECK, _CONVERT
from trtconv.api.keywords import command_line
from trtconv.check.reporters.registry import REPORTERS
from trtconv.cli.main import cli
from trtconv.core.config import Config
from trtconv.core.errors import InvalidRequestError
from trtconv.core.requests import BuildRequest, ExportRequest, ModuleSource
from trtconv.frontend.command_line import CommandLine

# Options that say how a command prints, or what a person asks at a terminal.
PRINTING = {"verbose", "quiet", "json", "help", "output"}
OTHER_CALLS = {"layers", "dump", "find_fp32", "heal", "target"}
PARAMETERS = {"input", "dynamic", "against", "module", "subject"}
REPORTS = {reporter.option.name for reporter in REPORTERS}


def options_of(name: str) -> set[str]:
    command = cli.get_command(click.Context(cli), name)
    return {str(p.name) for p in command.params}


def names_of(kind: type) -> set[str]:
    return set(kind.__annotations__)


def test_convert_takes_every_option_of_the_command():
    assert names_of(keywords.ConvertKeywords) == options_of("convert") - PRINTING - PARAMETERS


def test_check_takes_every_option_of_the_command():
    without = PRINTING | PARAMETERS | REPORTS | OTHER_CALLS
    assert names_of(keywords.CheckKeywords) == options_of("check") - without


def test_tune_takes_every_option_of_the_command():
    assert names_of(keywords.TuneKeywords) == options_of("tune") - PRINTING - PARAMETERS


def test_values_become_what_the_command_line_gives():
    line = command_line(
        "convert", _CONVERT,
        {"arg": {"width": 8, "name": "true"}, "opset": 18, "output_names": ["a", "b"], "path": "src", "static": None,
         "no_proof": True, "profile": "N=1:1:1", "keep_fp32": ["n"], "option": {"tf32": True}, "workspace": "1GiB",
         "target": "tensorrt==10", "compute_capability": ["8.6", "8.9"], "rtol": 1e-3, "plugin": [Path("a.so")]},
    )  # fmt: skip
    assert line.values == {
        "arg": ("width=8", 'name="true"'), "opset": 18, "output_names": "a,b", "path": (Path("src"),), "no_proof": True,
        "profile": ("N=1:1:1",), "keep_fp32": ("n",), "option": ("tf32=True",), "workspace": "1GiB",
        "target": "tensorrt==10", "compute_capability": "8.6,8.9", "rtol": 1e-3, "plugin": (Path("a.so"),),
    }  # fmt: skip
    assert isinstance(line, CommandLine)
    source = line.request(ModuleSource, Config(), spec="net.py:Net")
    assert dict(source.args) == {"width": 8, "name": "true"}
    assert source.paths == (Path("src").absolute(),)


@pytest.mark.parametrize(
    ("call", "kinds", "values", "message"),
    [
        ("convert", _CONVERT, {"presicion": "fp16"}, "takes no argument 'presicion'. Did you mean 'precision'"),
        ("check", _CHECK, {"opset": 18}, "trtconv.check takes no argument 'opset'"),
        ("convert", (ExportRequest,), {"opset": "x"}, "opset must be a finite number from 1 to 1000, got x"),
        ("convert", (ExportRequest,), {"opset": 18.5}, "opset must be an integer, got 18.5"),
        ("convert", (ExportRequest,), {"align": "yes"}, "align must be True or False, got 'yes'"),
        ("convert", (BuildRequest,), {"precision": "fp17"}, "precision must be one of"),
        ("convert", (BuildRequest,), {"timing_cache": 3}, "timing_cache must be a path, got 3"),
        ("convert", (BuildRequest,), {"workspace": True}, "workspace must be a text, got True"),
        ("convert", (ModuleSource,), {"arg": {"model": object()}}, "is not a plain value"),
    ],
    ids=lambda v: str(v) if isinstance(v, str) else "",
)
def test_a_wrong_argument_is_one_error(call, kinds, values, message):
    with pytest.raises(InvalidRequestError) as caught:
        command_line(call, kinds, values)
    assert message in str(caught.value)
    assert caught.value.hint
