"""A ledger is believed field by field, and only as it was written."""

import json
from dataclasses import fields, replace

import pytest

from tests.core.ledger.ledgers import make_entry, make_ledger, write_beside
from trtconv.core.artifacts import write_json
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.artifact_set import SEAL, sealed
from trtconv.core.files.digest import sha256_file
from trtconv.core.ledger.facts import raw_rewrite_facts, rewrite_facts
from trtconv.core.ledger.reading import ledger_of, parse_ledger, read_ledger
from trtconv.core.ledger.records import RewriteLedger
from trtconv.core.ledger.writing import SCHEMA, ledger_data, write_ledger

VALUES = (None, True, 7, -1, 0.5, "text", "nan", [], [None], {}, {"a": [1]}, "x" * 64, [[]], 2**70)
NUMBERS = (
    "max_abs",
    "max_rel",
    "cosine",
    "mismatched",
    "expected_at",
    "actual_at",
    "max_scaled",
    "max_share",
    "allowed",
)


def plain(ledger=None):
    """What stands in the file."""
    return json.loads(json.dumps(sealed(ledger_data(ledger or make_ledger()))))


def places(value, path=()):
    """Every place in a JSON value, as the keys that lead there."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for index in range(len(value)):
            yield from places(value[index], (*path, index))


def put(value, path, new):
    if not path:
        return new
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[path[0]] = put(value[path[0]], path[1:], new)
    return changed


def without(value, path):
    if len(path) == 1:
        return {k: v for k, v in value.items() if k != path[0]}
    return put(value, path[:1], without(value[path[0]], path[1:]))


def test_what_is_written_is_read(tmp_path):
    ledger = make_ledger()
    write_ledger(tmp_path / "l.json", ledger)
    back = read_ledger(tmp_path / "l.json")
    assert back == ledger
    assert back.entries[0].proof is back.entries[1].proof, "one proof for equal parts"
    assert plain(back) == plain(ledger)


def test_an_edited_ledger_is_told(tmp_path):
    data = plain()
    for path in places(data):
        if path and path[-1] != SEAL:
            with pytest.raises(InvalidRequestError, match=r"was changed after it was written|not a ledger of schema"):
                parse_ledger(put(data, path, "another value"), tmp_path / "l.json")


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_each_field_has_one_type(value, tmp_path):
    """What somebody sealed anew is either a ledger that says the same when it is written again, or one error."""
    data = plain()
    for path in places(data):
        changed = put(data, path, value)
        if not isinstance(changed, dict) or path == (SEAL,):
            continue
        try:
            ledger = parse_ledger(sealed(changed), tmp_path / "l.json")
        except InvalidRequestError:
            continue
        assert plain(ledger) == sealed(changed)
        assert fits(path[-1], value_at(data, path), value), path


def fits(name, before, after):
    if before is None or after is None:
        return name in (*NUMBERS, "passed", "whole_graph", "proof")
    if name in NUMBERS:
        return type(after) in (int, float) or after == "nan"
    return type(before) is type(after)


def value_at(data, path):
    for key in path:
        data = data[key]
    return data


def test_each_field_has_to_be_there(tmp_path):
    data = plain()
    for path in places(data):
        # The names in a table of shapes are the graph's.
        if path and isinstance(path[-1], str) and path[-1] not in (SEAL, "x"):
            with pytest.raises(InvalidRequestError):
                parse_ledger(sealed(without(data, path)), tmp_path / "l.json")


@pytest.mark.parametrize(
    ("path", "value"),
    [(("entries", 0, "proof"), 1), (("proofs", 0, "max_abs"), 0.0), (("entries", 1, "proof_shared_with"), ""),
     (("options", "nms"), "perhaps"), (("options", "max_detections"), 0), (("options", "precision"), "fp7"),
     (("options", "more"), 1), (("target",), "tensorrt==5"), (("space",), "N=4:2:1"), (("sha256",), "Z" * 64),
     (("opset",), [17]), (("nodes",), [1, 2, 3]), (("proofs", 0, "comparisons", 0, "max_abs"), "Infinity"),
     (("schema",), SCHEMA - 1), (("extra",), 1)],
    ids=str,
)  # fmt: skip
def test_values_that_no_rewrite_writes(path, value, tmp_path):
    data = plain()
    changed = {**data, path[0]: value} if path[0] not in data else None
    if path == ("options", "more"):
        changed = {**data, "options": {**data["options"], "more": value}}
    with pytest.raises(InvalidRequestError, match=r"l\.json"):
        parse_ledger(sealed(changed or put(data, path, value)), tmp_path / "l.json")


def test_the_reader_forgets_no_field():
    """A field that is added to the ledger is written and read: what it holds by default would hide that it is not."""
    ledger = make_ledger()
    assert all(getattr(ledger, f.name) != f.default for f in fields(RewriteLedger))


def test_a_ledger_belongs_to_its_graph(tmp_path):
    exported, rewritten = tmp_path / "model.onnx", tmp_path / "model.trt.onnx"
    exported.write_bytes(b"before")
    rewritten.write_bytes(b"after")
    assert ledger_of(rewritten) is None
    path = write_beside(rewritten)
    engine = tmp_path / "model.engine"
    assert ledger_of(rewritten) == ledger_of(engine) == ledger_of(engine, sha256_file(path))
    assert ledger_of(exported) is None, "it tells what became of this file"
    with pytest.raises(InvalidRequestError, match=r"'model\.rewrites\.json' belongs to another conversion"):
        ledger_of(engine, "0" * 64)
    rewritten.write_bytes(b"another")
    for subject in (rewritten, engine):
        with pytest.raises(InvalidRequestError, match=r"'model\.trt\.onnx' is not the one that 'model\.rewrites"):
            ledger_of(subject)


def test_a_graph_that_was_rewritten_to_a_name_of_its_own(tmp_path):
    out = tmp_path / "out.onnx"
    out.write_bytes(b"after")
    write_beside(out)
    assert ledger_of(out).target.family == "tensorrt"
    write_beside(out, model="out.onnx")
    assert ledger_of(out) is None, "it is of a file elsewhere that was made from this one"


def test_inspect_tells_the_rewrite(tmp_path):
    rewritten = tmp_path / "model.trt.onnx"
    rewritten.write_bytes(b"after")
    assert rewrite_facts(rewritten) == raw_rewrite_facts(rewritten) == {}
    path = write_beside(rewritten, entries=(make_entry(), make_entry("gelu"), make_entry()))
    facts = rewrite_facts(rewritten)
    assert facts["rewrites by rule"] == "gelu 1, l2norm 2; taken back: 1"
    assert raw_rewrite_facts(rewritten)["proved"] is True
    write_ledger(path, replace(read_ledger(path), whole=None))
    assert raw_rewrite_facts(rewritten)["proved"] is False
    write_json(path, {**plain(), "notes": []})
    with pytest.raises(InvalidRequestError, match="was changed after it was written"):
        rewrite_facts(rewritten)
