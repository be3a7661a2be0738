import os
import subprocess
import sys
import time

import pytest

from trtconv.core.files import conversion_stamp
from trtconv.core.files.conversion_stamp import NAME, FilesRead, read_stamp, write_stamp
from trtconv.core.files.source_record import user_files

COMMAND = {"module": "net.py:make", "output": "out", "args": ("a=1",)}


@pytest.fixture
def place(tmp_path):
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


def convert(place):
    with FilesRead() as seen:
        sys.path.insert(0, str(place))
        try:
            exec((place / "net.py").read_text(), {})
        finally:
            sys.path.remove(str(place))
            sys.modules.pop("part", None)
    write_stamp(place / "out", COMMAND, seen.paths, [("verdict", "good")], {"passed": True})
    return seen


def test_an_unchanged_conversion_gives_its_answer_again(place):
    convert(place)
    stamp, reason = read_stamp(place / "out", COMMAND)
    assert reason == ""
    assert stamp.lines == (("verdict", "good"),)
    assert stamp.data == {"passed": True}


def test_every_file_of_the_user_is_seen_and_nothing_else(place):
    seen = convert(place)
    names = {p.name for p in user_files(seen.paths, place / "out" / "model.onnx")}
    assert {"net.py", "part.py", "sizes.txt"} <= names
    assert not {n for n in names if n in ("pathlib.py", "json", "model.engine")}
    again = set(seen.paths)
    (place / "sizes.txt").read_text()
    assert seen.paths == again, "after the block nothing is recorded"


@pytest.mark.parametrize("name", ["net.py", "part.py", "sizes.txt"])
def test_a_changed_input_is_named(place, name):
    convert(place)
    (place / name).write_text((place / name).read_text() + "#")
    stamp, reason = read_stamp(place / "out", COMMAND)
    assert stamp is None
    assert name in reason


def test_the_same_content_with_a_new_time_is_unchanged(place):
    convert(place)
    os.utime(place / "part.py", (1, 1))
    assert read_stamp(place / "out", COMMAND)[0] is not None


def test_a_file_that_is_gone_is_a_change(place):
    convert(place)
    (place / "sizes.txt").unlink()
    assert "sizes.txt" in read_stamp(place / "out", COMMAND)[1]


def test_an_output_that_was_touched_is_a_change(place):
    convert(place)
    (place / "out" / "model.engine").write_bytes(b"enginE")
    assert "model.engine" in read_stamp(place / "out", COMMAND)[1]


def test_another_command_or_environment_is_a_change(place, monkeypatch):
    convert(place)
    assert read_stamp(place / "out", {**COMMAND, "args": ()})[1] == "the command is another one"
    monkeypatch.setattr(conversion_stamp, "environment_key", lambda: {"python": "other"})
    assert read_stamp(place / "out", COMMAND)[1] == "what is installed changed"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": 0}'])
def test_a_damaged_stamp_is_no_stamp(place, text):
    convert(place)
    (place / "out" / NAME).write_text(text)
    assert read_stamp(place / "out", COMMAND)[0] is None


def test_without_a_stamp(tmp_path):
    assert read_stamp(tmp_path, COMMAND) == (None, "there is no earlier conversion here")


def test_it_loads_nothing_heavy_and_is_fast(place):
    convert(place)
    code = (
        "import sys; from pathlib import Path; from trtconv.core.files.conversion_stamp import read_stamp;"
        f"stamp, why = read_stamp(Path({str(place / 'out')!r}), {COMMAND!r}); assert stamp, why;"
        "assert not {'torch', 'onnx', 'numpy', 'pydantic'} & set(sys.modules)"
    )

    def seconds(program):
        best = 9.0
        for _ in range(7):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], check=True)
            best = min(best, time.perf_counter() - start)
        return best

    assert seconds(code) < 2 * seconds("import trtconv, onnx")
