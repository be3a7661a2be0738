import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import trtconv
from trtconv.core.errors import UnsafeFolderError
from trtconv.core.files.private_folder import is_running, private_temporary_folder, remove_stale_folders, start_time

HOLDER = """
import sys, time
from trtconv.core.files.private_folder import private_temporary_folder
folder = private_temporary_folder("build")
open(folder.name + "/1.work", "w").close()
print(folder.name, flush=True)
time.sleep(60)
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    process.folder = Path(process.stdout.readline().strip())
    yield process
    process.kill()
    process.communicate()


def test_the_folder_is_private_and_goes_away(temporary):
    with private_temporary_folder("build") as name:
        assert Path(name).parent == temporary
        assert Path(name).stat().st_mode & 0o777 == 0o700
    assert list(temporary.iterdir()) == []


def test_the_folder_of_a_killed_process_is_removed_by_the_next_one(temporary, holder):
    assert holder.folder.parent == temporary
    with private_temporary_folder("build"):
        assert holder.folder.exists(), "its process lives"
    holder.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)  # not reaped: a zombie does not live
    with private_temporary_folder("build"):
        assert not holder.folder.exists()


def test_every_purpose_in_the_code_gives_a_name_that_is_recognised(temporary, monkeypatch):
    """Stale folders are removed by the form of their names: one that does not fit would stay for ever."""
    code = "".join(p.read_text() for p in Path(trtconv.__file__).parent.rglob("*.py"))
    purposes = sorted(set(re.findall(r'private_temporary_folder\("([^"]*)"\)', code)))
    assert {"build", "fp32nodes"} <= set(purposes)
    monkeypatch.setattr("trtconv.core.files.private_folder.is_running", lambda pid, start: False)
    for purpose in purposes:
        folder = private_temporary_folder(purpose)
        assert remove_stale_folders(temporary, purpose) == (Path(folder.name).name,)


@pytest.mark.parametrize(
    "change",
    [
        lambda n: n + "x",
        lambda n: n.replace("build", "layers"),
        lambda n: n[:-9],
        lambda n: "Documents",
        lambda n: "-".join([*n.split("-")[:4], "1", n.split("-")[5]]),
    ],
)
def test_other_names_are_left_alone(temporary, change):
    name = change("trtconv-build-999999999-5-" + str(os.stat("/proc/self/ns/pid").st_ino) + "-abcdefgh")
    (temporary / name).mkdir()
    assert remove_stale_folders(temporary, "build") == ()
    assert (temporary / name).exists()


def test_links_and_files_are_left_alone(temporary, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "thesis.txt").write_text("years")
    stem = "trtconv-build-999999999-5-" + str(os.stat("/proc/self/ns/pid").st_ino)
    (temporary / f"{stem}-abcdefgh").symlink_to(outside)
    (temporary / f"{stem}-abcdefgi").write_text("a file")
    assert remove_stale_folders(temporary, "build") == ()
    assert (outside / "thesis.txt").exists()
    (temporary / f"{stem}-abcdefgj").mkdir()
    (temporary / f"{stem}-abcdefgj" / "link").symlink_to(outside)
    assert remove_stale_folders(temporary, "build") == (f"{stem}-abcdefgj",)
    assert (outside / "thesis.txt").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
def test_the_folder_of_another_user_is_left_alone(temporary):
    name = "trtconv-build-999999999-5-" + str(os.stat("/proc/self/ns/pid").st_ino) + "-abcdefgh"
    (temporary / name).mkdir()
    os.chown(temporary / name, 54321, -1)
    assert remove_stale_folders(temporary, "build") == ()


def test_a_temporary_folder_where_others_can_replace_files_is_refused(temporary):
    temporary.chmod(0o777)
    with pytest.raises(UnsafeFolderError, match="replace files") as caught:
        private_temporary_folder("build")
    assert f"chmod +t {temporary}" in caught.value.hint
    temporary.chmod(0o1777)
    private_temporary_folder("build").cleanup()


def test_an_id_that_went_to_another_process_is_not_the_old_one():
    start = start_time(os.getpid())
    assert is_running(os.getpid(), start)
    assert not is_running(os.getpid(), start + 1)
    assert not is_running(999_999_999, start)
