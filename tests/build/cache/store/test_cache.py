import json
import os
import subprocess
import sys
import time

import pytest

from trtconv.build.cache.store import EngineCache, cache_key, default_root, differences
from trtconv.core.errors import InvalidRequestError

PARTS = {
    "model": {"model.trt.onnx": "a" * 64},
    "profiles": [{"x": [[1, 3], [2, 3], [4, 3]]}],
    "precision": "fp32",
    "backend": "tensorrt 11.1",
    "gpu": "H200",
    "driver": "580.1",
    "options": {"tf32": False},
}


def engine(folder, size=1000, fill=b"e"):
    path = folder / "built.engine"
    path.write_bytes(fill * size)
    return path


@pytest.fixture
def cache(tmp_path):
    return EngineCache(tmp_path / "cache")


def test_what_was_stored_is_found_and_fetched(cache, tmp_path):
    cache.store(PARTS, engine(tmp_path), {"seconds": 3.5})
    entry = cache.restore(dict(reversed(list(PARTS.items()))), tmp_path / "out" / "model.engine").entry
    assert entry is not None
    assert entry.payload == {"seconds": 3.5}
    assert (tmp_path / "out" / "model.engine").read_bytes() == b"e" * 1000


def test_an_empty_cache_says_so(cache):
    assert cache.lookup(PARTS).reason == "the cache is empty"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"driver": "580.2"}, "driver 580.1 -> 580.2"),
        ({"options": {"tf32": True}}, "options.tf32 False -> True"),
        ({"model": {"model.trt.onnx": "b" * 64}}, "model.model.trt.onnx aaaaaaaaaaaa -> bbbbbbbbbbbb"),
        ({"plugins": {"p.so": "1"}}, "plugins"),
    ],
)
def test_any_change_is_a_miss_that_is_named(cache, tmp_path, changed, words):
    cache.store(PARTS, engine(tmp_path))
    cache.store({**PARTS, "gpu": "L4", "precision": "fp16"}, engine(tmp_path))
    result = cache.lookup({**PARTS, **changed})
    assert result.entry is None
    assert result.changed == (words,), "of the nearest entry, not of any"


@pytest.mark.parametrize("damage", [b"", b"e" * 999, b"e" * 999 + b"x"])
def test_a_damaged_engine_is_removed(cache, tmp_path, damage):
    entry = cache.store(PARTS, engine(tmp_path))
    entry.engine.write_bytes(damage)
    result = cache.lookup(PARTS)
    assert result.entry is None
    assert "damaged" in result.reason
    assert cache.entries() == ()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 99}'])
def test_a_damaged_entry_is_a_miss(cache, tmp_path, text):
    entry = cache.store(PARTS, engine(tmp_path))
    (entry.engine.parent / "entry.json").write_text(text)
    assert cache.lookup(PARTS).entry is None
    assert cache.store(PARTS, engine(tmp_path)).engine_bytes == 1000


def test_what_was_used_longest_ago_goes_first(tmp_path):
    cache = EngineCache(tmp_path / "cache", limit=2500)
    for number in (1, 2):
        cache.store({**PARTS, "n": number}, engine(tmp_path))
        os.utime(cache.root / cache_key({**PARTS, "n": number}) / "entry.json", (number, number))
    assert cache.lookup({**PARTS, "n": 1}).entry is not None, "using it makes it young"
    cache.store({**PARTS, "n": 3}, engine(tmp_path))
    assert cache.lookup({**PARTS, "n": 2}).entry is None
    assert cache.lookup({**PARTS, "n": 1}).entry is not None
    assert cache.lookup({**PARTS, "n": 3}).entry is not None


def test_one_engine_over_the_limit_is_kept_alone(tmp_path):
    cache = EngineCache(tmp_path / "cache", limit=10)
    cache.store({**PARTS, "n": 1}, engine(tmp_path))
    cache.store({**PARTS, "n": 2}, engine(tmp_path))
    assert [e.parts["n"] for e in cache.entries()] == [2]


def test_verify_removes_what_is_damaged(cache, tmp_path):
    cache.store({**PARTS, "n": 1}, engine(tmp_path))
    bad = cache.store({**PARTS, "n": 2}, engine(tmp_path))
    bad.engine.write_bytes(b"x")
    report = cache.verify()
    assert [e.parts["n"] for e in report.whole] == [1]
    assert [(e.parts["n"], reason) for e, reason in report.damaged] == [(2, "'engine' has 1 bytes instead of 1000")]
    assert not report.passed
    assert [f.name for f in cache.root.iterdir() if f.is_dir()] == [cache_key({**PARTS, "n": 1})]


def test_entries_are_found_by_the_begin_of_their_key(cache, tmp_path):
    entry = cache.store(PARTS, engine(tmp_path))
    assert cache.find(entry.key[:8]).key == entry.key
    with pytest.raises(InvalidRequestError, match="no entry begins with 'zz'"):
        cache.find("zz")
    cache.remove(entry.key)
    cache.remove(entry.key)
    assert cache.entries() == ()


def test_nothing_is_left_behind_when_the_engine_is_missing(cache, tmp_path):
    with pytest.raises(OSError, match="No such file"):
        cache.store(PARTS, tmp_path / "absent")
    assert [f for f in cache.root.iterdir() if f.is_dir()] == []


WORKER = """
import sys
from pathlib import Path
from trtconv.build.cache.store import EngineCache
root, source, number = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
cache = EngineCache(root, limit=600_000)
good = 0
for i in range(15):
    parts = {"n": (i * 7 + number) % 5}
    answer = cache.restore(parts, root.parent / f"{number}.engine")
    entry = answer.entry
    assert not answer.warning, answer
    if entry is None:
        cache.store(parts, source, {"n": parts["n"]})
    else:
        assert entry.payload == {"n": parts["n"]}, entry
        good += 1
print(good)
"""


def test_several_processes_at_once(tmp_path):
    """Twenty writers and readers over a limit that makes them evict each other's entries all the time."""
    source = engine(tmp_path, size=200_000)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(tmp_path / "cache"), str(source), str(n)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(20)
    ]
    for worker in workers:
        out, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors
        assert int(out) >= 0
    cache = EngineCache(tmp_path / "cache", limit=600_000)
    report = cache.verify()
    assert report.passed
    assert report.skipped == ()
    assert sum(e.engine_bytes for e in cache.entries()) <= 600_000


def test_an_entry_that_is_replaced_while_it_is_opened(cache, tmp_path, monkeypatch):
    """A reader opened the folder of an entry; another process evicts that one and stores a new one by its name."""
    source = engine(tmp_path, size=1000)
    key = cache.store(PARTS, source, {"n": 1}).key
    listdir, replacements = os.listdir, []

    def replace_then_list(path):
        if isinstance(path, int) and not replacements:
            replacements.append(path)
            assert cache.remove(key)
            cache.store(PARTS, source, {"n": 2})
        return listdir(path)

    monkeypatch.setattr(os, "listdir", replace_then_list)
    answer = cache.restore(PARTS, tmp_path / "again.engine")
    assert replacements
    assert answer.warning == ""
    assert answer.entry.payload == {"n": 2}


def test_an_entry_that_is_evicted_while_it_is_opened(cache, tmp_path, monkeypatch):
    key = cache.store(PARTS, engine(tmp_path, size=1000)).key
    listdir, evictions = os.listdir, []

    def evict_then_list(path):
        if isinstance(path, int) and not evictions:
            evictions.append(path)
            assert cache.remove(key)
        return listdir(path)

    monkeypatch.setattr(os, "listdir", evict_then_list)
    answer = cache.restore(PARTS, tmp_path / "again.engine")
    assert evictions
    assert answer.entry is None
    assert answer.warning == ""


@pytest.mark.parametrize("moment", [0, 4_000_000_000])
def test_a_clock_that_jumped_loses_no_entry(cache, tmp_path, moment):
    """Entries of 1970, or of a year to come, are as good as any other; the least recent ones still go first."""
    cache.store(PARTS, engine(tmp_path, size=1000), {})
    for path in (cache.root, *cache.root.rglob("*")):
        os.utime(path, (moment, moment))
    assert cache.restore(PARTS, tmp_path / "again.engine").entry is not None
    report = cache.verify()
    assert report.passed
    assert len(cache.entries()) == 1
    cache.store({**PARTS, "precision": "fp16"}, engine(tmp_path, size=1000), {})
    assert len(cache.entries()) == 2


def test_an_answer_for_64_mib_takes_less_than_a_second(cache, tmp_path):
    cache.store(PARTS, engine(tmp_path, size=64 << 20))
    best = 99.0
    for _ in range(5):  # the other half of the tests runs beside this one
        start = time.perf_counter()
        assert cache.restore(PARTS, tmp_path / "model.engine").entry is not None
        best = min(best, time.perf_counter() - start)
    assert best < 1.0


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("TRTCONV_CACHE", "off")
    assert default_root() is None
    monkeypatch.setenv("TRTCONV_CACHE", str(tmp_path))
    assert default_root() == tmp_path
    (tmp_path / "net.py").write_text("x = 1")
    monkeypatch.setenv("TRTCONV_CACHE", str(tmp_path / "net.py"))
    with pytest.raises(InvalidRequestError, match=r"TRTCONV_CACHE names .*, which is no folder"):
        default_root()
    monkeypatch.delenv("TRTCONV_CACHE")
    assert default_root().name == "engines-v2"


def test_differences_of_equal_parts_after_json():
    assert list(differences(json.loads(json.dumps(PARTS)), PARTS)) == []
