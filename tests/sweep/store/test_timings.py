"""Timing caches in the store, under writers side by side."""

import multiprocessing
import zipfile

import pytest

from trtconv.sweep.store.storage import FolderStorage, open_storage
from trtconv.sweep.store.timings import fetch_timings, publish_timings

SCOPE = "scope"
ENTRY = "0" * 24


def write(path, lines):
    """A cache whose entries are lines, one key each: what two builds measure is then in the union."""
    with zipfile.ZipFile(path, "w") as archive:
        for line in lines:
            archive.writestr(f"{line:024x}.timing", str(line))


def lines_of(path):
    with zipfile.ZipFile(path) as archive:
        return {int(n[:24], 16) for n in archive.namelist()}


def build(storage, folder, line, scope=SCOPE):
    """What a build does: start from what there is, add what it measured, leave that."""
    folder.mkdir(exist_ok=True)
    path = folder / "timing.cache"
    path.unlink(missing_ok=True)
    merged = fetch_timings(storage, scope, path)
    before = lines_of(path) if merged else set()
    write(path, sorted(before | {line}))
    publish_timings(storage, scope, path, merged)
    return before


@pytest.fixture(params=["folder", "memory"])
def storage(request, tmp_path):
    if request.param == "memory":
        pytest.importorskip("fsspec")
        return open_storage(f"memory://timings-{tmp_path.name}")
    return open_storage(str(tmp_path / "store"))


def test_each_build_starts_from_what_all_before_it_measured(storage, tmp_path):
    assert build(storage, tmp_path / "a", 1) == set()
    assert build(storage, tmp_path / "a", 2) == {1}
    assert build(storage, tmp_path / "b", 3) == {1, 2}
    assert build(storage, tmp_path / "b", 4, "other GPU") == set()
    assert len(storage.names(f"timings/{SCOPE}")) == 2, "what was taken up is gone"


def test_builds_side_by_side_are_united_by_the_next_one(storage, tmp_path):
    build(storage, tmp_path, 1)
    one, two = tmp_path / "one", tmp_path / "two"
    merged = [fetch_timings(storage, SCOPE, path) for path in (one, two)]
    write(one, [1, 2])
    write(two, [1, 3])
    publish_timings(storage, SCOPE, one, merged[0])
    publish_timings(storage, SCOPE, two, merged[1])
    assert build(storage, tmp_path, 4) == {1, 2, 3}
    assert len(storage.names(f"timings/{SCOPE}")) == 2


def test_a_build_that_measured_nothing_new_leaves_nothing(storage, tmp_path):
    build(storage, tmp_path, 1)
    names = storage.names(f"timings/{SCOPE}")
    build(storage, tmp_path, 1)
    assert storage.names(f"timings/{SCOPE}") == names
    publish_timings(storage, SCOPE, tmp_path / "no build wrote one", ())
    assert storage.names(f"timings/{SCOPE}") == names


@pytest.mark.parametrize("content", [b"damaged", b""])
def test_a_damaged_cache_is_measured_anew(storage, tmp_path, content):
    build(storage, tmp_path, 1)
    (name,) = (n for n in storage.names(f"timings/{SCOPE}") if n.endswith(".cache"))
    storage.remove(f"timings/{SCOPE}/{name}")
    if content:
        storage.put_bytes(f"timings/{SCOPE}/{name}", content)
    assert build(storage, tmp_path, 2) == set()
    assert build(storage, tmp_path, 3) == {2}


def _builds(root, folder, first):
    for line in range(first, first + 6):
        build(FolderStorage(root), folder, line)


def test_parallel_writers_lose_nothing(tmp_path):
    context = multiprocessing.get_context("fork")
    folders = [tmp_path / f"builder-{n}" for n in range(4)]
    children = [context.Process(target=_builds, args=(tmp_path / "store", f, 10 * i)) for i, f in enumerate(folders)]
    [c.start() for c in children]
    [c.join() for c in children]
    assert [c.exitcode for c in children] == [0] * 4
    assert len(build(FolderStorage(tmp_path / "store"), tmp_path / "last", 99)) == 24
