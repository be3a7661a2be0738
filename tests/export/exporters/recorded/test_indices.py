"""Indices in pairs, and sums where indices meet, in a recorded file and in a script."""

import torch


def in_pairs(x, i):
    rows = torch.arange(x.shape[0])
    return x[rows, i], x[rows, i - 1], x[rows, i, i], x[rows[:, None], torch.stack([i, i - 1], 1)]


def summed(x, i):
    zeros = torch.zeros_like(x)
    return (
        zeros.index_add(1, i, x[:, :3]), zeros.index_add(0, i.clamp(min=0), x, alpha=2),
        zeros.index_put((i,), x, accumulate=True), zeros.index_put((i, i), x[:, 0], accumulate=True),
    )  # fmt: skip


def test_negative_indices_in_pairs(differing):
    x = torch.arange(60.0).reshape(3, 5, 4)
    assert not differing(in_pairs, x, torch.tensor([0, -1, -3]))


def test_sums_where_indices_meet(differing):
    x = torch.arange(60.0).reshape(3, 5, 4)
    assert not differing(summed, x, torch.tensor([0, 2, 0]))
    assert not differing(summed, x, torch.tensor([1, 1, 1]))
