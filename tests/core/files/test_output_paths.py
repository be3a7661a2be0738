"""What a model, an engine or a report may replace: nothing but its own kind."""

from __future__ import annotations

import pytest

from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.earlier_reports import require_report_or_nothing
from trtconv.core.files.output_paths import ENGINE, MODEL, require_replaceable

BINARY = bytes(range(256))


@pytest.mark.parametrize(
    ("name", "content", "kind", "message"),
    [
        ("a.onnx", BINARY, ENGINE, "is an ONNX model, which an engine would replace"),
        ("a.engine", BINARY, MODEL, "is an engine, which an ONNX model would replace"),
        ("a.pt", BINARY, MODEL, "is a file of weights"),
        ("a.safetensors", b"{}", ENGINE, "is a file of weights"),
        ("a.pt2", BINARY, ENGINE, r"is a program of torch\.export"),
        ("net.py", b"import torch\n", MODEL, "is a text file"),
        ("a.onnx", BINARY, MODEL, ""),
        ("a.plan", BINARY, ENGINE, ""),
        ("a.onnx", b"version https://git-lfs.github.com/spec/v1\n", MODEL, ""),
        ("a.onnx", b"precious\n", MODEL, "is a text file, which an ONNX model would replace"),
        ("a.engine", b"mine\n", ENGINE, "is a text file, which an engine would replace"),
        ("a.onnx", b"", MODEL, ""),
        ("a", BINARY, ENGINE, ""),
        ("a.bin", b"", ENGINE, ""),
    ],
)
def test_what_a_model_replaces(tmp_path, name, content, kind, message):
    (tmp_path / name).write_bytes(content)
    if not message:
        require_replaceable(tmp_path / name, kind)
        return
    with pytest.raises(InvalidRequestError, match=message):
        require_replaceable(tmp_path / name, kind)


def test_names_of_other_kinds_and_names_that_no_file_has(tmp_path):
    with pytest.raises(InvalidRequestError, match="has the name of an engine, and would hold an ONNX model"):
        require_replaceable(tmp_path / "m.engine", MODEL)
    with pytest.raises(InvalidRequestError, match="has the name of an ONNX model, and would hold an engine"):
        require_replaceable(tmp_path / "m.onnx", ENGINE)
    with pytest.raises(InvalidRequestError, match="no file can be called"):
        require_replaceable(tmp_path / "bad\0name", MODEL)
    require_replaceable(tmp_path / "model", ENGINE)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("notes.txt", b"precious\n", "is a text file"),
        ("net.pt", BINARY, "is a file of weights"),
        ("a.engine", BINARY, "is an engine"),
        ("blob", BINARY, ""),
        ("other.onnx", BINARY, ""),
    ],
)
def test_a_link_counts_as_what_it_points_at(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    (tmp_path / "model.onnx").symlink_to(name)
    if not message:
        require_replaceable(tmp_path / "model.onnx", MODEL)
        return
    with pytest.raises(InvalidRequestError, match=message):
        require_replaceable(tmp_path / "model.onnx", MODEL)


@pytest.mark.parametrize(
    ("content", "replaced", "also_damaged"),
    [
        (b"", True, True),
        (b'{"kind": "check", "schema": 1}', True, True),
        (b'{"$schema": "sarif", "runs": []}', True, True),
        (b'[{"check_name": "trtconv/sizes", "fingerprint": "0"}]', True, True),
        (b"[]", True, True),
        (b'<?xml version="1.0"?><testsuites name="trtconv check"/>', True, True),
        (b"<!DOCTYPE html><svg>" + b" " * (1 << 17) + b"</svg><dt>trtconv</dt>", True, True),
        ("### ✅ `model.trt.onnx` equals".encode(), True, True),
        (b'{"kind": "check", "sch', False, True),
        (b"{}", False, True),
        (b'{"content_sha256": "0", "kind": "onnx", "schema": 1}', False, False),
        (b'{"name": "package"}', False, False),
        (b"<html>mine</html>", False, False),
        (b"# Mine\n", False, False),
        (b"import trtconv\n", False, False),
        (BINARY, False, False),
    ],
)
def test_what_a_report_replaces(tmp_path, content, replaced, also_damaged):
    path = tmp_path / "report"
    path.write_bytes(content)
    for damaged, allowed in ((False, replaced), (True, also_damaged)):
        if allowed:
            require_report_or_nothing(path, damaged=damaged)
        else:
            with pytest.raises(InvalidRequestError, match="would replace a file that is no report"):
                require_report_or_nothing(path, damaged=damaged)
    path.unlink()
    require_report_or_nothing(path)
