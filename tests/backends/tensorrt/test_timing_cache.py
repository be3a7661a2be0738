import multiprocessing
import os
import zipfile

import pytest

from trtconv.backends.cuda.driver import Gpu
from trtconv.backends.protocol import Capabilities, EngineSettings
from trtconv.backends.tensorrt.timing_cache import attach_cache, cache_key, merge_cache, read_cache, unite_caches
from trtconv.core.errors import InvalidRequestError

GPU = Gpu(0, "NVIDIA H200", "9.0", 1, 132, "ab")


def key_of(version="8.6.0", gpu=GPU, driver="13.0", **options):
    capabilities = Capabilities("tensorrt", version, 8, True, True, False)
    return cache_key(capabilities, gpu, driver, EngineSettings("m.onnx", (), options=options))


class Cache:
    """A timing cache of lines: combining is the union."""

    def __init__(self, blob):
        self.lines = set(blob.split(b"\n")) - {b""}

    def combine(self, other, ignore_mismatch):
        assert not ignore_mismatch
        self.lines |= other.lines
        return True

    def serialize(self):
        return b"\n".join(sorted(self.lines))


class Config:
    """Refuses caches that begin with `foreign`, as TensorRT refuses those of another version."""

    def __init__(self):
        self.cache = None

    def create_timing_cache(self, blob):
        return Cache(blob)

    def set_timing_cache(self, cache, ignore_mismatch):
        if b"foreign" in cache.lines:
            return False
        self.cache = cache
        return True

    def get_timing_cache(self):
        return self.cache


def build(path, key, measured):
    config = Config()
    before = attach_cache(config, path, key)
    config.cache.lines.add(measured)
    return before, merge_cache(config, path, key, before)


def test_each_fact_changes_the_key():
    other_gpu = Gpu(0, "NVIDIA A100", "8.0", 1, 108, "cd")
    keys = [key_of(), key_of("8.6.1"), key_of(gpu=other_gpu), key_of(driver="12.8"), key_of(tf32=True)]
    assert len({k.entry for k in keys}) == len(keys)
    assert key_of().entry == key_of().entry


def test_the_second_build_starts_from_the_first(tmp_path):
    path = tmp_path / "deep" / "timing.cache"
    assert build(path, key_of(), b"one")[0] == b""
    assert build(path, key_of(), b"two")[0] == b"one"
    assert read_cache(path, key_of()) == b"one\ntwo"
    assert read_cache(path, key_of("8.6.1")) == b""


def test_a_build_that_ran_beside_this_one_is_merged(tmp_path):
    path = tmp_path / "timing.cache"
    config = Config()
    before = attach_cache(config, path, key_of())
    build(path, key_of(), b"of the other")
    config.cache.lines.add(b"of this")
    merge_cache(config, path, key_of(), before)
    assert read_cache(path, key_of()) == b"of the other\nof this"


def test_keys_do_not_disturb_each_other(tmp_path):
    path = tmp_path / "timing.cache"
    build(path, key_of(), b"one")
    build(path, key_of(driver="12.8"), b"two")
    assert read_cache(path, key_of()) == b"one"


def test_a_cache_that_tensorrt_refuses_is_replaced(tmp_path):
    path = tmp_path / "timing.cache"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(key_of().entry, b"foreign")
    assert build(path, key_of(), b"one")[0] == b""


def test_another_file(tmp_path):
    path = tmp_path / "timing.cache"
    path.write_bytes(b"no cache")
    with pytest.raises(InvalidRequestError, match="is not a timing cache"):
        read_cache(path, key_of())


def test_caches_of_machines_without_a_common_lock_are_merged_by_the_next_build(tmp_path):
    paths = [tmp_path / f"{n}.cache" for n in ("a", "b", "c")]
    build(paths[0], key_of(), b"of a")
    build(paths[1], key_of(), b"of b")
    build(paths[1], key_of(driver="12.8"), b"other driver")
    build(paths[2], key_of(), b"of c")
    union = tmp_path / "union.cache"
    unite_caches(paths, union)
    assert build(union, key_of(), b"of this")[0] == b"of a"
    assert read_cache(union, key_of()).split(b"\n") == [b"of a", b"of b", b"of c", b"of this"]
    assert read_cache(union, key_of(driver="12.8")) == b"other driver"
    with zipfile.ZipFile(union) as archive:
        assert len(archive.namelist()) == 4, "what was merged is not held twice"


def test_a_fleet_s_gpus_of_one_kind_share_what_they_measured():
    assert key_of(gpu=Gpu(1, GPU.name, GPU.compute_capability, 1, 132, "cd")).entry == key_of().entry


def _flip(path, data):
    """Damage the bytes of one member, whose checksum then differs."""
    content = path.read_bytes()
    assert content.count(data) == 1
    path.write_bytes(content.replace(data, bytes(reversed(data))))


def test_a_damaged_member_costs_itself_alone(tmp_path):
    path = tmp_path / "timing.cache"
    other = key_of(driver="12.8")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(key_of().entry, b"abcdefgh")
        archive.writestr(other.entry, b"12345678")
    _flip(path, b"abcdefgh")
    assert read_cache(path, key_of()) == b""
    assert build(path, other, b"two")[0] == b"12345678"
    assert read_cache(path, other) == b"12345678\ntwo"
    assert build(path, key_of(), b"one") == (b"", 3)


def test_a_member_that_claims_too_much_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "timing.cache"
    build(path, key_of(), b"one" * 100)
    monkeypatch.setattr("trtconv.backends.tensorrt.timing_cache._ENTRY_LIMIT", 299)
    assert read_cache(path, key_of()) == b""


def test_an_archive_of_something_else_is_never_rewritten(tmp_path):
    path = tmp_path / "weights.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("thesis.txt", "years")
    before = path.read_bytes()
    with pytest.raises(InvalidRequestError, match=r"it holds 'thesis\.txt'"):
        build(path, key_of(), b"one")
    assert path.read_bytes() == before


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_not_a_file_is_refused_without_opening_it(tmp_path, make):
    make(tmp_path / "timing.cache")
    with pytest.raises(InvalidRequestError, match="not a regular file"):
        read_cache(tmp_path / "timing.cache", key_of())


def _parallel(path, number):
    for step in range(5):
        build(path, key_of(), f"{number}-{step}".encode())


def test_parallel_builds_lose_nothing(tmp_path):
    path = tmp_path / "timing.cache"
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=_parallel, args=(path, n)) for n in range(3)]
    [c.start() for c in children]
    [c.join() for c in children]
    assert [c.exitcode for c in children] == [0, 0, 0]
    assert len(read_cache(path, key_of()).split(b"\n")) == 15
