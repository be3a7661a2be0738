"""Which folders are taken for a cache, and with which permissions."""

import os
import stat

import pytest

from tests.build.cache.store.conftest import PARTS
from trtconv.build.cache.store import EngineCache
from trtconv.build.cache.store.root import MARKER, TAG
from trtconv.core.errors import InvalidRequestError, UnsafeFolderError

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
CALLS = {
    "lookup": lambda c, e: c.lookup(PARTS),
    "restore": lambda c, e: c.restore(PARTS, e.with_name("out")),
    "store": lambda c, e: c.store(PARTS, e),
    "entries": lambda c, e: c.entries(),
    "verify": lambda c, e: c.verify(),
    "prune": lambda c, e: c.prune(),
    "remove": lambda c, e: c.remove("a" * 64),
    "find": lambda c, e: c.find("a"),
}


@pytest.fixture(params=CALLS)
def call(request, engine):
    return lambda cache: CALLS[request.param](cache, engine)


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_everything_is_private_whatever_the_umask(tmp_path, engine, umask):
    cache = EngineCache(tmp_path / "a" / "b" / "cache")
    before = os.umask(umask)
    try:
        cache.store(PARTS, engine, {"x": 1})
    finally:
        os.umask(before)
    assert mode(tmp_path / "a") == mode(tmp_path / "a" / "b") == mode(cache.root) == 0o700
    paths = [*cache.root.rglob("*")]
    assert len(paths) == 7
    assert {mode(p) for p in paths if p.is_dir()} == {0o700}
    assert {mode(p) for p in paths if not p.is_dir()} == {0o600}


def test_a_new_cache_is_marked_and_tagged(cache, engine):
    cache.store(PARTS, engine)
    assert (cache.root / TAG).read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    assert '"version": 2' in (cache.root / MARKER).read_text()


def test_an_empty_folder_is_adopted_and_made_private(cache, engine):
    cache.root.mkdir(mode=0o755)
    assert cache.entries() == ()
    assert list(cache.root.iterdir()) == [], "reading marks nothing"
    cache.store(PARTS, engine)
    assert mode(cache.root) == 0o700
    assert cache.lookup(PARTS).entry is not None


def test_a_folder_with_other_files_is_never_adopted(cache, call):
    (cache.root / "Documents").mkdir(parents=True)
    (cache.root / "Documents" / "thesis.txt").write_text("years")
    with pytest.raises(InvalidRequestError, match="not an engine cache of trtconv and not empty") as caught:
        call(cache)
    assert "TRTCONV_CACHE" in caught.value.hint
    assert [p.name for p in cache.root.iterdir()] == ["Documents"]
    assert (cache.root / "Documents" / "thesis.txt").read_text() == "years"


@pytest.mark.parametrize("text", ["", "{", "[2]", '{"version": 1}', "[" * 4000])
def test_a_marker_of_another_kind_is_refused(cache, engine, call, text):
    cache.store(PARTS, engine)
    (cache.root / MARKER).write_text(text)
    with pytest.raises(InvalidRequestError, match="not the marker of an engine cache of version 2"):
        call(cache)


def test_a_link_is_no_marker(cache, call, tmp_path):
    (tmp_path / "other").write_text('{"version": 2}')
    cache.root.mkdir()
    (cache.root / MARKER).symlink_to(tmp_path / "other")
    with pytest.raises(InvalidRequestError, match="not the marker"):
        call(cache)


@pytest.mark.parametrize("bits", [0o777, 0o770, 0o702])
def test_a_root_that_others_can_write_to_is_refused(cache, engine, call, bits):
    cache.store(PARTS, engine)
    cache.root.chmod(bits)
    with pytest.raises(UnsafeFolderError, match="other users can write") as caught:
        call(cache)
    assert caught.value.exit_code == 5
    assert f"chmod 700 {cache.root}" in caught.value.hint


@AS_ROOT
def test_a_root_of_another_user_is_refused(cache, engine, call):
    cache.store(PARTS, engine)
    os.chown(cache.root, 54321, -1)
    with pytest.raises(UnsafeFolderError, match="belongs to 54321, not to root") as caught:
        call(cache)
    assert "chown -R root" in caught.value.hint


def test_the_root_may_be_reached_by_a_link(tmp_path, engine):
    (tmp_path / "disk").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    cache = EngineCache(tmp_path / "link")
    cache.store(PARTS, engine)
    assert cache.lookup(PARTS).entry is not None
    assert (tmp_path / "disk" / MARKER).is_file()
