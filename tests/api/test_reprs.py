"""What a prompt and a notebook show of results: a few lines with what a person needs, never every comparison."""

import numpy as np

import trtconv


def test_a_session_says_what_it_runs_and_takes(here):
    with trtconv.load(here.result.rewritten) as session:
        text, page = repr(session), session._repr_html_()
        names = list(session(x=np.zeros((2, 8), np.float32)))
    assert text.splitlines()[0].startswith(f"<trtconv.Session {here.result.rewritten}, onnxruntime ")
    assert "input   x:float32[N,8]" in text
    assert "output  " in text
    assert "dims    N=1:2:4" in text
    assert "<code>x:float32[N,8]</code>" in page
    assert [s.name for s in session.outputs] == names


def test_a_report_counts_its_comparisons(here):
    verdict = trtconv.check(here.result.rewritten)
    count = len(verdict.comparisons)
    assert repr(verdict).startswith(f"<trtconv.Verdict PASSED  {here.result.rewritten} equals the module at")
    text = repr(verdict.report)
    assert f"passed, {count} of {count} comparisons with the module passed" in text
    assert "\n" not in text
    assert len(text) < 300


def test_results_of_the_rooms_are_a_field_a_line(here):
    from trtconv.pipeline import ConvertResult
    from trtconv.rewrite import RewriteResult

    result = RewriteResult(here.result.rewritten, here.result.model, ("entry",) * 9, (), (), 1.23456)
    assert repr(result).splitlines() == [
        "RewriteResult(",
        f"  model={here.result.rewritten}",
        f"  ledger={here.result.model}",
        "  entries=9 x str",
        "  seconds=1.235",
        ")",
    ]
    whole = repr(ConvertResult(result, result, here.result.graph.report, result, here.result.graph.report, "r.html"))
    assert "  rewritten=<CheckReport " in whole
    assert all(len(line) < 320 for line in whole.splitlines())
    assert len(whole.splitlines()) < 12
