"""One writer at a time for a set of files, whatever became of the last one. Processes are real."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from trtconv.core.artifacts import write_json, write_text
from trtconv.core.errors import InvalidRequestError, OutputBusyError
from trtconv.core.files.conversion_stamp import FilesRead
from trtconv.core.files.private_folder import private_temporary_folder, process_label, remove_stale_files
from trtconv.core.files.set_lock import SUFFIX, locked_set, remove_leftovers
from trtconv.core.files.source_record import user_files

HOLDER = """
import os, sys
from pathlib import Path
from trtconv.core.files.set_lock import locked_set
with locked_set(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""
# Every writer writes five files of the set with its number; afterwards they must all be of one writer.
WRITER = """
import sys, time
from pathlib import Path
from trtconv.core.artifacts import write_text
from trtconv.core.errors import OutputBusyError
from trtconv.core.files.set_lock import locked_set
folder, number = Path(sys.argv[1]), sys.argv[2]
sys.stdin.readline()
try:
    with locked_set(folder / "model.onnx"):
        for name in ("model.onnx", "model.trt.onnx", "model.engine", "model.engine.json", "model.rewrites.json"):
            write_text(folder / name, number)
            time.sleep(0.01)
except OutputBusyError as error:
    sys.exit(7)
"""


def start(script, *words):
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@pytest.fixture
def holder(tmp_path):
    process = start(HOLDER, tmp_path / "model.engine")
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_process_is_refused_by_name(holder, tmp_path):
    with (
        pytest.raises(OutputBusyError, match=rf"another trtconv \(process {holder.pid}\) writes .*model\.\*") as caught,
        locked_set(tmp_path / "model.onnx"),
    ):
        pass
    assert "wait for it, or choose another folder" in caught.value.hint
    with locked_set(tmp_path / "other.onnx"):
        write_text(tmp_path / "other.onnx", "a set of another name is not locked")


def test_the_lock_of_a_killed_process_is_harmless_and_its_leftovers_go(holder, tmp_path):
    label = f"{holder.pid}-{Path(f'/proc/{holder.pid}/stat').read_text().rpartition(')')[2].split()[19]}"
    namespace = process_label().rpartition("-")[2]
    part = tmp_path / f".model.trt.trtconv-{label}-{namespace}-abcd_123.onnx"
    folder = tmp_path / f".trtconv-export-{label}-{namespace}-abcd_123"
    part.touch()
    folder.mkdir()
    (tmp_path / ".model.settings.onnx").touch()
    assert remove_stale_files(tmp_path) == (), "its process still lives"
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / f".model{SUFFIX}").exists()
    with locked_set(tmp_path / "model.onnx"):
        pass
    assert [p.name for p in tmp_path.iterdir()] == [".model.settings.onnx"]


def test_a_command_that_writes_nothing_cleans_up_unless_others_write(holder, tmp_path):
    lock = tmp_path / f".model{SUFFIX}"
    remove_leftovers(tmp_path / "model.onnx")
    assert lock.exists(), "the other process still writes"
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    remove_leftovers(tmp_path / "model.onnx")
    assert not lock.exists()
    remove_leftovers(tmp_path / "absent" / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_rooms_inside_a_conversion_lock_again_but_other_threads_do_not(tmp_path):
    refused = []

    def other():
        try:
            with locked_set(tmp_path / "out" / "model.onnx"):
                pass
        except OutputBusyError as error:
            refused.append(str(error))

    with locked_set(tmp_path / "out" / "model.engine"):
        with locked_set(tmp_path / "out" / "model.trt.onnx"):
            pass
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert f"(process {os.getpid()})" in refused[0]
    assert not (tmp_path / "out").exists(), "a folder into which nothing was written goes away"


def test_twenty_writers_leave_one_consistent_set(tmp_path):
    folder = tmp_path / "out"
    writers = [start(WRITER, folder, number) for number in range(20)]
    for writer in writers:
        writer.stdin.write("\n")
        writer.stdin.flush()
    codes = [writer.wait() for writer in writers]
    for writer in writers:
        writer.communicate()
    assert set(codes) <= {0, 7}
    assert 0 in codes
    files = sorted(folder.iterdir())
    assert len(files) == 5, files
    assert len({f.read_text() for f in files}) == 1


@pytest.mark.parametrize("kind", ["folder", "link", "fifo"])
def test_what_others_put_in_the_place_of_the_lock_is_not_touched(tmp_path, kind):
    path, victim = tmp_path / f".model{SUFFIX}", tmp_path / "victim"
    victim.write_text("content")
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(victim)
    else:
        os.mkfifo(path)
    with (
        pytest.raises(InvalidRequestError, match=r"model\.onnx' cannot be written"),
        locked_set(tmp_path / "model.onnx"),
    ):
        pass
    assert victim.read_text() == "content"
    assert path.is_symlink() == (kind == "link")


def test_the_lock_is_no_file_that_was_read(tmp_path):
    """It would be recorded as a source of the model, and be missed by the next check."""
    source = tmp_path / "source"
    source.write_text("")
    with FilesRead() as files, locked_set(tmp_path / "model.onnx"):
        write_text(tmp_path / "model.onnx", "x")
        source.read_text()
        os.close(os.open(source, os.O_RDONLY))
        lock = tmp_path / f".model{SUFFIX}"
        assert lock.exists()
        assert user_files(files.paths, tmp_path / "model.onnx") == (source,)
    assert user_files(files.paths, tmp_path / "model.onnx") == (source,)


def test_temporary_names_tell_their_process(tmp_path):
    with private_temporary_folder("export", beside=tmp_path) as folder:
        assert Path(folder).name.startswith(f".trtconv-export-{process_label()}-")
    write_json(tmp_path / ("x" * 240 + ".json"), {})
    assert len(list(tmp_path.iterdir())) == 1
