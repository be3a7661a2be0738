"""A sum with 0 behind the heads of attention, for TensorRT 8.6."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.rewrite.harness import Case, check_case, check_near_miss, model_of
from trtconv.core.model.provenance import INPUTS_KEY, SPACE_KEY
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model
from trtconv.rewrite.rules.missing.attention.merged_heads import RULE

SIZES = ({"N": 2, "T": 3}, {"N": 1, "T": 5}, {"N": 3, "T": 4})
# x[N, T, 4] as two heads of two, which attend to each other without scores.
HEADS = (
    "r = Reshape(x, s) h = Transpose<perm=[0,2,1,3]>(r) k = Transpose<perm=[0,2,3,1]>(r) p = MatMul(h, k) "
    "o = MatMul(p, h) t = Transpose<perm={perm}>(o) m = Reshape(t, f) y = MatMul({product})"
)
CONSTANTS = "int64[4] s = {0,-1,2,2}, int64[3] f = {0,-1,4}, float[4,4] w = {" + ",".join("1" * 16) + "}"


def case(name, perm="[0,2,1,3]", product="m, w", inputs="float[N,T,4] x", **more):
    options = {"target": "tensorrt==8.6", "sizes": SIZES, "constants": CONSTANTS, "inputs": inputs}
    options |= {"outputs": "float[a,b,c] y"}
    return Case(name, HEADS.format(perm=perm, product=product), **{**options, **more})


def test_case():
    check_case(RULE, case("both move"))


MISSES = [
    case("a batch of two", inputs="float[2,T,4] x", sizes=({"T": 3}, {"T": 5}, {"T": 4}), skip="does not move"),
    case("an image", inputs="float[N,6,4] x", sizes=({"N": 1}, {"N": 2}, {"N": 3}), skip="fixed number of tokens"),
    case("another order", perm="[0,1,2,3]"),
    case("a product with itself", product="m, q", constants=CONSTANTS, inputs="float[N,T,4] x, float[4,4] q"),
]


@pytest.mark.parametrize("case", MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_later_versions_need_it_not():
    assert RULE.needed(parse_target("tensorrt==8.6"))
    assert not RULE.needed(parse_target("tensorrt==10"))


def test_weights_on_disk_are_behind_it_too(tmp_path):
    """A network of more than 2 GiB has them there."""
    model = model_of(case("both move", constants=CONSTANTS.partition(", float")[0]))
    model.graph.initializer.append(numpy_helper.from_array(np.ones((4, 4), np.float32), "w"))
    model.metadata_props.add(key=SPACE_KEY, value="N=1:2:3 T=3:4:5")
    model.metadata_props.add(key=INPUTS_KEY, value="x:float32[N,T,4]")
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="model.onnx.data", size_threshold=0)
    rewrite_model(RewriteRequest(path, tmp_path / "model.trt.onnx", parse_target("tensorrt==8.6")), SilentProgress())
    nodes = onnx.load(tmp_path / "model.trt.onnx", load_external_data=False).graph.node
    assert [n.op_type for n in nodes][-2:] == ["Add", "MatMul"]
