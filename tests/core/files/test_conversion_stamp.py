import os
import subprocess
import sys
from pathlib import Path

import pytest

from trtconv.core.files import conversion_stamp
from trtconv.core.files.conversion_stamp import NAME, FilesRead, read_stamp, write_stamp
from trtconv.core.files.source_record import user_files

COMMAND = {"module": "net.py:make", "output": "out", "args": ("a=1",)}


@pytest.fixture
def folder(tmp_path):
    """A folder with a module that reads a data file, and a finished conversion."""
    (tmp_path / "sizes.txt").write_text("3")
    (tmp_path / "part.py").write_text(
        "from pathlib import Path\nSIZE = int(open(Path(__file__).with_name('sizes.txt')).read())\n"
    )
    (tmp_path / "net.py").write_text("import part\n")
    out = tmp_path / "out"
    out.mkdir()
    (out / "model.engine").write_bytes(b"engine")
    return tmp_path


def convert(folder):
    with FilesRead() as files_read:
        sys.path.insert(0, str(folder))
        try:
            exec((folder / "net.py").read_text(), {})
        finally:
            sys.path.remove(str(folder))
            sys.modules.pop("part", None)
    write_stamp(folder / "out", COMMAND, files_read.paths, [("verdict", "good")], {"passed": True})
    return files_read


def test_an_unchanged_conversion_gives_its_answer_again(folder):
    convert(folder)
    stamp, reason = read_stamp(folder / "out", COMMAND)
    assert reason == ""
    assert stamp.lines == (("verdict", "good"),)
    assert stamp.data == {"passed": True}


def test_every_file_of_the_user_is_seen_and_nothing_else(folder):
    files_read = convert(folder)
    names = {p.name for p in user_files(files_read.paths, folder / "out" / "model.onnx")}
    assert {"net.py", "part.py", "sizes.txt"} <= names
    assert not {n for n in names if n in ("pathlib.py", "json", "model.engine")}
    again = set(files_read.paths)
    (folder / "sizes.txt").read_text()
    assert files_read.paths == again, "after the block nothing is recorded"


@pytest.mark.parametrize("name", ["net.py", "part.py", "sizes.txt"])
def test_a_changed_input_is_named(folder, name):
    convert(folder)
    (folder / name).write_text((folder / name).read_text() + "#")
    stamp, reason = read_stamp(folder / "out", COMMAND)
    assert stamp is None
    assert name in reason


def test_the_same_content_with_a_new_time_is_unchanged(folder):
    convert(folder)
    os.utime(folder / "part.py", (1, 1))
    assert read_stamp(folder / "out", COMMAND)[0] is not None


def test_a_file_that_is_gone_is_a_change(folder):
    convert(folder)
    (folder / "sizes.txt").unlink()
    assert "sizes.txt" in read_stamp(folder / "out", COMMAND)[1]


def test_an_output_that_was_touched_is_a_change(folder):
    convert(folder)
    (folder / "out" / "model.engine").write_bytes(b"enginE")
    assert "model.engine" in read_stamp(folder / "out", COMMAND)[1]


def test_another_command_or_environment_is_a_change(folder, monkeypatch):
    convert(folder)
    assert read_stamp(folder / "out", {**COMMAND, "args": ()})[1] == "the command is different"
    monkeypatch.setattr(conversion_stamp, "environment_key", lambda: {"python": "other"})
    assert read_stamp(folder / "out", COMMAND)[1] == "the installed packages changed"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 0}'])
def test_a_damaged_stamp_is_no_stamp(folder, text):
    convert(folder)
    (folder / "out" / NAME).write_text(text)
    assert read_stamp(folder / "out", COMMAND)[0] is None


def test_without_a_stamp(tmp_path):
    assert read_stamp(tmp_path, COMMAND) == (None, "no earlier conversion was found here")


def test_it_loads_nothing_heavy(folder):
    convert(folder)
    code = (
        "import sys; from pathlib import Path; from trtconv.core.files.conversion_stamp import read_stamp;"
        f"stamp, why = read_stamp(Path({str(folder / 'out')!r}), {COMMAND!r}); assert stamp, why;"
        "assert not {'torch', 'onnx', 'numpy', 'pydantic'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_file_that_another_thread_opens_meanwhile_is_no_error(tmp_path, monkeypatch):
    """A module's thread (a loader of data) reads on while the list is made."""
    for name in "abc":
        (tmp_path / name).write_text("")
    resolve = conversion_stamp.Path.resolve
    with FilesRead() as files_read:
        files_read.paths.update(str(tmp_path / n) for n in "ab")

        def resolved(path):
            (tmp_path / "c").open().close()
            return resolve(path)

        monkeypatch.setattr(conversion_stamp.Path, "resolve", resolved)
        outside = files_read.outside(tmp_path / "folder")
    assert {str(tmp_path / n) for n in "ab"} <= outside


def test_a_process_has_one_audit_hook_however_many_conversions_it_makes(monkeypatch, tmp_path):
    hooks = []
    monkeypatch.setattr(conversion_stamp.sys, "addaudithook", hooks.append)
    for _ in range(3):
        with FilesRead(), FilesRead():
            pass
    assert len(hooks) <= 1


def test_blocks_within_blocks_see_what_is_read_in_them(tmp_path):
    names = [tmp_path / name for name in ("outer", "inner", "later", "after")]
    for name in names:
        name.write_text("x")
    with FilesRead() as outer:
        names[0].read_text()
        with FilesRead() as inner:
            names[1].read_text()
        names[2].read_text()
    names[3].read_text()
    own = [{Path(p).name for p in block.paths if Path(p).parent == tmp_path} for block in (outer, inner)]
    assert own == [{"outer", "inner", "later"}, {"inner"}]
