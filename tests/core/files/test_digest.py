"""Digests are remembered only for files that nothing has touched since."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from trtconv.core.files import digest
from trtconv.core.files.digest import sha256_file

LARGE = b"a" * (2 << 20)


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    monkeypatch.setattr(digest, "_digests", {})


def settled(path: Path, data: bytes = LARGE) -> Path:
    path.write_bytes(data)
    time.sleep(0.08)
    return path


def plain(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_large_file_is_read_once(tmp_path):
    path = settled(tmp_path / "weights")
    first = sha256_file(path)
    [stamp] = digest._digests
    digest._digests[stamp] = "remembered"
    assert first == plain(path)
    assert sha256_file(path) == "remembered"


def test_another_link_to_it_is_the_same_file(tmp_path):
    path = settled(tmp_path / "weights")
    os.link(path, tmp_path / "other")
    time.sleep(0.08)
    sha256_file(path)
    assert sha256_file(tmp_path / "other") == plain(path)
    assert len(digest._digests) == 1


@pytest.mark.parametrize("way", ["written in place", "one byte", "replaced", "times put back"])
def test_what_was_touched_is_read_again(tmp_path, way):
    path = settled(tmp_path / "weights")
    sha256_file(path)
    times = path.stat()
    if way == "written in place":
        path.write_bytes(b"b" * len(LARGE))
    elif way == "one byte":
        with open(path, "r+b") as stream:
            stream.seek(1 << 20)
            stream.write(b"b")
    elif way == "replaced":
        settled(tmp_path / "new", b"b" * len(LARGE))
        os.replace(tmp_path / "new", path)
    else:
        path.write_bytes(b"b" * len(LARGE))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert sha256_file(path) == plain(path)


def test_one_that_was_just_written_is_not_remembered(tmp_path, monkeypatch):
    """A change within one tick of the kernel's clock has the same times."""
    path = settled(tmp_path / "weights")
    monkeypatch.setattr(time, "time_ns", lambda: path.stat().st_ctime_ns + 1_000_000)
    sha256_file(path)
    assert not digest._digests


def test_whole_seconds_are_no_fine_times(tmp_path, monkeypatch):
    path = settled(tmp_path / "weights")
    stat = os.fstat

    def coarse(number):
        status = stat(number)
        fields = [*status]
        return os.stat_result(fields, {"st_mtime_ns": 10**9, "st_ctime_ns": 10**9 * (time.time_ns() // 10**9)})

    monkeypatch.setattr(os, "fstat", coarse)
    sha256_file(path)
    assert not digest._digests


def test_small_files_are_read_each_time(tmp_path):
    path = settled(tmp_path / "config", b"a")
    sha256_file(path)
    assert not digest._digests


def test_no_more_are_remembered_than_so_many(tmp_path, monkeypatch):
    monkeypatch.setattr(digest, "_MOST", 2)
    for name in "abc":
        sha256_file(settled(tmp_path / name, LARGE + name.encode()))
    assert len(digest._digests) == 2


def test_a_missing_file_is_told_by_its_name(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        sha256_file(tmp_path / "absent")
