"""The answer of a building child: what goes in comes out, and what a child that was taken over writes is one error."""

import json
import pickle

import pytest

from trtconv.backends.protocol import BuiltEngine
from trtconv.backends.tensorrt.builder.answer import PLAN, RESULT, read_answer, write_answer
from trtconv.core.errors import LimitError, TrtconvError, UnsupportedError

BUILT = BuiltEngine(b"plan", 3, ("a", "b"), {"float32": 2}, {"gpu": "x"}, {"bytes": 7}, {"L2": {"architecture": "9.0"}})


def test_an_engine_and_an_error_come_back_as_they_were(tmp_path):
    work = tmp_path / "1.work"
    write_answer(work, BUILT)
    assert read_answer(work) == BUILT
    write_answer(work, UnsupportedError("no", hint="use another", details=("node a", "node b"), where="net.py:3"))
    with pytest.raises(UnsupportedError) as caught:
        read_answer(work)
    error = caught.value
    assert (error.message, error.hint, error.details) == ("no", "use another", ("node a", "node b"))
    assert error.where == "net.py:3"
    write_answer(work, LimitError("too much"))
    with pytest.raises(LimitError):
        read_answer(work)
    assert list(tmp_path.iterdir()) == []


class Hostile:
    def __reduce__(self):
        return exec, ("raise SystemExit('unpickled')",)


FACTS = {"layers": 1, "messages": [], "types": {}, "environment": {}, "timing_cache": {}, "plugin_kernels": {}}


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps(Hostile()), b"", b"[]", b"{}", b'{"error": "SystemExit", "message": "x"}',
        json.dumps({**FACTS, "layers": "many"}).encode(), json.dumps({**FACTS, "plan": "x"}).encode(),
        json.dumps({k: v for k, v in FACTS.items() if k != "types"}).encode(), json.dumps(FACTS).encode(),
        b"[" * 100_000,
    ],
)  # fmt: skip
def test_any_other_answer_is_an_error(tmp_path, content):
    work = tmp_path / "1.work"
    work.with_suffix(RESULT).write_bytes(content)
    with pytest.raises(TrtconvError, match="cannot be read"):
        read_answer(work)


@pytest.mark.parametrize(
    ("field", "value"),
    [("types", {"FP32": "x"}), ("environment", {"gpu": 1}), ("messages", [1]), ("layers", True), ("timing_cache", []),
     ("plugin_kernels", {"L2": ["9.0"]}), ("plan", "x")],
    ids=str,
)  # fmt: skip
def test_each_fact_has_one_type(tmp_path, field, value):
    work = tmp_path / "1.work"
    for facts in (FACTS, {**FACTS, field: value}):
        work.with_suffix(PLAN).write_bytes(b"plan")
        work.with_suffix(RESULT).write_text(json.dumps(facts))
        if facts is FACTS:
            assert read_answer(work).plan == b"plan"
            continue
        with pytest.raises(TrtconvError, match="cannot be read"):
            read_answer(work)


def test_a_class_that_is_not_of_trtconv_is_not_raised(tmp_path):
    work = tmp_path / "1.work"
    work.with_suffix(PLAN).write_bytes(b"plan")
    facts = {"error": "did_you_mean", "message": "x", "hint": None, "details": [], "where": None}
    work.with_suffix(RESULT).write_text(json.dumps(facts))
    with pytest.raises(TrtconvError, match=r"^x$"):
        read_answer(work)
