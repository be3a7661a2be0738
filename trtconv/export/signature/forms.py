"""Forms that an input may have: dtype, dims and values; and the sizes at which forms are tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trtconv.core.dtypes import parse_dtype
from trtconv.core.tensors import Dim, TensorSpec
from trtconv.export.signature.attempt import ForwardRun
from trtconv.export.signature.likely_inputs import LikelyInput

if TYPE_CHECKING:
    from torch import nn

# The values of what counts frames or the like: no more than the least size that is tried.
LENGTHS = (1.0, 8.0)
# A batch that is no usual number of channels, so that it is known again in a message.
_BATCH = 5
# Sizes of the other dims, the usual ones first: networks that flatten have one size alone, some want long inputs.
_LENGTHS = ((64, 64, 128), (28, 28, 28), (32, 32, 32), (224, 224, 224), (16, 16, 16), (8, 8, 8), (96, 96, 96),
            (128, 128, 128), (256, 256, 256), (1600, 299, 299), (16000, 512, 512))  # fmt: skip
SIZES: tuple[Mapping[str, int], ...] = tuple({"N": _BATCH, "T": t, "H": h, "W": w} for t, h, w in _LENGTHS)

_WITH_CHANNELS: dict[int, tuple[tuple[str, ...], ...]] = {
    2: (("N", "C"),),
    3: (("N", "C", "T"), ("N", "T", "C"), ("T", "N", "C")),
    4: (("N", "C", "H", "W"), ("N", "H", "W", "C")),
    5: (("N", "C", "T", "H", "W"), ("N", "T", "C", "H", "W")),
}
_PLAIN = (
    ("float32", ("N", "T"), None),
    ("int64", ("N", "T"), (0.0, 1.0)),
    ("float32", ("N",), None),
    ("int64", ("N",), LENGTHS),
    ("int64", ("N",), (0.0, 1.0)),
    ("bool", ("N", "T"), None),
    ("float32", ("N", 1, "T"), None),
    ("float32", ("N", 1), None),
    ("float32", ("N", 3, "H", "W"), None),
    ("float32", ("N", 1, "H", "W"), None),
    ("float32", ("N", "T", "T"), None),
    ("float32", (3, "H", "W"), None),
    ("float32", (), None),
)


def first_form(likely: LikelyInput, *, leads: bool) -> TensorSpec:
    """What an input is taken for until forward says otherwise. One that does not lead is a number for each sample at
    first: with more dims it would run in many places where it broadcasts.
    """
    unclear: tuple[Dim, ...] = ("N", "T") if leads else ("N",)
    dims = likely.dims if likely.dims is not None else unclear
    values = likely.value_range
    return TensorSpec(
        likely.name, parse_dtype(likely.dtype), dims, (float(values[0]), float(values[1])) if values else None
    )


def forms_of(spec: TensorSpec, attempt: ForwardRun, sizes: Mapping[str, int], ranks: Sequence[int]) -> list[TensorSpec]:
    """Other forms of an input, those first that the operation which failed speaks of."""
    names = {size: name for name, size in reversed(list(sizes.items()))}
    float32 = parse_dtype("float32")
    forms = [
        replace(spec, dtype=float32, dims=tuple(names.get(n, n) for n in shape), value_range=None)
        for shape in attempt.shapes
    ]
    # A size that is also one of ours is rather ours than a number of channels.
    channels = [n for n in attempt.sizes if n > 1 and n not in names] + [n for n in attempt.sizes if n in names]
    # Beside an image, what a matrix multiplies is a row for each sample.
    flat_first = (2, *(r for r in ranks if r != 2)) if attempt.flat and ranks[0] > 3 else ranks
    for channel in channels:
        for rank in flat_first:
            for dims in _WITH_CHANNELS[rank]:
                filled: tuple[Dim, ...] = tuple(channel if d == "C" else d for d in dims)
                forms.append(replace(spec, dtype=float32, dims=filled, value_range=None))
    plain = [TensorSpec(spec.name, parse_dtype(d), dims, values) for d, dims, values in _PLAIN]
    # An input that is to be whole keeps its dims more often than not.
    whole = [replace(spec, dtype=parse_dtype(d), value_range=v) for d, v in (("int64", (0.0, 1.0)), ("bool", None))]
    return list(dict.fromkeys([*forms, *plain, *whole]))


def ranks_for(module: nn.Module) -> tuple[int, ...]:
    """The ranks of inputs, likely ones first, by the layers of the module."""
    from torch import nn

    layers = list(module.modules())
    orders: Iterable[tuple[tuple[type[nn.Module], ...], tuple[int, ...]]] = (
        ((nn.Conv3d,), (5, 4, 3, 2)),
        ((nn.Conv2d,), (4, 3, 2, 5)),
        ((nn.Conv1d, nn.RNNBase, nn.MultiheadAttention), (3, 2, 4, 5)),
    )
    return next((order for kinds, order in orders if any(isinstance(x, kinds) for x in layers)), (2, 3, 4, 5))
