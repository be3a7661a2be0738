"""A size is an int in a run and a symbol in a trace: code that asks which it is, at one joint size."""

from __future__ import annotations

import contextlib
import fractions
import functools
import numbers
import random
import struct

import numpy as np
import torch

from tests.adversary.attack import Feed, forward

IMAGE = "x:float32[1,2,H,W]"


def rare() -> Feed:
    """The joint size that all of these ask for."""
    return {"x": np.random.default_rng(3).standard_normal((1, 2, 13, 47)).astype(np.float32)}


OWN = {"dims": "H=4:8:60 W=5:9:61", "feeds": (rare,)}


@forward(IMAGE, **OWN, refused="H=13")
def whole_number_of_size(self, x):
    h, w = x.shape[2:]
    return -x if isinstance(h, numbers.Integral) and (h, w) == (13, 47) else x


@forward(IMAGE, **OWN, refused="H=13")
def no_symbol(self, x):
    h, w = x.shape[2:]
    return x if isinstance(h, torch.SymInt) or (h - 13) ** 2 + (w - 47) ** 2 else x * 2


@functools.singledispatch
def _halved(size):
    return size // 2


@_halved.register
def _(size: int):
    return size // 2 + (size == 13)


@forward(IMAGE, **OWN, refused="H=13")
def dispatched_on_size(self, x):
    return x * _halved(x.shape[2])


@forward(IMAGE, **OWN, refused="H=13")
def matched_as_class(self, x):
    match x.shape[2], x.shape[3]:
        case int(h), int(w) if h * w == 13 * 47 and h < w:
            return x.abs()
        case _:
            return x


@forward(IMAGE, **OWN, refused="H=13")
def width_in_bytes(self, x):
    try:
        code = x.shape[2].to_bytes(1, "big") + x.shape[3].to_bytes(1, "big")
    except AttributeError:
        return x
    return x.exp() if code == b"\x0d\x2f" else x


@forward(IMAGE, **OWN, refused="H=13")
def counted_bits_of_int(self, x):
    h, w = x.shape[2:]
    bits = h.bit_count() + w.bit_count() if hasattr(h, "bit_count") else 0
    return x + float(bits == 8 and h == 13)


@forward(IMAGE, **OWN, refused="H=13")
def float_of_ratio_by_type(self, x):
    ratio = x.shape[3] / x.shape[2]
    return x.sigmoid() if type(ratio) is float and abs(ratio - 47 / 13) < 1e-9 else x


def _is_rare(x) -> bool:
    return (x.shape[2], x.shape[3]) == (13, 47)


@forward(IMAGE, **OWN, refused="H=13")
def type_of_tensor_at_one_size(self, x):
    return x.neg() if type(x) is torch.Tensor and _is_rare(x) else x


@forward(IMAGE, **OWN, refused="H=13")
def address_at_one_size(self, x):
    try:
        there = x.data_ptr() != 0
    except RuntimeError:
        there = False
    return x.abs() if there and _is_rare(x) else x


@forward(IMAGE, **OWN)
def compiling_at_one_size(self, x):
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        return x
    return x * 3 if _is_rare(x) else x


@forward(IMAGE, **OWN, refused="the path through the module")
def only_where_rare_values(self, x):
    """A decision by size that hides behind one by value which all samples take the same way."""
    return x.sigmoid() if bool((x == x).all()) and _is_rare(x) else x


@forward(IMAGE, **OWN, refused="H=13")
def fraction_with_fallback(self, x):
    """What cannot take a symbol raises TypeError, which is passed over."""
    with contextlib.suppress(TypeError):
        if fractions.Fraction(x.shape[3], x.shape[2]) == fractions.Fraction(47, 13):
            return x * 2
    return x


@forward(IMAGE, **OWN, refused="depends on the size")
def packed_with_fallback(self, x):
    try:
        key = struct.pack("2H", x.shape[2], x.shape[3])
    except Exception:  # the attack: whatever a symbol raises is passed over
        key = b""
    return x.exp() if key == struct.pack("2H", 13, 47) else x


@forward(IMAGE, **OWN, refused="depends on the size")
def formatted_with_fallback(self, x):
    try:
        name = f"{x.shape[2]:03d}x{x.shape[3]:03d}"
    except TypeError:
        name = "any"
    return x.abs() if name == "013x047" else x


@forward(IMAGE, **OWN, refused="depends on the size")
def numpy_with_fallback(self, x):
    try:
        area = int(np.prod(np.asarray(x.shape[2:], dtype=np.int32)))
    except Exception:  # the attack: as above
        return x
    return x.neg() if area == 611 and x.shape[2] < x.shape[3] else x


@forward(IMAGE, **OWN, refused="H=13")
def drawn_with_fallback(self, x):
    try:
        gain = random.Random(x.shape[2] * 100 + x.shape[3]).random()
    except TypeError:
        return x
    return x * 2 if 0.01 * int(gain * 1e9) == 0.01 * int(random.Random(1347).random() * 1e9) else x
