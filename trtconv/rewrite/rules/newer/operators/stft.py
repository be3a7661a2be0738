"""STFT as a strided convolution with the rows of the discrete Fourier transform, each times the window.

A frame of L samples x gives bin k the sum of x[n] w[n] exp(-2 pi i k n / L): a product with cosines for the real part
and with negative sines for the imaginary one. All frames are one Conv of stride `frame_step`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from trtconv.core.targets import Target
from trtconv.core.tolerance import Tolerance
from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement

# Weights of 2 * (L / 2 + 1) * L numbers: 34 MB here, and time that grows with the square of L.
MOST = 2048
# The convolution is within 3e-6 of the same sums in FP64, for frames of 16 to 2048 samples.
PROOF = Tolerance(
    rtol=1e-3,
    atol=1e-3,
    why="ONNX Runtime's STFT is off by up to 7e-4 where the frame length is not a power of two (measured against FP64)",
)


def needed(target: Target) -> bool:
    """TensorRT has STFT from 10.5 on (docs/Changelog.md of onnx-tensorrt)."""
    return target.generation < 11


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match FP32 signals [N, T, 1], or complex ones [N, T, 2], with constant step, window and frame length."""
    signal, dims = node.inputs[0], graph.dims(node.inputs[0])
    if graph.dtype(signal) != FLOAT or dims is None or len(dims) != 3 or dims[2] not in (1, 2):
        return Skip("the signal is not known to be FP32 of shape [batch, samples, 1 or 2]")
    step, window = graph.scalar(node.inputs[1]), graph.constant(node.input(2))
    if step is None or step < 1:
        return Skip("the step is not a constant")
    if node.input(2) and (window is None or window.dtype != np.float32 or window.ndim != 1):
        return Skip("the window is not a constant of FP32")
    length = graph.scalar(node.input(3)) if node.input(3) else None if window is None else float(window.size)
    if length is None:
        return Skip("the frame length is not a constant")
    if window is not None and window.size != length:
        return Skip(f"the window has {window.size} values for frames of {length:g}")
    if length > MOST:
        return Skip(f"frames of {length:g} samples would be {length / 2 + 1:.0f} filters of that length, over {MOST}")
    onesided = bool(node.attr("onesided", 1))
    if onesided and dims[2] == 2:
        return Skip("a complex signal has no one-sided transform")
    if window is None:
        window = np.ones(int(length), np.float32)
    basis = fourier_rows(window, onesided, complex_input=dims[2] == 2)
    note = "" if length <= 512 else f"time grows with the square of the frame length {length:g}"
    # Samples of sound.
    bounds = {signal: (-1.0, 1.0)}
    return Found((node,), partial(_build, node=node, basis=basis, step=int(step)), bounds, note)


def fourier_rows(window: Array, onesided: bool, complex_input: bool = False) -> Array:
    """[2 * bins, 1, L] FP32: the real parts of all bins, then the imaginary ones; [2 * bins, 2, L] of complex input."""
    length = window.size
    bins = length // 2 + 1 if onesided else length
    # The angle is taken modulo a turn in integers: k * n is exact, and so are quarter turns below.
    turns = np.outer(np.arange(bins), np.arange(length)) % length
    angles = 2 * np.pi * turns / length
    cosine, sine = np.cos(angles), np.sin(angles)
    cosine[4 * turns % (2 * length) == length] = 0.0
    sine[2 * turns % length == 0] = 0.0
    cosine, sine = cosine * window.astype(np.float64), sine * window.astype(np.float64)
    if not complex_input:
        rows = np.concatenate([cosine, -sine])[:, None]
    else:
        rows = np.concatenate([np.stack([cosine, sine], 1), np.stack([-sine, cosine], 1)])
    return rows.astype(np.float32)


def _build(g: Replacement, node: Node, basis: Array, step: int) -> Value:
    channels_first = g.transpose(node.inputs[0], 0, 2, 1)
    weights = g.const(basis, "fourier")
    bins = g.conv(channels_first, weights, kernel_shape=[basis.shape[2]], strides=[step])
    # [N, 2 * bins, frames] -> [N, 2, bins, frames] -> [N, frames, bins, 2]
    return g.transpose(g.reshape(bins, 0, 2, basis.shape[0] // 2, -1), 0, 3, 2, 1)


RULE = Rule(
    name="stft",
    why="TensorRT before 10.5 has no STFT; a convolution with windowed cosines and sines is the same.",
    ops=("STFT",),
    find=find,
    keeps_infinities=False,
    needed=needed,
    before="STFT(x, step, window[L])",
    after="Transpose(Reshape(Conv(x, [window * cos; -window * sin], strides=[step])))",
    tolerance=PROOF,
)
