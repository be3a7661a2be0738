"""GitLab's Code Quality report: the fields that it reads, and fingerprints that outlast a run."""

import dataclasses
import json

import pytest

from tests.check.reporters.cases import ALL, BAD, GOOD, REFUSED
from trtconv.check.reporters import write_reports
from trtconv.check.reporters.gl_code_quality import code_quality
from trtconv.check.reporters.problems import problems

SEVERITIES = {"info", "minor", "major", "critical", "blocker"}


@pytest.mark.parametrize("report", ALL.values(), ids=ALL)
def test_an_entry_for_each_problem_with_the_fields_that_gitlab_reads(report, tmp_path):
    write_reports(report, **{"gl-code-quality": tmp_path / "q.json"})
    entries = json.loads((tmp_path / "q.json").read_text())
    assert len(entries) == len(problems(report))
    assert len({e["fingerprint"] for e in entries}) == len(entries)
    for entry in entries:
        assert set(entry) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert entry["severity"] in SEVERITIES
        assert entry["location"]["lines"]["begin"] >= 1
        assert not entry["location"]["path"].startswith(("/", "./"))


def test_nothing_wrong_is_an_empty_list():
    assert code_quality(GOOD) == []


def test_the_place_is_the_line_of_the_module():
    (entry,) = code_quality(REFUSED)
    assert entry["location"] == {"path": "net.py", "lines": {"begin": 7}}
    assert (entry["severity"], entry["check_name"]) == ("major", "trtconv/unsupported")
    assert "in head, node /fold" in entry["description"]


def test_other_numbers_are_the_same_problem():
    def moved(factor):
        comparisons = tuple(
            dataclasses.replace(c, max_abs=c.max_abs and c.max_abs * factor) for c in BAD.comparisons if c.output == "y"
        )
        return dataclasses.replace(BAD, comparisons=comparisons, findings=())

    first, second = ([e["fingerprint"] for e in code_quality(moved(f))] for f in (1.0, 1.5))
    assert first == second
