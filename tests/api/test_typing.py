"""A user's project under `mypy --strict`: the types of the door are real."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What lies behind the door takes a minute to analyse and says nothing about it.
CONFIG = """
[mypy]
strict = True
follow_imports = silent
[mypy-torch.*,onnx.*,onnxruntime.*,rich.*,click.*,jinja2.*,ml_dtypes.*,trtconv.pipeline,trtconv.pipeline.*,\
trtconv.export.*,trtconv.foreign.*,trtconv.tune.*,\
trtconv.rewrite.*,trtconv.build.*,trtconv.backends.*,trtconv.plugins.*,trtconv.proof.*]
follow_imports = skip
ignore_missing_imports = True
"""


def test_a_strict_project(tmp_path, monkeypatch):
    """Each line with a comment draws just the message that the comment holds; no other line draws one."""
    api = pytest.importorskip("mypy.api")
    text = (Path(__file__).parent / "user_code.txt").read_text()
    (tmp_path / "user.py").write_text(text)
    (tmp_path / "mypy.ini").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MYPYPATH", str(ROOT))
    out, err, _ = api.run(["--config-file", "mypy.ini", "--cache-dir", str(tmp_path / "cache"), "user.py"])
    assert not err
    messages: dict[int, str] = {}
    for line in out.splitlines():
        if line.startswith("user.py:"):
            number = int(line.split(":")[1])
            messages[number] = messages.get(number, "") + line
    expected = {n: line.partition("  # ")[2] for n, line in enumerate(text.splitlines(), 1) if "  # " in line}
    assert set(messages) == set(expected), out
    assert not [(n, messages[n]) for n, part in expected.items() if part not in messages[n]]


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "trtconv" / "py.typed").is_file()
