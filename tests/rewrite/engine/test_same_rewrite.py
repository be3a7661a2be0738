"""A rewrite is done again as the ledger of another one says, or not at all."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from trtconv.core.errors import InvalidRequestError
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.rewrite.engine.ledger import recorded_options, same_rewrite

REQUEST = RewriteRequest(
    Path("m.onnx"),
    Path("o.onnx"),
    parse_target("tensorrt==8.6"),
    skip=("fold-constants",),
    precision="fp16",
    keep_fp32=("a", "b"),
    nms="topk",
    max_detections=7,
    fold_norms=True,
)


def ledger(tmp_path, request=REQUEST, **facts):
    path = tmp_path / "m.rewrites.json"
    path.write_text(json.dumps({"target": str(request.target), "options": recorded_options(request), **facts}))
    return path


def test_the_same_target_rules_and_precision(tmp_path):
    assert same_rewrite(ledger(tmp_path), REQUEST.model, REQUEST.output) == REQUEST


@pytest.mark.parametrize("files", [{"rule_files": (Path("house/mine.py"),)}, {"script": "house/mine.py:cut"}])
def test_files_of_the_users_own_may_have_changed(tmp_path, files):
    path = ledger(tmp_path, replace(REQUEST, **files))
    with pytest.raises(InvalidRequestError, match=r"rewritten with mine\.py"):
        same_rewrite(path, REQUEST.model, REQUEST.output)
    assert "house" not in path.read_text()


@pytest.mark.parametrize("facts", [{"options": {}}, {"options": None}, {"target": "tensorrt==7"}])
def test_a_ledger_that_does_not_say_it(tmp_path, facts):
    with pytest.raises(InvalidRequestError):
        same_rewrite(ledger(tmp_path, **facts), REQUEST.model, REQUEST.output)
