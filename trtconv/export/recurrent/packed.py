"""Packed sequences while torch.export follows a module: padded tensors with their lengths.

Torch packs x [T, N, C] into the rows that count, step by step, and tells how many of the N sequences each step has. A
file has no such layer; ONNX's recurrent nodes take the padded tensor and the lengths. So the rows carry what they were
made of, from which the layers and the unpacking go on. What is done to the rows themselves (`packed.data`) is done to
the rows in the file too, which are put back into a padded tensor then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest import mock

from trtconv.export.recurrent.calls import FUNCTIONS


@dataclass(frozen=True)
class Lengths:
    """Of each of N sequences, int64 [N] in falling order, and the number of steps of the tensor that was packed."""

    values: Any
    steps: Any

    def mask(self) -> Any:
        """Which of the places [T, N] count."""
        import torch

        return torch.arange(self.steps)[:, None] < self.values[None, :]

    def rows(self, padded: Any) -> Any:
        """The rows that count of [T, N, ...], step by step, with the padded tensor at hand."""
        rows = padded[self.mask()]
        rows._trtconv_padded = padded, rows._version
        return rows

    def padded(self, rows: Any) -> Any:
        """The tensor [T, N, ...] of such rows; what does not count is undefined."""
        whole, version = getattr(rows, "_trtconv_padded", (None, 0))
        if whole is None or version != rows._version:  # or written into since
            whole = rows.new_zeros((self.steps, self.values.shape[0], *rows.shape[1:]))
            whole = whole.index_put((self.mask(),), rows)
        return whole


class AllSteps(Lengths):
    """Where lengths have no values: as if every step of every sequence counted."""

    def rows(self, padded: Any) -> Any:
        """All rows of [T, N, ...]."""
        return padded.flatten(0, 1)

    def padded(self, rows: Any) -> Any:
        """The tensor [T, N, ...] of all rows."""
        return rows.unflatten(0, (self.steps, self.values.shape[0]))


def handlers() -> dict[str, Callable[..., Any]]:
    """The functions with which torch packs and unpacks, by name, for `trtconv.export.symbolic.mode`."""
    return {"_pack_padded_sequence": _pack, "_pad_packed_sequence": _unpack}


@cache
def handlers_without_values() -> Mapping[str, Callable[..., Any]]:
    """The same for runs in which tensors have no values, together with the item that torch.nn's layers ask for."""

    def not_ours(*_: Any) -> Any:
        return NotImplemented

    return {
        "_pack_padded_sequence": _pack_all,
        "_pad_packed_sequence": _unpack,
        "__getitem__": get_item(not_ours),
    }


def _pack(func: Any, x: Any, lengths: Any, batch_first: bool) -> Any:
    """The rows and the number of sequences by step."""
    import torch

    if torch.jit.is_tracing() or torch._guards.detect_fake_mode((x, lengths)) is None:
        return NotImplemented
    x = x.transpose(0, 1) if batch_first else x
    longest = lengths[0].item()
    # Torch raises for others; so does the module, wherever it is compared.
    torch._check(longest >= 1)
    torch._check(longest <= x.shape[0])
    packed = Lengths(lengths, x.shape[0])
    return packed.rows(x), _with_lengths(packed.mask().sum(1)[:longest], packed)


def _pack_all(func: Any, x: Any, lengths: Any, batch_first: bool) -> Any:
    x = x.transpose(0, 1) if batch_first else x
    packed = AllSteps(lengths, x.shape[0])
    return packed.rows(x), _with_lengths(lengths.new_empty((x.shape[0],)), packed)


def _with_lengths(batch_sizes: Any, packed: Lengths) -> Any:
    batch_sizes._trtconv_lengths = packed
    return batch_sizes


def _unpack(func: Any, rows: Any, batch_sizes: Any, batch_first: bool, padding_value: float, steps: Any) -> Any:
    """The padded tensor of so many steps and the lengths."""
    import torch
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    packed = _lengths(batch_sizes)
    if packed is None:
        return NotImplemented
    mask, padded = packed.mask(), packed.padded(rows)
    mask = mask.reshape(*mask.shape, *[1] * (padded.dim() - 2))
    padded = torch.where(mask, padded, torch.tensor(padding_value, dtype=padded.dtype))
    if not statically_known_true(steps == packed.steps):
        more = padded.new_full((steps, *padded.shape[1:]), padding_value)
        padded = torch.cat([padded, more])[:steps]
    return (padded.transpose(0, 1) if batch_first else padded), packed.values


def get_item(otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """`batch_sizes[0]` is the number of sequences, which torch.nn's layers ask for; the rest is handled `otherwise`."""

    def get(func: Any, x: Any, index: Any) -> Any:
        packed = _lengths(x)
        return packed.values.shape[0] if packed and type(index) is int and index == 0 else otherwise(func, x, index)

    return get


def _lengths(batch_sizes: Any) -> Lengths | None:
    return getattr(batch_sizes, "_trtconv_lengths", None)


@dataclass(frozen=True)
class PackedCall:
    """A call of a recurrent layer with rows: its arguments as for a padded sequence, and the lengths."""

    args: tuple[Any, ...]
    lengths: Lengths

    def result(self, padded: tuple[Any, ...]) -> tuple[Any, ...]:
        """What the call returns, of what the padded sequence gives: the rows and the last states."""
        y, *last = padded
        return (self.lengths.rows(y), *last)


def packed_call(func: Any, args: Any) -> PackedCall | None:
    """A call of (rows, batch sizes, states, weights, biases, layers, dropout, training, both ways); None for others."""
    packed = _lengths(args[1]) if len(args) == 9 else None
    if packed is None or getattr(func, "__name__", "") not in FUNCTIONS:
        return None
    return PackedCall((packed.padded(args[0]), *args[2:], False), packed)


@contextmanager
def sequences_counted() -> Iterator[None]:
    """Layers do not make a plain number of the sequences of a packed tensor in order to check it, within the block."""
    import torch

    def unchecked(check: Any) -> Any:
        def checked(layer: Any, x: Any, hidden: Any, batch_sizes: Any) -> None:
            if _lengths(batch_sizes) is None:
                check(layer, x, hidden, batch_sizes)

        return checked

    with (
        mock.patch.object(torch.nn.RNNBase, "check_forward_args", unchecked(torch.nn.RNNBase.check_forward_args)),
        mock.patch.object(torch.nn.LSTM, "check_forward_args", unchecked(torch.nn.LSTM.check_forward_args)),
    ):
        yield
