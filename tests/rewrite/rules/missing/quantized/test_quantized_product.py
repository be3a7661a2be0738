# ruff: noqa: E501 - the text of a model stands on one line
"""Products that round back to bytes."""

import numpy as np
import pytest
from onnx import numpy_helper

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.quantized.quantized_product import RULE

RNG = np.random.default_rng(0)
PAIR = ("QuantizeLinear", "DequantizeLinear")


def edited(shape, dtype=np.uint8, bias=0, gemm=False):
    """Weights of any bytes and a bias of whole numbers, as initializers."""

    def edit(model):
        info = np.iinfo(dtype)
        values = {"w": RNG.integers(info.min, info.max + 1, shape).astype(dtype)}
        if bias:
            values["b"] = RNG.integers(-5000, 5000, bias).astype(np.int32)
        model.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in values.items())
        if gemm:
            model.graph.node[0].domain = "com.microsoft"
            model.opset_import.add(domain="com.microsoft", version=1)

    return edit


def scales(dtype, zero, second="float sw = {0.0213}", points=None, last=0.917):
    points = points or f"{dtype} zw = {{{zero}}}"
    return f"float sx = {{0.0311}}, {dtype} zx = {{{zero}}}, {second}, {points}, float sy = {{{last}}}, {dtype} zy = {{{zero}}}"


CONV, MATMUL = "QLinearConv<pads=[1,1,1,1]>(x, sx, zx, w, sw, zw, sy, zy", "QLinearMatMul(x, sx, zx, w, sw, zw, sy, zy)"
GEMM = "y = QGemm<transB=1, alpha=0.5>(x, sx, zx, w, sw, zw, b, sy, zy)"
FOUR = "float[4] sw = {0.0117, 0.0213, 0.0319, 0.0423}"


def image(dtype):
    return {
        "inputs": f"{dtype}[N,8,H,W] x",
        "outputs": f"{dtype}[a,b,c,d] y",
        "ranges": {"x": (-128, 127) if dtype == "int8" else (0, 255)},
    }


def rows(dtype, result=None):
    return image(dtype) | {"inputs": f"{dtype}[N,16] x", "outputs": f"{result or dtype}[a,b] y"}


CASES = [
    Case("conv", f"y = {CONV})", constants=scales("uint8", 117), edit=edited((4, 8, 3, 3)), present=("Conv", "Mul", *PAIR), **image("uint8")),
    Case("a bias, and a scale for each channel", f"y = {CONV}, b)", constants=scales("uint8", 100, FOUR, "uint8[4] zw = {1, 2, 3, 200}"), edit=edited((4, 8, 3, 3), bias=4), **image("uint8")),
    Case("groups", "y = QLinearConv<group=2>(x, sx, zx, w, sw, zw, sy, zy, b)", constants=scales("uint8", 7), edit=edited((4, 4, 3, 3), bias=4), **image("uint8")),
    Case("what TensorRT runs in INT8", f"y = {CONV}, b)", constants=scales("int8", 0), edit=edited((4, 8, 3, 3), np.int8, 4), present=("Conv", *PAIR), absent=("Mul",), **image("int8")),
    Case("in INT8 with a scale for each channel", f"y = {CONV}, b)", constants=scales("int8", 0, FOUR, "int8[4] zw = {0, 0, 0, 0}"), edit=edited((4, 8, 3, 3), np.int8, 4), absent=("Mul",), **image("int8")),
    Case("int8 with a zero point", f"y = {CONV}, b)", constants=scales("int8", -5), edit=edited((4, 8, 3, 3), np.int8, 4), present=("Mul",), **image("int8")),
    Case("matmul", f"y = {MATMUL}", constants=scales("uint8", 90), edit=edited((16, 5)), present=("MatMul", "Mul"), **rows("uint8")),
    Case("matmul in INT8", f"y = {MATMUL}", constants=scales("int8", 0), edit=edited((16, 5), np.int8), absent=("Mul",), **rows("int8")),
    Case("two computed operands", "y = QLinearMatMul(x, sx, zx, x, sw, zw, sy, zy)", constants=scales("uint8", 90), **(image("uint8") | {"inputs": "uint8[N,8,16,16] x"})),
    Case("gemm", GEMM, constants=scales("uint8", 90), edit=edited((5, 16), bias=5, gemm=True), present=("Gemm",), **rows("uint8")),
    Case("gemm in INT8", GEMM.replace(", alpha=0.5", ""), constants=scales("int8", 0), edit=edited((5, 16), np.int8, 5, gemm=True), absent=("Mul",), **rows("int8")),
]  # fmt: skip
NEAR_MISSES = [
    Case("a scale that is computed", f"y = {MATMUL}", constants=scales("uint8", 90).replace("float sx = {0.0311}, ", ""), edit=edited((16, 5)), skip="not constants", **(rows("uint8") | {"inputs": "uint8[N,16] x, float sx", "ranges": {"x": (0, 255), "sx": (0.1, 0.2)}})),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_another_scale_would_be_seen():
    """The proof allows a step where a value lies beside a tie, and nowhere else."""
    import dataclasses

    from trtconv.rewrite.rules.missing.quantized import quantized_product

    def wrong(graph, node):
        match = quantized_product.find(graph, node)
        product = match.build.keywords["product"]
        scaled = dataclasses.replace(product, scales=(product.scales[0] * np.float32(1.01), *product.scales[1:]))
        build = type(match.build)(match.build.func, **{**match.build.keywords, "product": scaled})
        return dataclasses.replace(match, build=build)

    for case in (CASES[0], CASES[3]):
        with pytest.raises(AssertionError, match="differ by more than"):
            check_case(dataclasses.replace(RULE, find=wrong), case)
