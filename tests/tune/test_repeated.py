"""What an earlier search left is believed field by field: its choice, and what it had measured."""

import json

import pytest

from trtconv.core.errors import InvalidRequestError
from trtconv.tune.candidates import Candidate
from trtconv.tune.evidence import read_chosen
from trtconv.tune.state import SCHEMA, SearchState

CHOICE = {"precision": "fp16", "groups": ["a"], "rest": "fp32", "rest_fp32": []}
KEY = {"model": "a"}
MEASURED = {"value": 0.5, "decibels": 40.0, "folds": [0.5]}


def test_a_choice_is_read_as_it_was_made(tmp_path):
    path = tmp_path / "m.tune.json"
    path.write_text(json.dumps({"chosen": {"name": "x", "candidate": CHOICE}}))
    assert read_chosen(path) == Candidate("fp16", ("a",))


@pytest.mark.parametrize(
    "change",
    [{"groups": "abc"}, {"groups": [1]}, {"precision": 5}, {"precision": "fp7"}, {"rest": None}, {"rest": "int8"},
     {"rest_fp32": {}}],
    ids=str,
)  # fmt: skip
def test_a_choice_of_another_form_is_one_error(tmp_path, change):
    path = tmp_path / "m.tune.json"
    path.write_text(json.dumps({"chosen": {"candidate": {**CHOICE, **change}}}))
    with pytest.raises(InvalidRequestError, match="is not a ledger of trtconv tune"):
        read_chosen(path)


def test_what_was_measured_is_not_measured_again(tmp_path):
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"schema": SCHEMA, "key": KEY, "measured": {"search/a": MEASURED}}))
    state = SearchState(path, KEY)
    assert (state.resumed, state.get("search/a")) == (1, MEASURED)
    assert SearchState(path, {"model": "b"}).resumed == 0


@pytest.mark.parametrize(
    "measured",
    [None, [], {"search/a": 1}, {"search/a": {"value": 1.0}}, {"search/a": {**MEASURED, "value": "high"}},
     {"search/a": {**MEASURED, "folds": [None]}}],
    ids=str,
)  # fmt: skip
def test_measurements_of_another_form_are_made_again(tmp_path, measured):
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"schema": SCHEMA, "key": KEY, "measured": measured}))
    assert SearchState(path, KEY).resumed == 0
    path.write_text(json.dumps({"schema": SCHEMA, "key": KEY}))
    assert SearchState(path, KEY).resumed == 0
