"""What is written in place in a recorded run reaches every tensor of the same memory, also where no sample shows it."""

from __future__ import annotations

import io

import numpy as np
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from trtconv.core.errors import UnsupportedError
from trtconv.export.exporters.recorded.operators import recorded_forms
from trtconv.export.symbolic.mode import symbolic_functions
from trtconv.export.symbolic.recording.aliases import RecordedAliases, gives_views


def recorded(function, *inputs, opset=17):
    """What the file of a function gives at other values than it was recorded with, beside the function itself."""

    class Recorded(nn.Module):
        def forward(self, *tensors):
            with symbolic_functions() as aliases:
                result = function(*tensors)
            aliases.recognise((result,))
            return result

    names = [f"in{i}" for i in range(len(inputs))]
    axes = {n: dict.fromkeys(range(t.dim())) for n, t in zip(names, inputs, strict=True)}
    axes = {n: {a: f"{n}_{a}" for a in which} for n, which in axes.items()}
    file = io.BytesIO()
    with torch.no_grad(), recorded_forms(opset):
        # As on samples that no mask takes in.
        dull = tuple(torch.zeros_like(t[:1]) for t in inputs)
        torch.onnx.export(
            Recorded(), dull, file, dynamo=False, opset_version=opset, input_names=names, dynamic_axes=axes
        )
    session = onnxruntime.InferenceSession(file.getvalue())
    feed = {n: t.numpy() for n, t in zip(names, inputs, strict=True)}
    outputs = session.run(None, {v.name: feed[v.name] for v in session.get_inputs()})
    with torch.no_grad():
        expected = function(*inputs)
    return outputs[0], expected.numpy()


def writes_mask(y):
    y[y > 2] = 0.5
    return y


def writes_mask_beside_slices(y):
    y[y[:, :, 0] > 1, 0] = -3.0
    return y


def writes_mask_through_a_slice(y):
    y[:, 1:][y[:, 1:] > 1] = 0.0
    return y


def writes_mask_in_the_last_axis(y):
    y[..., 0][y[..., 0] > 0] = 7.0
    return y


def fills_a_transposed_view(y):
    y.transpose(1, 2).masked_fill_(y.transpose(1, 2) > 1, -1.0)
    return y


def clamps_a_flat_view(y):
    y.view(-1).clamp_(max=0.5)
    return y


def clamps_a_slice_of_a_transposed_view(y):
    y.transpose(1, 2)[:, :2].clamp_(max=0.25)
    return y


def clamps_a_narrowed_view(y):
    y.narrow(1, 0, 2).clamp_(max=0.25)
    return y


def multiplies_permuted(y):
    y.permute(2, 0, 1)[1].mul_(3.0)
    return y


def thresholds_within_a_function(y):
    F.threshold(y.unsqueeze(0).squeeze(0), 0.5, -2.0, inplace=True)
    return y


def adds_to_data(y):
    y.data.add_(2.0)
    return y


def writes_the_base_behind_a_view(y):
    view = y.transpose(1, 2)
    y.clamp_(max=0.5)
    return view * 2


def writes_one_view_and_reads_another(y):
    first, second = y[:, 1:], y.flatten(1)
    first.mul_(-1.0)
    return second + 1


def writes_a_chunk(y):
    y.chunk(2, -1)[1].relu_()
    return y


def fills_a_diagonal(y):
    y.diagonal(dim1=1, dim2=2).fill_(-9.0)
    return y


def doubles_a_diagonal_of_a_transposed_slice(y):
    y[:, 1:].mT.diagonal(1, 1, 2).mul_(2.0)
    return y


def writes_a_diagonal_and_reads_a_view(y):
    flat = y.view(-1, 4)
    torch.diagonal(y, dim1=1, dim2=2).relu_()
    return flat + 1


def clamps_behind_a_new_axis(y):
    y[None].clamp_(max=0.5)
    y[:, None, 1:].squeeze(1).mul_(2.0)
    y[..., None][:, 2].fill_(3.0)
    return y


def clamps_windows(y):
    y.unfold(1, 2, 2)[..., 0].clamp_(max=0.25)
    return y


def fills_its_own_diagonal(y):
    y[0].fill_diagonal_(9.0)
    return y


def adds_into_a_slice(y):
    torch.add(y[:, 1], y[:, 2], out=y[:, 1])
    torch.exp(y[:, 3:], out=y[:, 3:])
    return y


def multiplies_two_views_at_once(y):
    torch._foreach_mul_([y[:, 1], y[:, 2]], [y[:, 3].sum(), y[:, 0].sum()])
    return y


FUNCTIONS = (
    writes_mask, writes_mask_beside_slices, writes_mask_through_a_slice, writes_mask_in_the_last_axis,
    fills_a_transposed_view, clamps_a_flat_view, clamps_a_slice_of_a_transposed_view, clamps_a_narrowed_view,
    multiplies_permuted, thresholds_within_a_function, adds_to_data, writes_the_base_behind_a_view,
    writes_one_view_and_reads_another, writes_a_chunk, fills_a_diagonal, doubles_a_diagonal_of_a_transposed_slice,
    writes_a_diagonal_and_reads_a_view, clamps_behind_a_new_axis, clamps_windows, fills_its_own_diagonal,
    adds_into_a_slice, multiplies_two_views_at_once,
)  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_every_tensor_of_the_memory_sees_it(function):
    x = torch.randn(2, 5, 4, generator=torch.Generator().manual_seed(0)) * 2
    actual, expected = recorded(lambda x: function(x.clone()), x)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)
    assert not np.array_equal(expected, x.numpy())


def test_sums_at_one_index():
    index = torch.tensor([0, 2, 0, -1, 2])
    x = torch.arange(20.0).reshape(5, 4)
    cases = (
        lambda x, i: torch.zeros_like(x).index_add(0, i, x, alpha=2),
        lambda x, i: torch.zeros_like(x).index_add_(0, i, x),
        lambda x, i: torch.zeros_like(x).index_put((i,), x, accumulate=True),
        lambda x, i: torch.zeros_like(x).index_put_((i, i), x[:, 0], accumulate=True),
        lambda x, i: torch.zeros_like(x).put(i, x[:, 1], accumulate=True),
    )
    for case in cases:
        if case is cases[0] or case is cases[1]:
            actual, expected = recorded(case, x, index.clamp(min=0))
        else:
            actual, expected = recorded(case, x, index)
        np.testing.assert_array_equal(actual, expected)


def test_quotients_beyond_whole_numbers():
    x = torch.tensor([1e20, -1e20, 7.5, -7.5, float("inf")])
    actual, expected = recorded(lambda x: torch.div(x, 3.0, rounding_mode="trunc"), x)
    np.testing.assert_array_equal(actual, expected)
    actual, expected = recorded(lambda x: x.clone().div_(3.0, rounding_mode="trunc"), x)
    np.testing.assert_array_equal(actual, expected)


class Kind(torch.Tensor):
    pass


def of_a_subclass(y):
    z = y.as_subclass(Kind)
    z[z > 2] = 0.5
    return y


def of_a_parameter(y):
    z = nn.Parameter(y, requires_grad=False)
    z.clamp_(max=2.0)
    return y


def of_a_constructor(y):
    z = torch.Tensor(y)
    y[y > 2] = 0.5
    return z


def of_an_owner_that_is_gone(y):
    z = nn.Parameter(y, requires_grad=False)
    y.clamp_(max=2.0)
    del y
    return z * 1


def of_a_view_of_another_name(y):
    z = torch.Tensor(y)
    z[:, 1:].clamp_(max=2.0)
    return y + z


OTHER_NAMES = (
    of_a_subclass, of_a_parameter, of_a_constructor, of_an_owner_that_is_gone, of_a_view_of_another_name,
)  # fmt: skip


@pytest.mark.parametrize("function", OTHER_NAMES, ids=[f.__name__ for f in OTHER_NAMES])
def test_what_no_mode_sees_is_another_name_of_its_memory(function):
    actual, expected = recorded(lambda x: function(x * 1.0), torch.randn(3, 5, 4) * 4)
    np.testing.assert_array_equal(actual, expected)


def part_of(y):
    """A view that no mode sees."""
    with torch._C.DisableTorchFunction():
        return y[:, 1:]


def reads_the_part(y):
    part = part_of(y)
    y.clamp_(max=2.0)
    return part * 1


def writes_the_part(y):
    part_of(y).clamp_(max=2.0)
    return y * 1


@pytest.mark.parametrize("function", [reads_the_part, writes_the_part])
def test_another_name_of_another_shape_is_refused(function):
    with pytest.raises(UnsupportedError, match="shares memory"):
        recorded(lambda x: function(x * 1.0), torch.randn(3, 5, 4))


def test_a_start_from_the_end():
    def function(x):
        y = x * 1.0
        torch.narrow(y, 1, -2, 1).clamp_(max=2.0)
        return y

    actual, expected = recorded(function, torch.randn(3, 5, 4) * 4)
    np.testing.assert_array_equal(actual, expected)


def test_a_stand_in_without_its_tensor_is_not_written():
    aliases, stand_in = RecordedAliases(), torch.ones(3)
    aliases.note_copies("diagonal", (), stand_in, lambda x: x.diagonal())
    with pytest.raises(UnsupportedError, match="written into diagonal"):
        aliases.follow(torch.Tensor.relu_, "relu_", (stand_in,), {}, stand_in.relu_)


def test_views_are_told_by_torchs_schemas():
    assert all(gives_views(name) for name in ("diagonal", "Tensor.unfold", "chunk", "squeeze", "transpose"))
    assert not any(gives_views(name) for name in ("roll", "sort", "clamp", "where", "no_such_operator"))
