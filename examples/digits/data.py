"""The 1,797 handwritten digits of 8 by 8 pixels that come with scikit-learn, as inputs with labels.

E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository, 1998
(CC BY 4.0).
The first half trains the networks; the second is what `trtconv tune` calibrates, searches and judges with.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

TRAINED = 897
BATCH = 100
CANVAS = 16
FIELD, MOST = 24, 2


def read(train: bool) -> tuple[np.ndarray, np.ndarray]:
    """Images [N, 1, 8, 8] from 0 to 1, and labels [N]."""
    with np.load(Path(__file__).with_name("digits.npz"), allow_pickle=False) as stored:
        images, labels = stored["images"], stored["labels"]
    rows = slice(0, TRAINED) if train else slice(TRAINED, None)
    return images[rows, None].astype(np.float32) / 16, labels[rows].astype(np.int64)


def on_canvas(images: np.ndarray, labels: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Each digit somewhere on a noisy canvas of 16 by 16: images, and masks (0 is background)."""
    rng = np.random.default_rng(seed)
    count = len(images)
    canvas = 0.2 * rng.random((count, 1, CANVAS, CANVAS), dtype=np.float32)
    masks = np.zeros((count, CANVAS, CANVAS), np.int64)
    for index, (image, label) in enumerate(zip(images[:, 0], labels, strict=True)):
        top, left = rng.integers(0, CANVAS - 8 + 1, 2)
        window = (index, slice(top, top + 8), slice(left, left + 8))
        canvas[:, 0][window] = np.maximum(canvas[:, 0][window], image)
        masks[window][image > 0.3] = label + 1
    return canvas, masks


def digits() -> Iterator[tuple[np.ndarray, Any]]:
    """Batches of images with the digit that each shows."""
    images, labels = read(train=False)
    for start in range(0, len(images), BATCH):
        yield images[start : start + BATCH], labels[start : start + BATCH]


def masks() -> Iterator[tuple[np.ndarray, Any]]:
    """Canvases with the class of each pixel."""
    canvas, classes = on_canvas(*read(train=False), seed=7)
    for start in range(0, len(canvas), BATCH):
        yield canvas[start : start + BATCH], classes[start : start + BATCH]


def noisy(images: np.ndarray, labels: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Canvases under strong noise, and as they were before."""
    clean, _ = on_canvas(images, labels, seed)
    noise = np.random.default_rng(seed + 1).normal(0.0, 0.25, clean.shape).astype(np.float32)
    return clean + noise, clean


def on_field(images: np.ndarray, labels: np.ndarray, seed: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """One or two digits, side by side, on fields of 24 by 24: the box around the ink of each, and its class.

    Boxes [N, 2, 4] are x1, y1, x2, y2; where there is one digit alone the second has class -1.
    """
    rng = np.random.default_rng(seed)
    count = len(images)
    fields = 0.2 * rng.random((count, 1, FIELD, FIELD), dtype=np.float32)
    boxes, kinds = np.zeros((count, MOST, 4), np.float32), np.full((count, MOST), -1, np.int64)
    for index in range(count):
        for number, digit in enumerate((index, int(rng.integers(count)))[: int(rng.integers(1, MOST + 1))]):
            image = images[digit, 0]
            top, left = int(rng.integers(0, FIELD - 8 + 1)), int(rng.integers(0, FIELD // 2 - 8 + 1)) + number * 12
            window = (index, 0, slice(top, top + 8), slice(left, left + 8))
            fields[window] = np.maximum(fields[window], image)
            rows, columns = np.nonzero(image > 0.3)
            boxes[index, number] = (
                left + columns.min(),
                top + rows.min(),
                left + columns.max() + 1,
                top + rows.max() + 1,
            )
            kinds[index, number] = labels[digit]
    return fields, {"boxes": boxes, "labels": kinds}


def clean() -> Iterator[tuple[np.ndarray, Any]]:
    """Noisy canvases with the clean ones."""
    inputs, targets = noisy(*read(train=False), seed=7)
    for start in range(0, len(inputs), BATCH):
        yield inputs[start : start + BATCH], targets[start : start + BATCH]


def boxes() -> Iterator[tuple[np.ndarray, Any]]:
    """Fields with the boxes and classes of their digits."""
    fields, truths = on_field(*read(train=False), seed=7)
    for start in range(0, len(fields), BATCH):
        yield fields[start : start + BATCH], {name: rows[start : start + BATCH] for name, rows in truths.items()}
