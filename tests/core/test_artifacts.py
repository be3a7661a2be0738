import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from trtconv.core.artifacts import (
    beside,
    creating_folder,
    read_json,
    replacing,
    require_file,
    require_writable,
    write_bytes,
    write_json,
)
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.digest import sha256_file


def test_a_write_that_fails_keeps_the_old_file(tmp_path):
    path = tmp_path / "model.onnx"
    write_bytes(path, b"old")

    def fail_halfway():
        with replacing(path) as temporary:
            temporary.write_bytes(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.onnx"]


def test_folders_are_made_for_a_file_alone_and_go_when_it_fails(tmp_path):
    path = tmp_path / "new" / "deep" / "model.onnx"
    require_writable(path)
    assert os.listdir(tmp_path) == []

    def fail_halfway():
        with replacing(path):
            assert path.parent.is_dir()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert os.listdir(tmp_path) == []
    write_bytes(path, b"new")
    with pytest.raises(RuntimeError):
        fail_halfway()
    assert path.read_bytes() == b"new"


def test_a_full_disk_is_one_error_that_keeps_the_old_file(tmp_path):
    path = tmp_path / "model.onnx"
    write_bytes(path, b"old")
    code = (
        "import resource, signal, sys\nfrom pathlib import Path\nfrom trtconv.core.artifacts import write_bytes\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "write_bytes(Path(sys.argv[1]), bytes(2000))\n"
    )
    root = Path(__file__).parents[2]
    process = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert "InvalidRequestError" in process.stderr
    assert "cannot be written: File too large" in process.stderr
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.onnx"]


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO, errno.EXDEV, errno.ETXTBSY, errno.ENOENT, errno.EDQUOT])
def test_a_rename_that_fails_as_on_a_network_file_system_keeps_the_old_file(tmp_path, monkeypatch, number):
    path = tmp_path / "model.onnx"
    write_bytes(path, b"old")

    def fail(*_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(InvalidRequestError, match="cannot be written: "):
            write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.onnx"]


def test_a_rename_that_succeeds_and_is_told_to_have_failed_leaves_the_new_file(tmp_path, monkeypatch):
    """NFS repeats a request whose answer was lost, and the second time the temporary name is gone."""
    path = tmp_path / "model.onnx"
    write_bytes(path, b"old")
    replace = os.replace

    def told_twice(source, target):
        replace(source, target)
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", told_twice)
        with pytest.raises(InvalidRequestError, match="cannot be written: No such file"):
            write_bytes(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["model.onnx"]


def test_a_process_killed_in_the_middle_leaves_the_old_file(tmp_path):
    path = tmp_path / "model.onnx"
    write_bytes(path, b"old")
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom trtconv.core.artifacts import replacing\n"
        "with replacing(Path(sys.argv[1])) as t:\n    t.write_bytes(b'half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    root = Path(__file__).parents[2]
    process = subprocess.run(
        [sys.executable, "-c", code, str(path)], env={**os.environ, "PYTHONPATH": str(root)}, check=False
    )
    assert process.returncode < 0
    assert path.read_bytes() == b"old"


def test_an_output_in_an_impossible_place_is_a_usage_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidRequestError, match="cannot be written"):
        write_bytes(tmp_path / "file" / "x.onnx", b"")
    with pytest.raises(InvalidRequestError, match="is a directory"):
        write_bytes(tmp_path, b"")


@pytest.mark.parametrize("name", [".onnx", "out/.trt.onnx", ".engine"])
def test_a_suffix_without_a_name_is_no_artifact(name):
    with pytest.raises(InvalidRequestError, match="suffix without a name"):
        beside(Path(name), ".json")


def test_a_missing_file_names_the_ones_that_are_there(tmp_path):
    (tmp_path / "net.onnx").write_bytes(b"")
    with pytest.raises(InvalidRequestError, match="there is no ONNX model") as caught:
        require_file(tmp_path / "ned.onnx", "ONNX model")
    assert "net.onnx" in (caught.value.hint or "")


def test_a_name_that_is_not_utf_8_is_one_error(tmp_path):
    folder = os.fsdecode(os.fsencode(tmp_path / "m") + b"\xff.onnx")
    Path(folder).write_bytes(b"")
    with pytest.raises(InvalidRequestError, match="is not UTF-8"):
        require_file(Path(folder), "ONNX model")


def test_json_is_the_same_for_the_same_content(tmp_path):
    write_json(tmp_path / "a", {"b": 1, "a": [1.5, "x"]})
    write_json(tmp_path / "b", {"a": [1.5, "x"], "b": 1})
    assert sha256_file(tmp_path / "a") == sha256_file(tmp_path / "b")
    assert read_json(tmp_path / "a") == {"a": [1.5, "x"], "b": 1}


def test_broken_json_is_one_error(tmp_path):
    (tmp_path / "m.json").write_text("{")
    with pytest.raises(InvalidRequestError, match="not readable JSON"):
        read_json(tmp_path / "m.json", "manifest")
    (tmp_path / "m.json").write_text("[1]")
    with pytest.raises(InvalidRequestError, match="it is not a JSON object"):
        read_json(tmp_path / "m.json", "manifest")


def test_companions_drop_every_suffix_of_an_artifact():
    assert beside(Path("out/model.trt.onnx"), ".rewrites.json") == Path("out/model.rewrites.json")
    assert beside(Path("out/model.engine"), ".reference.safetensors") == Path("out/model.reference.safetensors")


def test_a_folder_that_cannot_be_is_one_error(tmp_path):
    (tmp_path / "net.py").write_text("")
    message = r"net.py' cannot be created: it is a file"
    with pytest.raises(InvalidRequestError, match=message), creating_folder(tmp_path / "net.py"):
        pass
