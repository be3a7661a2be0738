"""`trtconv cache` and `build` on folders that hold other things than cached engines."""

import hashlib
import os

import pytest

from tests.backends.onnx_models import conv_net
from trtconv.build.cache.store import EngineCache

PARTS = {"model": {"m.onnx": "a" * 64}, "backend": "tensorrt 11.1"}
COMMANDS = {
    "ls": ("ls",),
    "ls --json": ("ls", "--json"),
    "verify": ("verify",),
    "prune": ("prune",),
    "rm --all": ("rm", "--all"),
    "rm KEY": ("rm", "0"),
}


def snapshot(folder):
    """Every path with what it is, links not followed."""
    return {
        str(p.relative_to(folder)): os.readlink(p)
        if p.is_symlink()
        else "folder"
        if p.is_dir()
        else hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
    }


@pytest.fixture
def root(monkeypatch, tmp_path):
    folder = tmp_path / "root"
    monkeypatch.setenv("TRTCONV_CACHE", str(folder))
    return folder


def add_foreign(root, outside):
    """What a user may have there, by any name: none of it is the cache's."""
    outside.mkdir()
    (outside / "thesis.txt").write_text("years")
    root.mkdir(mode=0o700, exist_ok=True)
    for name in ("Documents", "b" * 64, "engine", ".git"):
        (root / name).mkdir()
        (root / name / "notes.txt").write_text(name)
    (root / "notes.txt").write_text("mine")
    (root / "link").symlink_to(outside)
    (root / ("c" * 64)).symlink_to(outside)
    (root / ("d" * 64)).write_text("a file")
    (root / "\x1b[31mred").mkdir()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_folder_without_a_marker_is_refused_and_untouched(trtconv, root, tmp_path, command):
    add_foreign(root, tmp_path / "outside")
    before = snapshot(tmp_path)
    code, out, err = trtconv("cache", *COMMANDS[command])
    assert code == 2
    assert out == ""
    assert "not an engine cache of trtconv and not empty" in err
    assert "set TRTCONV_CACHE to a new or an empty folder" in err
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_foreign_files_in_a_cache_stay(trtconv, root, tmp_path, command):
    (tmp_path / "e").write_bytes(b"e" * 10)
    entry = EngineCache(root).store(PARTS, tmp_path / "e")
    add_foreign(root, tmp_path / "outside")
    before = snapshot(tmp_path)
    words = ["rm", entry.key] if command == "rm KEY" else COMMANDS[command]
    code, out, _ = trtconv("cache", *words)
    removed = {n for n in before if n.startswith(f"root/{entry.key}")} if "rm" in command else set()
    assert snapshot(tmp_path) == {n: what for n, what in before.items() if n not in removed}
    assert code == (1 if command == "verify" else 0), out
    if "json" not in command:
        assert "left alone: Documents (not an entry of this cache)" in out
        assert f"left alone: {'b' * 64} (malformed: it lacks 'engine')" in out
        assert f"left alone: {'c' * 64} (malformed: it is not a folder that can be read)" in out
        assert "\x1b" not in out


@pytest.mark.parametrize("command", ["ls", "verify", "prune", "rm --all"])
def test_a_cache_that_others_can_write_to_names_the_command_to_run(trtconv, root, tmp_path, command):
    (tmp_path / "e").write_bytes(b"e" * 10)
    EngineCache(root).store(PARTS, tmp_path / "e")
    root.chmod(0o770)
    code, _, err = trtconv("cache", *COMMANDS[command])
    assert code == 5
    assert f"chmod 700 {root}" in err


@pytest.mark.parametrize(("bits", "code"), [(0o700, 2), (0o777, 5)])
def test_build_refuses_such_a_cache_before_it_builds(trtconv, root, tmp_path, bits, code):
    pytest.importorskip("tensorrt_rtx")
    conv_net(tmp_path / "m.onnx")
    (root / "Documents").mkdir(parents=True)
    root.chmod(bits)
    assert trtconv("build", tmp_path / "m.onnx", "--backend", "tensorrt-rtx")[0] == code
    assert not (tmp_path / "m.engine").exists()
    assert [p.name for p in root.iterdir()] == ["Documents"]


@pytest.mark.parametrize("command", ["ls", "verify", "prune", "rm --all"])
def test_a_cache_that_is_not_there_yet_is_empty(trtconv, root, command):
    assert trtconv("cache", *COMMANDS[command])[0] == 0
    assert not root.exists()
