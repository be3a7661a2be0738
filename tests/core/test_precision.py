"""One table of precisions, and nobody else spells them."""

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest

from trtconv.core.errors import InvalidRequestError
from trtconv.core.precision import (
    FP8,
    FP16,
    HALF_NAMES,
    INT8,
    PRECISIONS,
    TYPED_NAMES,
    precision_named,
    typed_as,
)
from trtconv.core.targets import KNOWN_TARGETS, parse_target

PACKAGE = Path(__file__).parents[2] / "trtconv"
FLOATS = [p for p in PRECISIONS if p.name not in ("int8", "tf32")]


@pytest.mark.parametrize("precision", FLOATS, ids=lambda p: p.name)
def test_the_numbers_are_those_of_the_format(precision):
    limits = ml_dtypes.finfo(precision.numpy())
    assert precision.largest == float(limits.max)
    assert precision.normal == float(limits.smallest_normal)
    assert precision.least == float(limits.smallest_subnormal)
    assert precision.significand == limits.nmant + 1
    assert precision.unit_roundoff == float(limits.eps) / 2


@pytest.mark.parametrize("precision", PRECISIONS, ids=lambda p: p.name)
def test_onnx_knows_the_element_type(precision):
    assert onnx.helper.tensor_dtype_to_np_dtype(precision.onnx) == precision.numpy()
    schema = onnx.defs.get_schema("Cast", 22).type_constraints[1]
    assert precision.onnx_type in schema.allowed_type_strs


def test_what_a_graph_can_be_typed_as():
    assert TYPED_NAMES == ("fp32", "fp16", "bf16")
    assert HALF_NAMES == ("fp16", "bf16")
    assert typed_as(10) is FP16
    assert typed_as(INT8.onnx) is None


def test_a_name_that_is_none():
    with pytest.raises(InvalidRequestError, match=r"unknown precision 'fp61'\. Did you mean 'fp16'"):
        precision_named("fp61")


@pytest.mark.parametrize("text", KNOWN_TARGETS)
def test_targets_name_precisions_of_the_table(text):
    target = parse_target(text)
    assert set(target.facts.precisions) <= {p.name for p in PRECISIONS}
    assert FP16.is_in(target)
    assert FP8.is_in(target) == (target.generation > 8)


def test_int8_rounds_by_half_a_step():
    steps = np.linspace(-127, 127, 1001)
    assert np.abs(np.round(steps) - steps).max() / INT8.largest <= INT8.unit_roundoff


def test_nobody_else_spells_a_precision():
    words = re.compile("""["'](fp32|fp16|bf16|tf32|fp8)["']""")
    homes = {"core/precision.py", "core/dtypes.py"}
    spelled = {
        str(p.relative_to(PACKAGE)): words.findall(p.read_text())
        for p in PACKAGE.rglob("*.py")
        if str(p.relative_to(PACKAGE)) not in homes and words.search(re.sub(r"#.*", "", p.read_text()))
    }
    assert spelled == {}
