"""A report format is one file: the registry and the options of `trtconv check` are made from the files."""

import importlib

import pytest
from click.testing import CliRunner

import trtconv.check.reporters as package
from trtconv.check.reporters.registry import REPORTERS, discover_reporters
from trtconv.check.reporters.writing import write_reports
from trtconv.core.report import CheckReport
from trtconv.core.tolerance import Tolerance

REPORT = CheckReport("a\x1b.onnx", "onnx", "r", "x", Tolerance(), ())
ONE_FILE = """
from trtconv.check.reporters.reporter import Reporter

REPORTER = Reporter("plain", "Write one line.", ".txt", lambda report, path: path.write_text(report.subject))
"""


def test_the_formats():
    assert [r.name for r in REPORTERS] == ["github", "gl-code-quality", "html", "json", "junit", "markdown", "sarif"]
    suffixes = [r.suffix for r in REPORTERS if r.suffix]
    assert len(set(suffixes)) == len(suffixes)


def test_each_format_is_an_option_of_check():
    command = importlib.import_module("trtconv.cli.commands.check").command
    text = CliRunner().invoke(command, ["--help"]).output
    for reporter in REPORTERS:
        assert f"--{reporter.name}" in text
        assert reporter.help in " ".join(text.split())


def test_a_new_file_is_a_new_format(tmp_path, monkeypatch):
    (tmp_path / "plain_text.py").write_text(ONE_FILE)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    reporters = discover_reporters()
    assert {r.name for r in reporters} == {r.name for r in REPORTERS} | {"plain"}
    monkeypatch.setattr("trtconv.check.reporters.registry.REPORTERS", reporters)
    write_reports(REPORT, plain=tmp_path / "out.txt")
    assert (tmp_path / "out.txt").read_text() == "a\\x1b.onnx", "shown to people: control characters are escaped"


def test_a_format_that_there_is_not(tmp_path):
    with pytest.raises(KeyError):
        write_reports(REPORT, pdf=tmp_path / "r")
