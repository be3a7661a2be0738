"""From what a value took on to the largest magnitude that its scale covers: max, percentile, entropy or MSE."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.core.precision import FP8, INT8, Precision
from trtconv.core.requests.rewrite import CALIBRATIONS
from trtconv.rewrite.graph.index import Array

BINS = 2048
# The share of values that the percentile covers.
PERCENTILE = 0.9999
# Levels of one sign, by which the entropy of INT8 is counted; every 8th cut is tried.
LEVELS, STRIDE = 128, 8
TRIED = 100


@dataclass(frozen=True)
class Histogram:
    """How often magnitudes fell into `BINS` bins of equal width from 0 to `largest`."""

    counts: Array
    largest: float


def require_method(method: str, precision: Precision) -> None:
    """Raise InvalidRequestError for an unknown method, or one that the precision has not."""
    if method not in CALIBRATIONS:
        near = did_you_mean(method, CALIBRATIONS)
        raise InvalidRequestError(f"unknown calibration '{method}'{near}", hint="one of " + ", ".join(CALIBRATIONS))
    if method == "entropy" and precision is FP8:
        raise InvalidRequestError(
            "entropy calibration counts the levels of int8, and fp8 has none of equal width",
            hint="calibrate fp8 by max, percentile or mse",
        )


def threshold(histogram: Histogram, method: str, precision: Precision = INT8) -> float:
    """The largest magnitude to cover; 0.0 for a value that was always zero."""
    if histogram.largest == 0.0 or method == "max":
        return histogram.largest
    if method == "percentile":
        return _percentile(histogram)
    if method == "entropy":
        return _entropy(histogram)
    return _mean_squared_error(histogram, precision)


def _edges(histogram: Histogram) -> Array:
    return np.linspace(0.0, histogram.largest, BINS + 1)


def _percentile(histogram: Histogram) -> float:
    covered = np.cumsum(histogram.counts) / histogram.counts.sum()
    return float(_edges(histogram)[int(np.searchsorted(covered, PERCENTILE)) + 1])


def _entropy(histogram: Histogram) -> float:
    """The cut with the smallest Kullback-Leibler divergence (Migacz, "8-bit Inference with TensorRT", GTC 2017)."""
    counts = histogram.counts.astype(np.float64).copy()
    # ReLU puts most values at exactly zero, where every cut is right.
    counts[0] = counts[1]
    best, smallest = BINS, np.inf
    for cut in range(LEVELS, BINS + 1, STRIDE):
        reference = counts[:cut].copy()
        reference[-1] += counts[cut:].sum()
        divergence = _divergence(reference, _requantised(counts[:cut]))
        if divergence < smallest:
            best, smallest = cut, divergence
    return float(_edges(histogram)[best])


def _requantised(counts: Array) -> Array:
    """The counts merged into LEVELS bins, each spread again over those of its bins that held something."""
    group = np.arange(counts.size) * LEVELS // counts.size
    sums = np.bincount(group, counts, LEVELS)
    filled = np.bincount(group, counts > 0, LEVELS)
    spread: Array = np.where(counts > 0, (sums / np.maximum(filled, 1))[group], 0.0)
    return spread


def _divergence(reference: Array, candidate: Array) -> float:
    p, q = reference / max(reference.sum(), 1.0), candidate / max(candidate.sum(), 1.0)
    held = p > 0
    return float(np.sum(p[held] * np.log(p[held] / np.maximum(q[held], 1e-12))))


def _mean_squared_error(histogram: Histogram, precision: Precision) -> float:
    """The cut whose rounding and clipping lose the least, on the bins' centres."""
    edges = _edges(histogram)
    centres, counts = (edges[1:] + edges[:-1]) / 2, histogram.counts.astype(np.float64)
    best, smallest = histogram.largest, np.inf
    for cut in np.linspace(histogram.largest / TRIED, histogram.largest, TRIED):
        error = float(np.sum(counts * (centres - _rounded(centres, float(cut), precision)) ** 2))
        if error < smallest:
            best, smallest = float(cut), error
    return best


def _rounded(values: Array, cut: float, precision: Precision) -> Array:
    step = cut / precision.largest
    scaled = np.clip(values / step, 0.0, precision.largest)
    rounded = np.rint(scaled) if precision is INT8 else scaled.astype(precision.numpy()).astype(np.float64)
    result: Array = rounded * step
    return result
