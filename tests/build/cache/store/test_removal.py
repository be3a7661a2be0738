"""What is removed, what is left alone, and what killed writers leave."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.build.cache.store.conftest import PARTS
from trtconv.build.cache.store import EngineCache, cache_key

NEW, TRASH, ASIDE = ".new-" + "0" * 16, f".trash-{'a' * 64}-{'0' * 16}", f".aside-{'a' * 64}-{'0' * 16}"
HOUR = 3600


def temporary(cache, name, age, files=("engine",)):
    folder = cache.root / name
    folder.mkdir(mode=0o700)
    for file in files:
        (folder / file).write_bytes(b"half")
    for path in (*folder.iterdir(), folder):
        os.utime(path, (time.time() - age,) * 2)
    return folder


@pytest.mark.parametrize(
    ("name", "age", "removed"),
    [(NEW, 1.1 * HOUR, True), (NEW, 0.9 * HOUR, False), (NEW, -2 * HOUR, True), (TRASH, 0, True),
     (ASIDE, 8 * 24 * HOUR, True), (ASIDE, 6 * 24 * HOUR, False), (".new-0", 2 * HOUR, False),
     ("new-" + "0" * 16, 2 * HOUR, False)],
)  # fmt: skip
def test_temporary_names_go_after_their_time(cache, engine, name, age, removed):
    cache.store(PARTS, engine)
    folder = temporary(cache, name, age)
    report = cache.prune()
    assert report.removed == ((name,) if removed else ())
    assert [n.name for n in report.skipped] == ([] if removed else [name])
    assert folder.exists() is not removed
    assert cache.lookup(PARTS).entry is not None


@pytest.mark.parametrize("name", [NEW, TRASH, ASIDE])
def test_a_temporary_folder_with_other_files_stays_whole(cache, engine, name):
    cache.store(PARTS, engine)
    folder = temporary(cache, name, 30 * 24 * HOUR, ("engine", "thesis.txt"))
    assert cache.prune().removed == ()
    assert sorted(p.name for p in folder.iterdir()) == ["engine", "thesis.txt"]


@pytest.mark.parametrize("name", [NEW, TRASH, ASIDE])
def test_links_are_not_followed(cache, engine, tmp_path, name):
    cache.store(PARTS, engine)
    outside = temporary(EngineCache(tmp_path), "outside", 30 * 24 * HOUR)
    (cache.root / name).symlink_to(outside)
    os.utime(cache.root / name, (1, 1), follow_symlinks=False)
    cache.prune()
    cache.verify()
    assert (cache.root / name).is_symlink()
    assert [p.name for p in outside.iterdir()] == ["engine"]


def test_a_removal_that_was_cut_short_leaves_no_half_entry(cache, engine, monkeypatch):
    entry = cache.store(PARTS, engine)
    monkeypatch.setattr("trtconv.build.cache.store.removal.os.unlink", lambda *a, **k: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cache.remove(entry.key)
    monkeypatch.undo()
    assert cache.lookup(PARTS).reason == "the cache is empty"
    assert [n[:7] for n in cache.prune().removed] == [".trash-"]
    assert cache.survey().skipped == ()


WRITER = """
import os, sys
from pathlib import Path
from trtconv.build.cache.store import EngineCache
cache = EngineCache(Path(sys.argv[1]))
print("ready", flush=True)
for number in range(10**6):
    cache.store({"n": number % 3}, Path(sys.argv[2]), {"n": number})
"""


def test_killed_writers_leave_temporary_names_and_whole_entries(cache, tmp_path):
    source = tmp_path / "engine"
    source.write_bytes(b"e" * 2_000_000)
    for number in range(6):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(cache.root), str(source)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout.readline() == "ready\n"
        time.sleep(0.25 + 0.013 * number)
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        report = cache.verify()
        assert report.passed, report
        assert all(n.name.startswith((".new-", ".trash-")) for n in report.skipped), report
        cache.store({"n": -1}, source)
    for path in cache.root.glob(".new-*/*"):
        os.utime(path, (1, 1))
    for path in cache.root.glob(".new-*"):
        os.utime(path, (1, 1))
    assert cache.prune().skipped == ()
    assert cache.lookup({"n": -1}).entry.key == cache_key({"n": -1})
