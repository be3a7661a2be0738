"""The values that each place of a sliding window sees, as strided slices of the padded input: one slice per tap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from trtconv.rewrite.graph.index import Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

# The largest bound that TensorRT 8.6 reads as it is; it lies beyond every axis.
TO_THE_END = (1 << 31) - 1


@dataclass(frozen=True)
class Window:
    """A window over the spatial axes 2, 3, ..: all tuples have one entry per spatial axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def taps(self) -> list[tuple[int, ...]]:
        """The places in the window, in the order of rows."""
        return [tuple(int(i) for i in position) for position in np.ndindex(*self.kernel)]


def window_of(node: Node, kernel: Sequence[int]) -> Window | str:
    """The window of a pool or convolution with this kernel, or why it cannot be told in integers.

    With ceil_mode the end is padded by stride - 1, which gives the same number of windows; that needs every window
    to begin inside the value or the padding before it.
    """
    count = len(kernel)
    strides = tuple(node.attr("strides", [1] * count))
    dilations = tuple(node.attr("dilations", [1] * count))
    pads = list(node.attr("pads", [0] * (2 * count)))
    automatic = node.attr("auto_pad", "NOTSET")
    if automatic not in ("NOTSET", "VALID", ""):
        return f"the padding is automatic ({automatic})"
    ends = pads[count:]
    if node.attr("ceil_mode", 0):
        reach = [d * (k - 1) for d, k in zip(dilations, kernel, strict=True)]
        if any(e + s - 1 > r for e, s, r in zip(ends, strides, reach, strict=True)):
            return "a window could begin in the padding behind the value, which frameworks treat in different ways"
        ends = [e + s - 1 for e, s in zip(ends, strides, strict=True)]
    return Window(tuple(kernel), strides, dilations, tuple(pads[:count]), tuple(ends))


def pad_input(g: Replacement, x: Value, window: Window, fill: Value) -> Value:
    """The input with the window's padding of the constant `fill`; the input itself when there is none."""
    if not any((*window.begins, *window.ends)):
        return x
    return g.pad(x, g.ints(0, 0, *window.begins, 0, 0, *window.ends), fill)


def tap(g: Replacement, x: Value, window: Window, position: Sequence[int], axes: Sequence[int] | None = None) -> Value:
    """What one place of the window sees of the padded input; with `axes` (0 is the first spatial one) only those."""
    chosen = list(range(len(window.kernel))) if axes is None else list(axes)
    starts = [window.dilations[a] * position[a] for a in chosen]
    left = [window.dilations[a] * (window.kernel[a] - 1 - position[a]) for a in chosen]
    ends = [-n if n else TO_THE_END for n in left]
    steps = [window.strides[a] for a in chosen]
    return g.slice(x, g.ints(*starts), g.ints(*ends), [a + 2 for a in chosen], steps)
