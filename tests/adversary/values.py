"""Where the judge looks: sizes and values of its own choosing, drawn without any of trtconv's sampling."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tests.adversary.attack import Array, Feed
from trtconv.core.shape_space.derived import size_of

_DIM = re.compile(r"(\w+)=(\d+)(?::(\d+):(\d+))?(?:%(\d+))?")
_INPUT = re.compile(r"([^\[\]=]+):(\w+)\[([^\]]*)\](?:=([^:]+):(.+))?")
FLOAT_KINDS = (
    "normal", "unit", "bytes", "tiny", "large", "zeros", "tenths", "halves", "ascending", "descending", "positive",
    "negative", "ones", "mixed-scales", "minus-infinity", "plus-infinity",
)  # fmt: skip
INFINITE = ("minus-infinity", "plus-infinity")
MASK_KINDS = ("random", "prefix", "suffix", "true", "false", "one-true", "one-false", "causal", "alternating")


def sizes(dims: str, count: int = 6) -> list[dict[str, int]]:
    """The corners of the space, its middle, and some odd ones; all of it where that is little."""
    ranges = {}
    for name, low, middle, high, step in _DIM.findall(dims):
        stride = int(step or 1)
        ranges[name] = [v for v in range(int(low), int(high or low) + 1) if v % stride == 0 or not step]
        ranges[name] = ranges[name] if not middle else [int(middle), *ranges[name]]
    if not ranges:
        return [{}]
    ends = [sorted({values[0], min(values), max(values)}) for values in ranges.values()]
    chosen = list(itertools.islice(itertools.product(*ends), 12))
    chance = np.random.default_rng(len(dims))
    chosen += [tuple(int(chance.choice(v)) for v in ranges.values()) for _ in range(count)]
    return [dict(zip(ranges, c, strict=True)) for c in dict.fromkeys(chosen)]


def feeds(inputs: Sequence[str], dims: str, kinds: Sequence[str] = (), count: int = 6) -> Iterator[tuple[str, Feed]]:
    """Each size with ordinary values, and each kind of values at some sizes; `count` sizes are odd ones."""
    points = sizes(dims, count)
    wanted = kinds or FLOAT_KINDS
    for index, point in enumerate(points):
        yield f"{point} normal", make(inputs, point, "normal", index)
    for index in range(max(len(wanted), len(MASK_KINDS))):
        kind, point = wanted[index % len(wanted)], points[(index * 3 + 1) % len(points)]
        yield f"{point} {kind}", make(inputs, point, kind, index)
        yield f"{points[-1]} {kind}", make(inputs, points[-1], kind, index + 100)


def at_sides(*inputs: str, hw: Sequence[tuple[int, int]], n: int = 1) -> tuple[Callable[[], Feed], ...]:
    """Points at pairs of height and width."""
    return tuple(values_at(*inputs, N=n, H=h, W=w) for h, w in hw)


def values_at(*inputs: str, **point: int) -> Callable[[], Feed]:
    """A point of an attack's own: ordinary values at these sizes."""
    return lambda: make(inputs, point, "normal", 4)


def make(inputs: Sequence[str], point: Mapping[str, int], kind: str, seed: int) -> dict[str, Array]:
    """All inputs of a point with values of a kind."""
    chance = np.random.default_rng([7, seed])
    values = {}
    for text in inputs:
        match = _INPUT.fullmatch(text)
        assert match, text
        name, dtype, dim_text, low, high = match.groups()
        shape = tuple(int(d) if d.isdecimal() else size_of(d, point) for d in dim_text.split(",") if d)
        bounds = (float(low), float(high)) if low else None
        values[name] = _array(dtype, shape, bounds, kind, seed, chance)
    return values


def _array(
    dtype: str, shape: tuple[int, ...], bounds: tuple[float, float] | None, kind: str, seed: int, chance: Any
) -> Array:
    if dtype == "bool":
        return _mask(shape, MASK_KINDS[seed % len(MASK_KINDS)], chance)
    if "int" in dtype:
        low, high = bounds or (0, 9)
        edge = seed % 4
        drawn = chance.integers(int(low), int(high), shape, endpoint=True)
        constant = {1: low, 2: high}.get(edge)
        return np.asarray(drawn if constant is None else np.full(shape, constant)).astype(dtype)
    drawn = _floats(shape, kind, chance)
    if bounds is not None:
        low, high = bounds
        if kind in ("normal", "unit", "large", "positive", "negative"):
            drawn = chance.uniform(low, high, shape)
        drawn = np.clip(drawn, low, high)
    return np.asarray(drawn).astype(dtype)


def _floats(shape: tuple[int, ...], kind: str, chance: Any) -> Array:
    count = int(np.prod(shape, dtype=np.int64))
    normal = chance.standard_normal(shape)
    simple = {
        "normal": normal, "unit": chance.random(shape), "bytes": chance.integers(0, 256, shape).astype(float),
        "tiny": normal * 1e-5, "large": normal * 3e3, "zeros": np.zeros(shape), "ones": np.ones(shape),
        "tenths": ((np.arange(count) - count // 2) * np.float32(0.1)).reshape(shape),
        "halves": chance.integers(-7, 8, shape) / 2, "ascending": np.sort(normal, axis=None).reshape(shape),
        "descending": -np.sort(normal, axis=None).reshape(shape), "positive": np.abs(normal) + 0.1,
        "negative": -np.abs(normal) - 0.1, "mixed-scales": normal * 10.0 ** chance.integers(-4, 4, shape),
    }  # fmt: skip
    if kind in simple:
        return np.asarray(simple[kind])
    flat = normal.reshape(-1).copy()
    if count:
        flat[count // 2] = -np.inf if kind == "minus-infinity" else np.inf
    return flat.reshape(shape)


def _mask(shape: tuple[int, ...], kind: str, chance: Any) -> Array:
    mask = chance.random(shape) < 0.5
    if not mask.size or not shape:
        return np.asarray(mask)
    width = shape[-1]
    rows = mask.reshape(-1, width)
    place = np.arange(width)[None]
    lengths = (np.arange(len(rows)) * 2 % width + 1)[:, None]
    chosen = {
        "random": rows, "prefix": place < lengths, "suffix": place >= lengths, "true": np.ones_like(rows),
        "false": np.zeros_like(rows), "one-true": place == lengths - 1, "one-false": place != lengths - 1,
        "causal": place <= np.arange(len(rows))[:, None] % width, "alternating": (place + lengths) % 2 == 0,
    }[kind]  # fmt: skip
    return np.broadcast_to(chosen, rows.shape).reshape(shape).copy()
