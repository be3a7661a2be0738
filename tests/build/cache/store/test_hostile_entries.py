"""Entries that were poisoned, are malformed, or are not entries at all."""

import json
import os

import pytest

from tests.build.cache.store.conftest import PARTS
from trtconv.build.cache.store import cache_key
from trtconv.core.errors import InvalidRequestError

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


@pytest.fixture
def folder(cache, engine):
    """The folder of the one stored entry."""
    return cache.store(PARTS, engine, {"x": 1}).engine.parent


def rewritten(folder, **changes):
    record = json.loads((folder / "entry.json").read_text())
    (folder / "entry.json").write_text(json.dumps({**record, **changes}))


def linked(path, target):
    path.unlink()
    path.symlink_to(target)


def foreign(folder):
    """A file of the same content elsewhere."""
    path = folder.parent.parent / "foreign"
    path.write_bytes((folder / "engine").read_bytes())
    path.chmod(0o600)
    return path


def folder_instead(folder):
    (folder / "engine").unlink()
    (folder / "engine").mkdir()


def fifo_instead(folder):
    (folder / "engine").unlink()
    os.mkfifo(folder / "engine", 0o600)


def huge(folder):
    with open(folder / "entry.json", "r+b") as stream:
        stream.truncate(1 << 40)


DAMAGE = {
    "engine, same size": lambda f: (f / "engine").write_bytes(b"x" * 1000),
    "engine, cut off": lambda f: (f / "engine").write_bytes(b"e" * 999),
    "engine, longer": lambda f: (f / "engine").write_bytes(b"e" * 1001),
    "manifest, same size": lambda f: (f / "manifest.json").write_text('{"x": 2}'),
}
MALFORMED = {
    "record of another request": lambda f: rewritten(f, request={**PARTS, "precision": "fp16"}),
    "not JSON": lambda f: (f / "entry.json").write_text("{"),
    "empty": lambda f: (f / "entry.json").write_text(""),
    "a list": lambda f: (f / "entry.json").write_text("[]"),
    "nested": lambda f: (f / "entry.json").write_text("[" * 100_000),
    "nested request": lambda f: rewritten(f, request={"a": json.loads("[" * 150 + "]" * 150)}),
    "not UTF-8": lambda f: (f / "entry.json").write_bytes(b'{"schema": "\xff"}'),
    "another schema": lambda f: rewritten(f, schema=99),
    "request is a number": lambda f: rewritten(f, request=5),
    "files is a list": lambda f: rewritten(f, files=[]),
    "a part is missing": lambda f: rewritten(f, files={"engine": {"size": 1000, "sha256": "a" * 64}}),
    "size is a text": lambda f: rewritten(f, files={n: {"size": "1", "sha256": "a" * 64} for n in ("engine", "x")}),
    "path as a part": lambda f: rewritten(
        f, files={n: {"size": 1, "sha256": "a" * 64} for n in ("../../engine", "manifest.json")}
    ),
    "huge record": huge,
    "no engine": lambda f: (f / "engine").unlink(),
    "a folder for the engine": folder_instead,
    "a FIFO for the engine": fifo_instead,
    "a link for the engine": lambda f: linked(f / "engine", foreign(f)),
    "a link for the record": lambda f: linked(f / "entry.json", "/dev/zero"),
    "one file more": lambda f: (f / "notes.txt").write_text("mine"),
    "others can write to the engine": lambda f: (f / "engine").chmod(0o666),
    "others can write to the entry": lambda f: f.chmod(0o777),
}


@pytest.mark.parametrize("name", [*DAMAGE, *MALFORMED])
def test_it_is_never_served(cache, engine, folder, tmp_path, name):
    (DAMAGE | MALFORMED)[name](folder)
    target = tmp_path / "out.engine"
    target.write_bytes(b"the old one")
    answer = cache.restore(PARTS, target)
    assert answer.entry is None
    assert folder.name[:12] in answer.warning
    assert target.read_bytes() == b"the old one"
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []
    (aside,) = cache.root.glob(f".aside-{folder.name}-*")
    assert aside.name in answer.warning
    cache.store(PARTS, engine, {"x": 1})
    assert cache.restore(PARTS, target).entry.payload == {"x": 1}
    assert target.read_bytes() == b"e" * 1000


@pytest.mark.parametrize("name", [*DAMAGE, *MALFORMED])
def test_it_breaks_no_other_entry(cache, engine, folder, name):
    (DAMAGE | MALFORMED)[name](folder)
    other = {**PARTS, "precision": "bf16"}
    assert cache.lookup(other).entry is None
    cache.store(other, engine)
    assert cache.lookup(other).entry is not None


@pytest.mark.parametrize("name", DAMAGE)
def test_verify_removes_what_is_damaged(cache, folder, name):
    DAMAGE[name](folder)
    report = cache.verify()
    assert [e.key for e, _ in report.damaged] == [folder.name]
    assert not report.passed
    assert not folder.exists()
    assert report.skipped == ()


@pytest.mark.parametrize("name", MALFORMED)
def test_verify_names_what_is_malformed_and_nothing_removes_it(cache, folder, name):
    MALFORMED[name](folder)
    before = sorted(p.name for p in folder.iterdir())
    report = cache.verify()
    assert [(n.name, n.malformed) for n in report.skipped] == [(folder.name, True)]
    assert not report.passed
    cache.prune()
    assert not cache.remove(folder.name)
    assert sorted(p.name for p in folder.iterdir()) == before


@AS_ROOT
@pytest.mark.parametrize("part", ["", "engine", "entry.json", "manifest.json"])
def test_what_belongs_to_another_user_is_not_served(cache, folder, tmp_path, part):
    os.chown(folder / part, 54321, -1)
    answer = cache.restore(PARTS, tmp_path / "out.engine")
    assert answer.entry is None
    assert "belongs to another user" in answer.warning
    assert not (tmp_path / "out.engine").exists()


def test_a_link_under_the_name_of_an_entry(cache, engine, folder, tmp_path):
    """The whole entry lies elsewhere: it is not served, and storing anew leaves it as it is."""
    elsewhere = tmp_path / "elsewhere"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    assert cache.lookup({**PARTS, "n": 1}).entry is None
    assert [n.name for n in cache.verify().skipped] == [folder.name]
    assert not cache.remove(folder.name)
    assert cache.lookup(PARTS).entry is None
    cache.store(PARTS, engine)
    assert cache.lookup(PARTS).entry is not None
    assert len(list(elsewhere.iterdir())) == 3


def test_the_caller_may_refuse_an_entry(cache, folder, tmp_path):
    answer = cache.restore(PARTS, tmp_path / "out.engine", lambda entry: f"refused {entry.payload['x']}")
    assert answer.entry is None
    assert "(refused 1)" in answer.warning
    assert not (tmp_path / "out.engine").exists()
    assert not folder.exists()


def test_an_engine_that_changed_after_it_was_built_is_not_stored(cache, engine):
    with pytest.raises(InvalidRequestError, match="changed after it was built"):
        cache.store(PARTS, engine, sha256="0" * 64)
    assert not (cache.root / cache_key(PARTS)).exists()
    assert list(cache.root.glob(".new-*")) == []


def test_an_output_that_cannot_be_written_is_no_damage(cache, folder, tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(InvalidRequestError, match="is a directory"):
        cache.restore(PARTS, tmp_path / "folder")
    assert cache.lookup(PARTS).entry is not None
