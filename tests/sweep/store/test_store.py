"""The store: whole results or none, whoever else is writing."""

import os
import threading

import pytest

from trtconv.core.errors import InvalidRequestError, MissingDependencyError
from trtconv.sweep.store.storage import open_storage
from trtconv.sweep.store.store import DamagedResultError, Store


@pytest.fixture(params=["folder", "memory"])
def location(request, tmp_path):
    if request.param == "folder":
        return str(tmp_path / "store")
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    return f"memory://{tmp_path}"


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_a_result_comes_back(location, tmp_path):
    store = Store(open_storage(location))
    assert not store.has("k1")
    assert store.result("k1") is None
    files = store.keep_files([write(tmp_path, "a.onnx", "graph"), write(tmp_path, "b", "weights")])
    assert store.publish("k1", files, {"n": 1})
    other = Store(open_storage(location))
    assert other.has("k1")
    assert other.result("k1").facts == {"n": 1}
    target = tmp_path / "out"
    target.mkdir()
    other.fetch("k1", target)
    assert {p.name: p.read_text() for p in target.iterdir()} == {"a.onnx": "graph", "b": "weights"}


def test_the_first_writer_wins(location, tmp_path):
    store = Store(open_storage(location))
    first = store.keep_files([write(tmp_path, "a", "one")])
    assert store.publish("k1", first, {"by": 1})
    second = store.keep_files([write(tmp_path, "a", "two")])
    assert not store.publish("k1", second, {"by": 2})
    assert store.result("k1").facts == {"by": 1}


def test_a_damaged_file_is_noticed_and_its_record_goes(location, tmp_path):
    storage = open_storage(location)
    store = Store(storage)
    files = store.keep_files([write(tmp_path, "a", "good")])
    store.publish("k1", files, {})
    name = f"content/{files[0].sha256[:2]}/{files[0].sha256}"
    storage.remove(name)
    storage.put_bytes(name, b"evil")
    with pytest.raises(DamagedResultError, match="damaged"):
        store.fetch("k1", tmp_path)
    assert not store.has("k1")
    store.publish("k2", files, {})
    with pytest.raises(DamagedResultError, match="is gone"):
        store.fetch("k2", tmp_path)


def test_sources_are_noted_by_set(location):
    store = Store(open_storage(location))
    first = store.add_sources("k1", {"net.py": "1"})
    assert store.add_sources("k1", {"net.py": "1"}) == first
    second = store.add_sources("k1", {"net.py": "2", "blocks.py": "3"})
    assert first != second
    assert sorted(map(len, store.sources("k1"))) == [1, 2]
    assert store.sources("k2") == []


def test_many_writers_at_once(tmp_path):
    """Six threads publish the same four keys, readers see whole results only."""
    location, wins, observed = str(tmp_path / "store"), [], []
    source = [write(tmp_path, f"f{i}", f"content {i}" * 1000) for i in range(4)]

    def work(number):
        store = Store(open_storage(location))
        for i, path in enumerate(source):
            stored = store.result(f"k{i}")
            if stored is not None:
                folder = tmp_path / f"out{number}-{i}"
                folder.mkdir()
                store.fetch(f"k{i}", folder)
                observed.append((folder / path.name).read_text() == path.read_text())
            wins.append((i, store.publish(f"k{i}", store.keep_files([path]), {})))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(wins) == 24
    assert sorted(i for i, won in wins if won) == list(range(4))
    assert all(observed)
    assert not os.listdir(tmp_path / "store" / "temporary")


def test_locations_that_cannot_be(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidRequestError, match="is not a directory"):
        open_storage(str(tmp_path / "file"))
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    with pytest.raises(InvalidRequestError, match="cannot be opened"):
        open_storage("nosuchprotocol://x")
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(MissingDependencyError, match="fsspec"):
        open_storage("s3://x")
