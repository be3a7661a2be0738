"""Typing a graph: FP32 to FP16 or BF16 with islands of FP32 where half precision would be wrong."""

from trtconv.rewrite.precision.convert import convert_precision
from trtconv.rewrite.precision.half import WeightCounts
from trtconv.rewrite.precision.operators import BLOCK_OPS
from trtconv.rewrite.precision.report import KeptNode, PrecisionReport
from trtconv.rewrite.precision.search.bisect import Fp32Search, bisect_fp32_nodes, emulated_run

__all__ = [
    "BLOCK_OPS",
    "Fp32Search",
    "KeptNode",
    "PrecisionReport",
    "WeightCounts",
    "bisect_fp32_nodes",
    "convert_precision",
    "emulated_run",
]
