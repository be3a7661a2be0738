"""The inverse of small matrices."""

import numpy as np
import onnx
import pytest

from tests.rewrite.harness import Case, all_nodes, apply, check_near_miss, model_of, runner
from trtconv.rewrite.rules.missing.tensor.inverse import RULE

SIZES = ((2, 3), (1, 7), (5, 1))


def case_of(rows, kind="float", name="inverse"):
    def edit(model):
        model.graph.node[0].domain = "com.microsoft"
        model.opset_import.add(domain="com.microsoft", version=1)

    return Case(name, "y = Inverse(x)", f"{kind}[N,H,{rows},{rows}] x", f"{kind}[a,b,c,d] y", edit=edit)


@pytest.mark.parametrize("rows", [1, 2, 3, 4])
def test_equal_to_onnx_runtime_at_matrices_that_have_one(rows):
    before, after = model_of(case_of(rows)), model_of(case_of(rows))
    record = apply(after, (RULE,), "tensorrt-rtx")
    assert [e.rule for e in record.entries] == ["inverse"]
    assert "no inverse" in record.entries[0].proof.note
    assert "Inverse" not in {n.op_type for n in all_nodes(after.graph)}
    onnx.checker.check_model(after, full_check=True)
    again = onnx.ModelProto()
    again.CopyFrom(after)
    assert not apply(again, (RULE,), "tensorrt-rtx").entries
    assert again == after
    rng = np.random.default_rng(rows)
    for batch, count in SIZES:
        x = (rng.standard_normal((batch, count, rows, rows)) + 3 * np.eye(rows)).astype(np.float32)
        actual = runner(after)({"x": x})["y"]
        assert np.allclose(actual, runner(before)({"x": x})["y"], rtol=2e-3, atol=2e-4)
        assert np.abs(actual @ x - np.eye(rows)).max() < 1e-2


def test_half_precision_is_computed_in_float32():
    model = model_of(case_of(3, "float16"))
    assert apply(model, (RULE,), "tensorrt==8.6").entries
    x = (np.random.default_rng(0).standard_normal((2, 3, 3, 3)) * 60 + 300 * np.eye(3)).astype(np.float16)
    actual = runner(model)({"x": x})["y"].astype(np.float64)
    assert np.allclose(actual, np.linalg.inv(x.astype(np.float64)), rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize(("rows", "kind"), [(5, "float"), (2, "double")])
def test_near_miss(rows, kind):
    case = case_of(rows, kind)
    check_near_miss(RULE, Case(**{**case.__dict__, "skip": "rows" if rows > 4 else "FP32"}))


def test_matrices_that_are_not_square():
    case = case_of(3)
    check_near_miss(RULE, Case(**{**case.__dict__, "inputs": "float[N,H,3,K] x", "skip": "rows"}))
