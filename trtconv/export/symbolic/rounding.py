"""Whether ONNX's nearest resize picks the same pixels as torch's at every size of a range."""

from __future__ import annotations

import itertools
from typing import Any

PAIRS = 3000


def nearest_is_safe(length: Any, out: Any, factor: float | None) -> bool:
    """True when both formulas agree at every size that the symbols allow (at up to PAIRS of them).

    torch: floor(i * float32(length / out)), or of float32(1 / factor). ONNX Runtime: floor(i / float32(out / length)),
    or of float32(factor). They differ where i * length / out is a whole number that float32 misses. Sizes of a
    TorchScript trace have no ranges, so they pass here and are left to the comparison with the module.
    """
    import torch

    if any(isinstance(v, torch.Tensor) for v in (length, out, factor)):
        return True
    if factor is not None:
        lengths = [pair[0] for pair in _pairs(length, length)]
        # torch copies an axis that keeps its size and repeats one that doubles, where the factor would pick otherwise.
        if factor not in (1.0, 2.0) and any(int(n * factor) in (n, 2 * n) for n in lengths):
            return False
        longest = max(lengths, default=1)
        return _agree(int(longest * factor), 1.0 / factor, factor)
    return all(_agree(o, n / o, o / n) for n, o in _pairs(length, out) if o > 0 and n > 0)


def _agree(outputs: int, step: float, scale: float) -> bool:
    import numpy as np

    output_index = np.arange(outputs, dtype=np.float32)
    return bool(np.array_equal(np.floor(output_index * np.float32(step)), np.floor(output_index / np.float32(scale))))


def _pairs(length: Any, out: Any) -> list[tuple[int, int]]:
    """Values of two sizes at the points of the symbols' ranges, spread evenly when there are many."""
    import torch

    symbols = sorted(
        {s for v in (length, out) if isinstance(v, torch.SymInt) for s in v.node.expr.free_symbols}, key=str
    )
    environment = next((v.node.shape_env for v in (length, out) if isinstance(v, torch.SymInt)), None)
    if environment is None:
        return [(int(length), int(out))]
    ranges = [_values(environment, s, max(2, int(PAIRS ** (1 / max(1, len(symbols)))))) for s in symbols]
    size_pairs = []
    for values in itertools.product(*ranges):
        chosen = dict(zip(symbols, values, strict=True))
        size_pairs.append((_at(length, chosen), _at(out, chosen)))
    return list(dict.fromkeys(size_pairs))


def _values(environment: Any, symbol: Any, most: int) -> list[int]:
    bounds = environment.var_to_range[symbol]
    # A size read back from a tensor has infinite bounds.
    low = int(bounds.lower) if bounds.lower > -(1 << 40) else 1
    high = min(int(bounds.upper), low + 8192) if bounds.upper < 1 << 40 else low + 8192
    step = max(1, (high - low) // most)
    return list(range(low, high + 1, step))


def _at(value: Any, chosen: dict[Any, int]) -> int:
    import torch

    return int(value.node.expr.subs(chosen)) if isinstance(value, torch.SymInt) else int(value)
