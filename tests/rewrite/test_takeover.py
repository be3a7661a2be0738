"""`--rewritten`: a precision from an earlier rewrite is, to the byte, what a rewrite of its own writes."""

import json
from dataclasses import replace

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.rewrite.test_room import NORM, ask, with_space
from trtconv.core.errors import InvalidRequestError
from trtconv.core.precision import BF16, FP16, FP32, HALF_NAMES, INT8
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.requests.rewrite import precision_decides_rules
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model
from trtconv.rewrite.engine.explain import diff_lines, explain_lines
from tests.rewrite.harness import Case, model_of

# A norm that is rewritten, FP64 that stays FP32 in a half precision, and a comparison with an infinity in it.
MIXED = Case(
    "norm and FP64",
    """q = Pow(x, two) s = ReduceSum(q, axis) n = Sqrt(s) d = Add(n, eps) v = Div(x, d)
       e = Cast<to=11>(v) f = Mul(e, wide) g = Cast<to=1>(f) y = Add(g, x)""",
    "float[N,8,9,W] x",
    constants="int64[1] axis = {1}, float two = {2.0}, float eps = {1e-10}, double wide = {1.25}",
)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A rewrite in FP32, and the request that it was made from."""
    folder = tmp_path_factory.mktemp("base")
    result = ask(with_space(model_of(MIXED)), folder, target="tensorrt==8.6", precision=FP32.name)
    assert {e.rule for e in result.entries}
    return RewriteRequest(folder / "m.onnx", folder / "n.trt.onnx", parse_target("tensorrt==8.6")), result


def written(request, folder):
    """The result, and the bytes of model and ledger."""
    result = rewrite_model(replace(request, output=folder / "m.trt.onnx"), SilentProgress())
    return result, (result.model.read_bytes(), result.ledger.read_bytes())


@pytest.mark.parametrize("precision", [FP16.name, FP32.name])
def test_to_the_byte_what_a_rewrite_of_its_own_writes(base, tmp_path, precision, monkeypatch):
    request, earlier = base
    (tmp_path / "own").mkdir()
    own, expected = written(replace(request, precision=precision), tmp_path / "own")
    monkeypatch.setattr("trtconv.rewrite.room.rewrite_graph", None)
    taken, files = written(replace(request, precision=precision, rewritten=earlier.model), tmp_path)
    assert files == expected
    assert explain_lines(taken) == explain_lines(own)
    assert diff_lines(taken) == diff_lines(own)
    ledger = json.loads(files[1])
    assert ledger["whole_graph"]["passed"] is True
    assert ledger["float64_nodes"]
    if precision in HALF_NAMES:
        kept = {n.name or n.output[0]: n for n in onnx.load(taken.model).graph.node}
        assert all(f"{FP32.name}" or name in kept for name in ledger["float64_nodes"])
