"""Products with a Fourier matrix: what a DFT or STFT is exported as where the target has none.

A spectrum spans more orders of magnitude than half precision has: like DFT and STFT, such a product stays in FP32.
"""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.graph.index import Array, Graph, Node

# 2048 samples and their 1025 frequencies, or all of them.
MOST = 1 << 22
CLOSE = 1e-5


def multiplies_by_waves(graph: Graph, node: Node) -> bool:
    """True for a MatMul with a constant matrix of cosines or sines of whole turns, on either side."""
    if node.key != "MatMul":
        return False
    for name in node.inputs:
        tensor = graph.constant_tensor(name)
        if tensor is None or len(tensor.dims) != 2 or not _is_shape(*tensor.dims):
            continue
        matrix = graph.constant(name, limit=MOST)
        if matrix is not None and matrix.dtype == np.float32 and is_fourier(matrix):
            return True
    return False


def _is_shape(rows: int, columns: int) -> bool:
    """[L, L] or L samples to L / 2 + 1 frequencies, in either order."""
    long, short = max(rows, columns), min(rows, columns)
    return short >= 3 and short in (long, long // 2 + 1)


def is_fourier(matrix: Array) -> bool:
    """True for [L, bins] or its transpose of cos(2 pi j k / L) or of the sine, of either sign; FP32 rounding apart."""
    tall = matrix if matrix.shape[0] >= matrix.shape[1] else matrix.T
    length, bins = tall.shape
    first = abs(float(tall[0, 0]))
    if first not in (0.0, 1.0) or np.ptp(tall[0]) > CLOSE:
        return False
    turns = 2 * np.pi / length * (np.outer(np.arange(length), np.arange(bins)) % length)
    wave = np.cos(turns) if first else np.sin(turns)
    return bool(np.allclose(tall, wave, rtol=0, atol=CLOSE) or np.allclose(tall, -wave, rtol=0, atol=CLOSE))
