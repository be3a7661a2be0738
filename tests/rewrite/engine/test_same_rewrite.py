"""A rewrite is done again as the ledger of another one says, or not at all."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.ledger.ledgers import make_ledger
from trtconv.core.errors import InvalidRequestError
from trtconv.core.ledger.options import same_rewrite
from trtconv.core.ledger.writing import ledger_data
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target

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


def test_the_same_target_rules_and_precision():
    assert same_rewrite(make_ledger(request=REQUEST), REQUEST.model, REQUEST.output) == REQUEST


@pytest.mark.parametrize("files", [{"rule_files": (Path("house/mine.py"),)}, {"script": "house/mine.py:cut"}])
def test_files_of_the_users_own_may_have_changed(files):
    ledger = make_ledger(request=replace(REQUEST, **files))
    with pytest.raises(InvalidRequestError, match=r"rewritten with mine\.py"):
        same_rewrite(ledger, REQUEST.model, REQUEST.output)
    assert "house" not in str(ledger_data(ledger))
