"""Inputs for every plugin that the tests of the function body, the evaluator and the C++ side share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from trtconv.plugins.described.registry import find_plugin

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Case:
    """One use of a plugin: the input shapes (the first is `x`) and the attributes that differ from the defaults."""

    op_type: str
    shapes: tuple[tuple[int, ...], ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    offset: float = 0.0

    def __str__(self) -> str:
        return f"{self.op_type}-{self.shapes[0]}-{self.attributes}"

    def arrays(self, dtype: str, seed: int = 0) -> list[Array]:
        """Random inputs of the case, values within about 4 of the offset."""
        rng = np.random.default_rng(seed)
        offsets = (self.offset, *(0.5 for _ in self.shapes[1:]))
        return [(rng.standard_normal(s) + o).astype(dtype) for s, o in zip(self.shapes, offsets, strict=True)]


def l2(shape: tuple[int, ...], **attributes: Any) -> Case:
    return Case("TrtconvL2Norm", (shape, (shape[attributes.get("axis", 1)],)), attributes)


def norm(shape: tuple[int, ...], offset: float = 0.0, **attributes: Any) -> Case:
    return Case("TrtconvInstanceNorm", (shape, (shape[1],), (shape[1],)), attributes, offset)


def pad(shape: tuple[int, ...], pads: tuple[int, int, int, int]) -> Case:
    return Case("TrtconvReflectionPad", (shape,), {"pads": pads})


def pool(shape: tuple[int, ...], size: tuple[int, int], mode: str) -> Case:
    return Case("TrtconvAdaptivePool", (shape,), {"output_size": size, "mode": mode})


def depthwise(shape: tuple[int, ...], size: int = 7, offset: float = 0.0, **attributes: Any) -> Case:
    channels = shape[3]
    shapes = (shape, (size, size, channels), *((channels,),) * 3)
    return Case("TrtconvDepthwiseConvLayerNorm", shapes, {"channels": channels, **attributes}, offset)


def convolution(images: int, sizes: tuple[int, int], channels: int, **attributes: Any) -> Case:
    """Rows of tokens: height and width of each image."""
    shapes = ((images, sizes[0] * sizes[1], channels), (3, 3, channels), (channels,))
    return Case("TrtconvDepthwiseConv", shapes, {"channels": channels, "width": sizes[1], **attributes})


def attention(
    batch: int, rows: tuple[int, int], heads: int, size: int, bias: tuple[int, ...] = (1, 1, 1, 1), **attributes: Any
) -> Case:
    """Rows of the query and of the keys; `packed` puts all three of one tensor's width side by side."""
    width = heads * size * (3 if attributes.pop("packed", False) else 1)
    offsets = (0, heads * size, 2 * heads * size) if width > heads * size else (0, 0, 0)
    named = dict(zip(("query_offset", "key_offset", "value_offset"), offsets, strict=True))
    shapes = ((batch, rows[0], width), *((batch, rows[1], width),) * 2, bias)
    return Case("TrtconvAttention", shapes, {"heads": heads, "size": size, "scale": size**-0.5, **named, **attributes})


def layer_norm(shape: tuple[int, ...], offset: float = 0.0, **attributes: Any) -> Case:
    return Case("TrtconvLayerNorm", (shape, *((shape[-1],),) * 2), attributes, offset)


def group_norm(shape: tuple[int, ...], offset: float = 0.0, **attributes: Any) -> Case:
    return Case("TrtconvGroupNorm", (shape, *((shape[-1],),) * 2), attributes, offset)


def linear(shape: tuple[int, ...], columns: int, **attributes: Any) -> Case:
    addend = (*shape[:-1], columns) if attributes.get("added") == "yes" else (columns,)
    return Case("TrtconvLinear", (shape, (columns, shape[-1]), (columns,), addend), attributes)


def channel_gate(shape: tuple[int, ...], hidden: int, **attributes: Any) -> Case:
    channels = shape[1]
    return Case(
        "TrtconvChannelGate", (shape, (hidden, channels), (hidden,), (channels, hidden), (channels,)), attributes
    )


CASES: tuple[Case, ...] = (
    l2((2, 7, 5, 3)),
    l2((1, 64, 9, 11), eps_mode="inside", epsilon=1e-3),
    l2((3, 16), eps_mode="max", epsilon=4.5),
    l2((2, 5, 8), axis=2, eps_mode="outside", epsilon=0.25),
    l2((0, 5, 2, 2)),
    norm((2, 3, 5, 7)),
    norm((1, 4, 1, 1), epsilon=1e-3),
    norm((2, 2, 33), relu="yes"),
    norm((1, 3, 4, 5, 6), relu="no", epsilon=1e-2),
    norm((1, 2, 16, 16), offset=50.0),
    norm((0, 3, 4, 4)),
    pad((2, 3, 6, 7), (1, 2, 3, 4)),
    pad((5, 9), (0, 8, 4, 0)),
    pad((1, 1, 1, 1), (0, 0, 0, 0)),
    pad((2, 2, 2, 3, 17), (2, 16, 1, 3)),
    pool((2, 3, 10, 7), (3, 3), "average"),
    pool((2, 3, 10, 7), (3, 3), "max"),
    pool((1, 2, 5, 6), (1, 1), "average"),
    pool((1, 2, 5, 6), (7, 11), "max"),
    pool((4, 7, 13), (7, 4), "average"),
    depthwise((2, 9, 5, 32)),
    depthwise((1, 4, 11, 6), 5, epsilon=1e-3),
    depthwise((2, 3, 8, 7), 3, 20.0),
    depthwise((0, 4, 4, 8)),
    convolution(2, (9, 5), 16, gelu="yes"),
    convolution(1, (3, 8), 6, gelu="yes"),
    convolution(3, (1, 4), 8),
    convolution(0, (4, 4), 8, gelu="yes"),
    attention(4, (9, 9), 2, 32, (2, 2, 9, 9), packed=True),
    attention(2, (5, 70), 3, 8, (1, 1, 5, 70)),
    attention(1, (66, 3), 1, 5, (1, 1, 1, 3), scale=1.0),
    attention(0, (4, 4), 2, 16),
    layer_norm((2, 5, 96)),
    layer_norm((7, 33), 20.0, epsilon=1e-3),
    layer_norm((2, 3, 2, 64)),
    layer_norm((0, 4, 8)),
    group_norm((2, 5, 7, 8)),
    group_norm((1, 3, 4, 6), 20.0, epsilon=1e-3),
    group_norm((2, 6, 5, 16), mixed="yes"),
    group_norm((1, 1, 3, 3), 20.0, mixed="yes"),
    group_norm((0, 4, 4, 8), mixed="yes"),
    channel_gate((2, 24, 7, 5), 6),
    channel_gate((1, 10, 3, 3), 4, activation="relu"),
    channel_gate((3, 16, 1, 9), 8, activation="relu", gate="hard_sigmoid"),
    channel_gate((2, 24, 1, 1), 6),
    channel_gate((0, 8, 4, 4), 2),
    linear((2, 5, 12), 8),
    linear((3, 7), 5, added="yes"),
    linear((1, 2, 3, 16), 24, activation="gelu"),
    linear((2, 9, 6), 10, activation="gelu_tanh", added="yes"),
    linear((0, 4, 8), 8, activation="gelu"),
    linear((2, 5, 12), 8, tf32="yes"),
)
EMBEDDED: tuple[Case, ...] = tuple(c for c in CASES if find_plugin(c.op_type).embeddable)
"""Those of plugins whose kernels go into engines."""
