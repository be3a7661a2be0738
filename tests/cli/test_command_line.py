"""Options made from the requests' fields, and requests put together from the command line and a config."""

import dataclasses
import importlib
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from trtconv.cli.click_options import options_of
from trtconv.cli.help_groups import GroupedCommand
from trtconv.cli.main import COMMANDS, command_module
from trtconv.core.config import Config, validate_config
from trtconv.core.errors import InvalidRequestError
from trtconv.core.option import GROUPS, described_fields, option
from trtconv.core.requests import BuildRequest, CheckRequest, ExportRequest, ModuleSource, RewriteRequest
from trtconv.core.requests.tune import ContractRequest
from trtconv.core.shape_space.space import ShapeSpace, parse_space
from trtconv.frontend.assemble import build_request, convert_request, export_request, module_source, rewrite_request
from trtconv.frontend.command_line import CommandLine

REQUESTS = (ModuleSource, ExportRequest, RewriteRequest, BuildRequest, CheckRequest, ContractRequest)
# Keys of trtconv.toml that no single option stands for.
KEYS_WITHOUT_OPTION = {
    "model.module": "the argument MODULE",
    "build.dynamic": "build takes --dynamic alone, convert --static",
    "check.rtol": "--rtol, with a why for a looser one",
    "check.atol": "--atol, with a why for a looser one",
    "check.why": "explains a looser tolerance",
    "check.outputs": "a table of tolerances by output",
    "check.budgets": "a table of limits",
    "check.baseline": "a table of ratios; --baseline names the file",
    "path": "the file itself",
}


def line(**values):
    return CommandLine(values)


def config_of(**sections):
    return dataclasses.replace(validate_config(sections, "trtconv.toml"), path=Path("folder/trtconv.toml"))


def config_keys():
    for field in dataclasses.fields(Config):
        section = getattr(Config(), field.name)
        if dataclasses.is_dataclass(section):
            yield from (f"{field.name}.{f.name}" for f in dataclasses.fields(section))
        else:
            yield field.name


def test_every_key_of_the_config_has_an_option_or_a_reason():
    keys = {o.key for kind in REQUESTS for o in described_fields(kind).values() if o.key}
    assert keys | set(KEYS_WITHOUT_OPTION) == set(config_keys())
    assert not keys & set(KEYS_WITHOUT_OPTION)


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda k: k.__name__)
def test_every_option_can_be_made_and_is_silent_when_not_given(kind):
    commands = []

    @click.command(cls=GroupedCommand)
    @options_of(kind)
    def command(line):
        commands.append(line)

    result = CliRunner().invoke(command, [])
    assert result.exit_code == 0, result.output
    assert not [o.flag for o in described_fields(kind).values() if commands[0].has(o)]


@pytest.mark.parametrize("name", ["convert", "export", "rewrite", "build", "check", "bench", "repro"])
def test_help_has_its_options_under_headings_in_the_order_of_the_rooms(name):
    command = importlib.import_module(command_module(name)).command
    text = CliRunner().invoke(command, ["--help"]).output
    headings = re.findall(r"^(\w+), e\.g\. .*:$", text, re.MULTILINE)
    assert headings == [g for g in GROUPS if g in headings]
    assert "Output" in headings
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.opts[-1] in text


def test_no_command_looks_values_up_by_text():
    folder = Path(__file__).parents[2] / "trtconv" / "cli"
    sources = (folder / "commands").rglob("*.py")
    assert not [p.name for p in sources if re.search(r"\*\*values|values\[[\"']|values\.get\([\"']", p.read_text())]
    assert {p.stem for p in (folder / "commands").rglob("*.py")} >= set(COMMANDS)


def test_the_first_description_of_a_flag_wins_and_a_flag_can_be_left_out():
    @click.command(cls=GroupedCommand)
    @options_of(BuildRequest, RewriteRequest, without=("--workspace",))
    def command(line):
        """Nothing."""

    text = CliRunner().invoke(command, ["--help"]).output
    assert "A plugin library to load." in text
    assert "rewrite loads nothing" not in text
    assert "--workspace" not in text


def test_the_command_line_wins_over_the_config():
    config = config_of(build={"opt_level": 2, "workspace": "1GiB", "options": {"tf32": True, "refit": True}})
    request = build_request(
        config, Path("m"), Path("e"), None, line(opt_level=0, option=("tf32=false",), workspace=None)
    )
    assert (request.opt_level, request.workspace) == (0, 1 << 30)
    assert dict(request.options) == {"tf32": "false", "refit": True}
    assert request.isolated


def test_paths_of_the_config_are_seen_from_its_folder():
    config = config_of(build={"plugins": ["a.so"], "timing_cache": "t"}, rewrite={"rules": ["r.py"]})
    build = build_request(config, Path("m"), Path("e"), None, line())
    assert (build.plugins, build.timing_cache) == ((Path("folder/a.so"),), Path("folder/t"))
    assert build_request(config, Path("m"), Path("e"), None, line(plugin=(Path("b.so"),))).plugins == (Path("b.so"),)
    rewrite = rewrite_request(config, Path("m"), Path("o"), line(target="tensorrt==10"))
    assert (rewrite.rule_files, rewrite.plugin_libraries) == ((Path("folder/r.py"),), (Path("folder/a.so"),))


def test_the_paths_of_a_module_are_those_of_the_side_that_names_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = config_of(model={"module": "net.py:f", "weights": "w.pt", "sample": "s.py:g", "args": {"a": 1, "b": 2}})
    source = module_source(config, None, line(arg=("b=[3]", "c=x")))
    assert (source.base, source.weights, source.sample) == (Path("folder"), Path("w.pt"), "s.py:g")
    assert dict(source.args) == {"a": 1, "b": [3], "c": "x"}
    source = module_source(config, "other.py:f", line(sample="t.py:g"))
    assert (source.base, source.weights) == (Path(), Path("folder/w.pt"))
    assert source.sample == str(tmp_path / "t.py:g")


def test_inputs_and_ranges_are_laid_over_those_of_the_config():
    config = config_of(
        model={"module": "net.py:f"},
        dynamic={"N": "1:2:4", "H": 8},
        input=[{"name": "x", "dims": ["N", 3]}, {"name": "m", "dims": ["N", "H"]}],
    )
    request = export_request(config, None, Path("o"), line(input=("x:float16[N,4]", "z[N]"), dynamic=("H=4:8:8", "")))
    assert [str(s) for s in request.inputs] == ["x:float16[N,4]", "m:float32[N,H]", "z:float32[N]"]
    assert request.space == parse_space(["N=1:2:4 H=4:8:8"])
    with pytest.raises(InvalidRequestError, match="'x' is given twice"):
        export_request(config, None, Path("o"), line(input=("x[N]", "x[N]")))


@pytest.mark.parametrize(
    ("export", "options", "expected"),
    [
        ({"align": True}, {}, (True, "")),
        ({"align": True}, {"pad_to_multiple": "edge"}, (False, "edge")),
        ({"pad_to_multiple": "zero"}, {}, (False, "zero")),
        ({"pad_to_multiple": "zero"}, {"align": True}, (True, "")),
    ],
)
def test_align_on_one_side_silences_padding_on_the_other(export, options, expected):
    request = export_request(config_of(model={"module": "a.py:f"}, export=export), None, Path("o"), line(**options))
    assert (request.align, request.pad_to_multiple) == expected


def test_no_proof_is_the_negative_of_a_field():
    assert rewrite_request(Config(), Path("m"), Path("o"), line(target="tensorrt==10")).proof
    assert not rewrite_request(Config(), Path("m"), Path("o"), line(target="tensorrt==10", no_proof=True)).proof
    config = config_of(rewrite={"proof": False, "target": "tensorrt==8.6"})
    assert not rewrite_request(config, Path("m"), Path("o"), line()).proof


def test_a_fallback_is_asked_only_where_neither_side_says_anything(monkeypatch):
    monkeypatch.setattr("trtconv.frontend.assemble.installed_target", lambda backend: ("tensorrt==10.3", ""))
    assert str(rewrite_request(Config(), Path("m"), Path("o"), line()).target) == "tensorrt==10.3"
    monkeypatch.setattr("trtconv.frontend.assemble.installed_target", lambda backend: pytest.fail("asked"))
    assert str(rewrite_request(Config(), Path("m"), Path("o"), line(target="tensorrt==8.6")).target) == "tensorrt==8.6"


def test_a_bad_value_of_the_config_is_an_error_too():
    with pytest.raises(InvalidRequestError, match="unknown target 'tensort'"):
        rewrite_request(config_of(rewrite={"target": "tensort"}), Path("m"), Path("o"), line())
    with pytest.raises(InvalidRequestError, match=r"trtconv\.toml: model\.seed must be a finite number from 0"):
        module_source(config_of(model={"module": "a.py:f", "seed": -1}), None, line())


@dataclasses.dataclass(frozen=True)
class Own:
    count: int = dataclasses.field(
        default=3, metadata=option("--count", help="How many.", group="Build", form="integer", bounds=(0, 9))
    )


def test_a_zero_is_given_too():
    assert CommandLine({"count": 0}).of(Own).count == 0
    assert CommandLine({"count": None}).of(Own).count == 3


def test_a_build_without_a_range_is_static():
    assert build_request(Config(), Path("m"), Path("e"), None, line()).dynamic is None
    assert build_request(Config(), Path("m"), Path("e"), ShapeSpace(), line()).dynamic == ShapeSpace()


@pytest.mark.parametrize(("options", "folded"), [({"refit": True}, True), ({"refit": "false"}, False), ({}, False)])
def test_norms_are_folded_where_an_engine_is_to_take_new_weights(options, folded):
    config = config_of(model={"module": "third.onnx"}, build={"options": options})
    request = convert_request(config, None, Path("out"), False, line(target="tensorrt==10"))
    assert request.rewrite.fold_norms is folded
