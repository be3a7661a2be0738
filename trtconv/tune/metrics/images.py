"""Peak signal-to-noise ratio in dB, the mean over samples; the peak is the range of all labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trtconv.core.errors import InvalidRequestError
from trtconv.tune.metrics.metric import Metric, Outputs, first_of

# Where a sample is right to the last bit.
MOST = 120.0


def psnr(outputs: Outputs, labels: Sequence[Any]) -> float:
    """A label is the image that the output should be."""
    import numpy as np

    images = first_of(outputs, 1, "an image for psnr")
    targets = [np.asarray(label, np.float64) for label in labels]
    peak = max(float(t.max()) for t in targets) - min(float(t.min()) for t in targets)
    values = []
    for image, target in zip(images, targets, strict=True):
        if image.shape != target.shape:
            raise InvalidRequestError(
                f"a label {list(target.shape)} does not fit the output {list(image.shape)}",
                hint="psnr wants the image that the output should be",
            )
        error = float(np.mean((image.astype(np.float64) - target) ** 2))
        finite = np.isfinite(error)
        values.append(min(MOST, 10 * np.log10(max(peak, 1e-12) ** 2 / max(error, 1e-300))) if finite else -MOST)
    return float(np.mean(values))


PSNR = Metric("psnr", False, psnr)
