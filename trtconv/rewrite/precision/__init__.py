"""Typing a graph: FP32 to FP16 or BF16 with islands of FP32 where half precision would be wrong."""

from trtconv.rewrite.precision.convert import convert_precision
from trtconv.rewrite.precision.half import WeightCounts
from trtconv.rewrite.precision.operators import BLOCK_OPS
from trtconv.rewrite.precision.report import KeptNode, PrecisionReport

__all__ = ["BLOCK_OPS", "KeptNode", "PrecisionReport", "WeightCounts", "convert_precision"]
