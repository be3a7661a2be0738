"""Mish in the operators that TensorRT 8.6 has."""

from __future__ import annotations

from trtconv.rewrite.engine.pattern import pattern_rule
from trtconv.rewrite.engine.rule import only_tensorrt_8

RULE = pattern_rule(
    "mish",
    "TensorRT 8.6 has no Mish; it has Softplus and Tanh.",
    before=lambda g, x: g.op("Mish", x),
    after=lambda g, x: g.mul(x, g.tanh(g.softplus(x))),
    needed=only_tensorrt_8,
)
