"""`--json[=FILE]`: on every command, with a schema for each document."""

import json
from dataclasses import asdict
from pathlib import Path

import click
import jsonschema
import pytest

from tests.check.test_room import double
from tests.check.test_room import folder as model_folder  # noqa: F401 - a fixture
from tests.cli.documents import FILES, ROOT, validated
from trtconv.cli.help_groups import GroupedCommand, join_json
from trtconv.cli.main import COMMANDS, cli
from trtconv.core.model.file import save_model
from trtconv.frontend.documents import document, plain

RTX = ("--dynamic", "--backend", "tensorrt-rtx")


@pytest.fixture
def folder(model_folder, monkeypatch):  # noqa: F811
    monkeypatch.chdir(model_folder)
    monkeypatch.setenv("TRTCONV_CACHE", str(model_folder / "cache"))
    return model_folder


def commands() -> dict[str, click.Command]:
    listed: dict[str, click.Command] = {}

    def walk(name: str, command: click.Command) -> None:
        if isinstance(command, click.Group):
            for inner in command.list_commands(click.Context(command)):
                walk(f"{name} {inner}", command.get_command(click.Context(command), inner))
        else:
            listed[name] = command

    for name in COMMANDS:
        walk(name, cli.get_command(click.Context(cli), name))
    return listed


def test_every_command_takes_json():
    for name, command in commands().items():
        assert isinstance(command, GroupedCommand), name
        assert any("--json" in p.opts for p in command.params), name


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["m.onnx", "--json"], ["m.onnx", "--json=-"]),
        (["--json", "m.onnx"], ["--json=-", "m.onnx"]),
        (["--json", "r.json", "m.onnx"], ["--json=r.json", "m.onnx"]),
        (["--json", "-", "m.onnx"], ["--json=-", "m.onnx"]),
        (["--json", "/dev/null"], ["--json=/dev/null"]),
        (["--json=r", "a.json"], ["--json=r", "a.json"]),
        (["--json=-", "a.json"], ["--json=-", "a.json"]),
        (["--json", "-q"], ["--json=-", "-q"]),
        (["--json", "--json", "a.json"], ["--json=-", "--json=a.json"]),
        (["--", "--json"], ["--", "--json"]),
    ],
)
def test_a_file_is_taken_only_where_nothing_else_is_meant(words, expected):
    assert join_json(words) == expected


@pytest.mark.parametrize("kind", FILES)
def test_every_schema_is_one_and_says_its_version(kind):
    schema = json.loads(FILES[kind].read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert {"schema", "kind"} <= set(schema["required"])
    assert schema["properties"]["kind"] == {"const": kind}
    if kind != "check":
        assert schema["properties"]["schema"] == {"const": document(kind, {})["schema"]}
    assert f"`{kind}`" in (ROOT / "docs" / "reference" / "json.md").read_text()


def test_numbers_stay_numbers():
    data = plain({"a": float("nan"), "b": float("-inf"), "c": (1, 2.5, Path("x")), "d": None, "e": {"f": {3}}})
    assert data == {"a": "nan", "b": "-inf", "c": [1, 2.5, "x"], "d": None, "e": {"f": [3]}}


def test_documents_of_the_machine(trtconv):
    assert "python" in validated(trtconv("version", "--json")[1], "version")["versions"]
    assert len(validated(trtconv("rules", "--json")[1], "rules")["rules"]) > 20
    validated(trtconv("plugins", "list", "--json")[1], "plugins-list")
    assert {"topic": "json", "title": "JSON"} in validated(trtconv("help", "--json")[1], "help")["topics"]
    assert validated(trtconv("help", "json", "--json")[1], "help")["text"].startswith("# JSON")


def test_documents_of_a_model(trtconv, folder):
    data = validated(trtconv("rewrite", "model.onnx", "--target", "tensorrt==10", "--json")[1], "rewrite")
    assert data["model"] == "model.trt.onnx"
    facts = validated(trtconv("inspect", "model.onnx", "--layers", "--json")[1], "inspect")
    assert facts["space"]["W"] == {"min": 3, "opt": 8, "max": 17, "multiple": 1}
    assert facts["bytes"] == (folder / "model.onnx").stat().st_size
    assert facts["nodes"][0]["operator"] == "Mul"
    validated(trtconv("check", "model.onnx", "--json")[1], "check")
    validated(trtconv("check", "model.onnx", "--target", "tensorrt==10", "--json")[1], "target")
    bench = validated(trtconv("bench", "model.onnx", "--seconds", "0.05", "--point", "min", "--json")[1], "bench")
    assert bench["latencies"][0]["host"]["median"] > 0
    save_model(double(2.5), folder / "model.onnx")
    data = validated(trtconv("repro", "model.onnx", "--json", "--kind", "accuracy")[1], "repro")
    assert (data["failure"], data["nodes"]) == ("accuracy", 1)


def test_documents_of_an_engine_and_the_cache(trtconv, folder):
    pytest.importorskip("tensorrt_rtx")
    build_result = validated(trtconv("build", "model.onnx", *RTX, "--json")[1], "build")
    assert build_result["engine_bytes"] == (folder / "model.engine").stat().st_size
    facts = validated(trtconv("inspect", "model.engine", "--json")[1], "inspect")
    assert facts["manifest"]["profiles"][0]["x"][2] == [4, 17]
    assert facts["manifest"]["space"]["N"]["max"] == 4
    (entry,) = validated(trtconv("cache", "ls", "--json")[1], "cache-ls")["entries"]
    assert entry["engine_bytes"] == build_result["engine_bytes"]
    assert validated(trtconv("cache", "verify", "--json")[1], "cache-verify")["whole"] == [entry["key"]]
    assert validated(trtconv("cache", "prune", "--json")[1], "cache-prune")["removed"] == []
    assert validated(trtconv("cache", "rm", "--all", "--json")[1], "cache-rm")["removed"] == [entry["key"]]


def test_documents_of_a_module(trtconv, net, tmp_path):
    pytest.importorskip("torch")
    words = ("init", f"{net}:make_net", "-o", tmp_path / "t.toml", "--json")
    (images,) = validated(trtconv(*words)[1], "init")["inputs"]
    assert images["name"] == "images"


def test_documents_that_need_more_than_this_machine():
    from trtconv.build.package.triton_repository import PackageResult
    from trtconv.core.model.provenance import Origin
    from trtconv.plugins.libraries.library import PluginLibrary
    from trtconv.plugins.libraries.user_library import UserLibrary
    from trtconv.rewrite.precision.search.fp32_nodes import Fp32Node, Fp32Nodes

    validated(document("package", vars(PackageResult(Path("m"), Path("c"), 4, "docker run"))), "package")
    library = PluginLibrary(Path("l.so"), "10.3", "80;90", "0" * 64, "1" * 64, ("A",))
    validated(document("plugins-build", vars(library)), "plugins-build")
    other = UserLibrary(Path("l.so"), "10.3", "80;90", "0" * 64, "1" * 64, ("A",))
    validated(document("plugins-build", vars(other)), "plugins-build")
    nodes = Fp32Nodes("tensorrt==10", "fp16", (Fp32Node("n", "Exp", Origin()),), 3, 7, 2)
    assert validated(document("find-fp32", nodes.as_dict()), "find-fp32")["nodes"][0]["origin"] == asdict(Origin())


def test_doctor(trtconv):
    assert validated(trtconv("doctor", "--json")[1], "doctor")["abilities"]


def test_a_file_beside_the_text(trtconv, folder):
    code, out, _ = trtconv("inspect", "model.onnx", "--json=facts.json")
    assert code == 0
    assert "Mul 1" in out
    validated((folder / "facts.json").read_text(), "inspect")
    before = (folder / "model.onnx").read_bytes()
    code, _, err = trtconv("inspect", "model.onnx", "--json=model.onnx")
    assert (code, "is the input" in err) == (2, True)
    assert (folder / "model.onnx").read_bytes() == before
