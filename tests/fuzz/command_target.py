"""The command line itself: words that were changed, or real files of a conversion that were changed under it."""

from __future__ import annotations

import contextlib
import functools
import io
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.strategies import NASTY_TEXT, changed_bytes, texts
from tests.fuzz.target import Finding, Target
from trtconv.cli import main

COMMANDS = (
    "inspect model.engine", "inspect model.engine --json", "inspect model.onnx --layers --json",
    "inspect model.trt.onnx --html page.html", "check model.trt.onnx --json r.json", "check model.onnx -q",
    "check model.trt.onnx --html r.html --junit r.xml --sarif r.sarif", "check model.trt.onnx --reference "
    "model.reference.safetensors --rtol 1e-3 --why x", "check model.engine --allow-code host",
    "rewrite model.onnx -o n.onnx --target tensorrt-rtx", "rewrite model.onnx -o n.onnx --only l2norm --opset 18",
    "rewrite model.onnx -o n.onnx --precision fp16", "package model.engine -o repo --name x --instances 2",
    "build model.trt.onnx -o b.engine --backend tensorrt-rtx --dynamic N=1:1:2 --workspace 1GiB",
    "export net.onnx -o e.onnx --dynamic N=1:1:2 --input x:float32[N,3,8,8]", "cache ls", "cache verify --json",
    "refit model.engine net.onnx -o r", "bench model.engine --batch N=2", "repro model.trt.onnx -o cut",
    "verify model.engine --key net.onnx", "verify model.engine --root net.onnx", "sign model.engine --key net.onnx",
    "check --config trtconv.toml", "rules --json", "help trust", "version --json", "doctor --json",
)  # fmt: skip
CONFIG = '[model]\nmodule = "net.onnx"\n[check]\nrtol = 1e-3\nwhy = "because"\n'
CODES = range(7)
Change = tuple[str, str, str, bytes]


@functools.cache
def converted() -> Path:
    """A folder with an ONNX file and what export, rewrite and build made of it."""
    from tests.backends.onnx_models import conv_net

    folder = Path(tempfile.mkdtemp(prefix="fuzz-set-"))
    conv_net(folder / "net.onnx", recorded=False)
    (folder / "trtconv.toml").write_text(CONFIG)
    for line in (
        "export net.onnx -o model.onnx --dynamic N=1:1:2 H=8:8:8 W=8:8:8 -q",
        "rewrite model.onnx -o model.trt.onnx --target tensorrt-rtx -q",
        "build model.trt.onnx -o model.engine --backend tensorrt-rtx --dynamic -q",
    ):
        code, text = run_command(line.split(), folder)
        assert code == 0, text
    return folder


def run_command(words: list[str], folder: Path) -> tuple[int, str]:
    """Exit code and all that was printed of a command in a folder, in this process."""
    before, cache = os.getcwd(), os.environ.get("TRTCONV_CACHE")
    text = io.StringIO()
    os.chdir(folder)
    os.environ["TRTCONV_CACHE"] = str(folder / "cache")
    try:
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            code = main._run(words)
    finally:
        os.chdir(before)
        os.environ.pop("TRTCONV_CACHE")
        if cache is not None:
            os.environ["TRTCONV_CACHE"] = cache
    return code, text.getvalue()


def _stays(word: str) -> bool:
    """What a shell can pass on, and names no file outside of the folder: the campaign may run as root."""
    try:
        passes = b"\0" not in os.fsencode(word)
    except UnicodeEncodeError:
        return False
    return passes and not (word.startswith(("/", "~")) or ".." in word or "=/" in word or "://" in word)


@st.composite
def changes(draw: st.DrawFn) -> Change:
    """A command, its words as one text, and the file that is changed with its new content (or neither)."""
    words = draw(st.sampled_from(COMMANDS)).split()
    name, content = "", b""
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(p.name for p in converted().iterdir() if p.is_file())))
        content = draw(changed_bytes(st.just((converted() / name).read_bytes())))
    else:
        others = [w for line in COMMANDS for w in line.split()]
        for _ in range(draw(st.integers(1, 3))):
            at = draw(st.integers(0, len(words) - 1))
            word = draw(st.one_of(texts(words[at]), st.sampled_from(others), st.sampled_from(NASTY_TEXT)))
            if not _stays(word):
                continue
            if draw(st.booleans()):
                words.insert(at + 1, word)
            elif at:
                words[at] = word
    return words[0], "\x1f".join(words), name, content


def _command(change: Change, folder: Path) -> Any:
    _, words, name, content = change
    shutil.copytree(converted(), folder, dirs_exist_ok=True)
    if name:
        (folder / name).write_bytes(content)
    code, text = run_command(words.split("\x1f"), folder)
    for line in text.splitlines():
        if line.startswith(("internal error:", "Traceback (most recent call last)")):
            raise Finding(line[:300])
    if code not in CODES:
        raise Finding(f"exit code {code}")


TARGET = Target("command", st.deferred(changes), _command)
