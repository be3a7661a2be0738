"""The verdict in a sentence: what was proved, of what, and what was not run; one wording in every format."""

import dataclasses

import pytest

from tests.check.reporters.cases import ALL, BAD, EMPTY, GOOD, comparison, report
from trtconv.check.reporters.caveats import engine_not_run
from trtconv.check.reporters.headline import ERROR_UNIT, headline
from trtconv.check.reporters.html.report import html_text
from trtconv.check.reporters.markdown import markdown_text
from trtconv.check.reporters.text import verdict
from trtconv.core.report import ENGINE_NOT_RUN, Finding

NOT_RUN = Finding("note", "environment", f"{ENGINE_NOT_RUN}: no driver")


def test_it_names_the_original():
    for original in ("the module", "the ONNX file"):
        assert headline(dataclasses.replace(GOOD, original=original)).text == f"equals {original} at 2 sample points"
        text = headline(dataclasses.replace(BAD, original=original)).text
        assert text == f"differs from {original} at 3 of 4 sample points"


def test_an_engine_that_was_not_run_is_said_in_the_same_sentence():
    graph = dataclasses.replace(GOOD, findings=(NOT_RUN,), original="the module")
    assert engine_not_run(graph)
    head = headline(graph)
    assert (head.state, head.word) == ("open", "graph equal, engine not run")
    assert head.text == (
        "is the engine's graph and equals the module at 2 sample points; the engine itself was built but not run on "
        "this machine"
    )


def test_other_errors_and_nothing_compared():
    wrong = report(comparison(), findings=(Finding("error", "budget", "too large"),), original="the module")
    text = "equals the module at 1 sample point, but 1 other error was found"
    assert (headline(wrong).state, headline(wrong).text) == ("bad", text)
    assert (headline(EMPTY).state, headline(EMPTY).word) == ("bad", "not checked")


@pytest.mark.parametrize("name", ALL)
def test_every_format_has_the_same_sentence_and_unit(name):
    told = dataclasses.replace(ALL[name], original="the ONNX file")
    sentence = headline(told).text
    page = html_text(told).replace("&#39;", "'")
    assert f"</code> {sentence}</p>" in page
    assert f"`{told.subject}` {sentence}\n" in markdown_text(told)
    assert f"{told.subject} {sentence}" in verdict(told)[2]
    if told.comparisons:
        assert ERROR_UNIT in page
        assert ERROR_UNIT.replace("|", "\\|") in markdown_text(told)
        assert "1+" not in markdown_text(told)
