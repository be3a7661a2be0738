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


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 8])
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
        assert np.abs(actual @ x - np.eye(rows)).max() < 1e-3


@pytest.mark.parametrize("condition", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("scale", [1e-10, 1.0, 3e9])
def test_ill_conditioned_matrices_lose_no_more_than_in_onnx_runtime(condition, scale):
    before, after = model_of(case_of(4)), model_of(case_of(4))
    assert apply(after, (RULE,), "tensorrt==8.6").entries
    rng = np.random.default_rng(7)
    unitary = np.linalg.qr(rng.standard_normal((50, 1, 4, 4)))[0]
    x = unitary * (condition ** np.array([0, -1 / 3, -2 / 3, -1]) * scale) @ unitary.swapaxes(-1, -2)
    x = x.astype(np.float32)
    exact = np.linalg.inv(x.astype(np.float64))
    errors = [
        np.abs(runner(m)({"x": x})["y"] - exact).max((-2, -1)) / np.abs(exact).max((-2, -1)) for m in (before, after)
    ]
    assert np.median(errors[1]) < 3 * np.median(errors[0])
    assert errors[1].max() < condition * 1e-6


def test_half_precision_is_computed_in_float32():
    model = model_of(case_of(3, "float16"))
    assert apply(model, (RULE,), "tensorrt==8.6").entries
    x = (np.random.default_rng(0).standard_normal((2, 3, 3, 3)) * 60 + 300 * np.eye(3)).astype(np.float16)
    actual = runner(model)({"x": x})["y"].astype(np.float64)
    assert np.allclose(actual, np.linalg.inv(x.astype(np.float64)), rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize(("rows", "kind"), [(9, "float"), (2, "double")])
def test_near_miss(rows, kind):
    case = case_of(rows, kind)
    check_near_miss(RULE, Case(**{**case.__dict__, "skip": "rows" if rows > 4 else "FP32"}))


def test_matrices_that_are_not_square():
    case = case_of(3)
    check_near_miss(RULE, Case(**{**case.__dict__, "inputs": "float[N,H,3,K] x", "skip": "rows"}))
