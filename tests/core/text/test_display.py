import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from trtconv.check.reporters.writing import write_reports
from trtconv.core.report import CheckReport, Finding
from trtconv.core.text.display import display_styled, display_text
from trtconv.core.tolerance import Tolerance

HOSTILE = [
    "\x1b[2J", "\x00", "\x9b31m", "\u202eevil", "\u2066x", "\u200f", "\ufffe", "\uffff", "\ud800", "\U0001ffff",
    "::add-mask::x", "a\n::stop-commands::y", "a\n \t::error::z", "##[add-mask]x", "\r::set-output::x",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_becomes_visible(text):
    printed_text = display_text(text)
    printed_text.encode()
    assert all(c == "\n" or c == "\t" or c.isprintable() for c in printed_text)
    assert not any(line.strip().startswith("::") for line in printed_text.splitlines())
    assert "##[" not in printed_text


def test_plain_text_and_our_own_colours_stay():
    assert display_text("[bold] größe: 日本語 a::b\n\tc") == "[bold] größe: 日本語 a::b\n\tc"
    assert display_styled("\x1b[1mname\x1b[0m \x1b[2J") == "\x1b[1mname\x1b[0m \\x1b[2J"


@pytest.mark.parametrize("text", HOSTILE)
def test_every_reporter(tmp_path, capsys, monkeypatch, text):
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    report = CheckReport(
        subject=f"m{text}",
        subject_kind="onnx",
        reference=text,
        runner=text,
        tolerance=Tolerance(),
        comparisons=(),
        findings=(Finding("error", "failed", f"node '{text}'", hint=text),),
    )
    names = ("json", "junit", "sarif", "html", "markdown")
    write_reports(report, **{n: tmp_path / n for n in names}, github=Path("-"))
    ET.parse(tmp_path / "junit")
    for name in names[1:]:
        content = (tmp_path / name).read_text()
        assert not set(text) & set("\x1b\x00\x9b\u202e\u2066\u200f\ufffe\uffff\U0001ffff") & set(content)
    out = capsys.readouterr().out
    assert all(line.startswith("::error ") for line in out.splitlines())
