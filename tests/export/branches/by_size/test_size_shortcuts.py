"""A run that looks at sizes alone has to end with the shapes, and with the decisions, that torch has."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.export.branches.by_size.size_paths import explore_sizes
from trtconv.export.branches.by_size.size_shortcuts import ReshapedInPlaceError, shortened
from trtconv.export.module.runner import ModuleRunner

D, S = DimDynamic.DYNAMIC, DimDynamic.STATIC


@pytest.fixture
def symbolic():
    """Makes fake tensors; the second argument says which axes move."""
    mode = FakeTensorMode(shape_env=ShapeEnv(duck_shape=False, specialize_zero_one=False))

    def make(shape, kinds, dtype=torch.float32):
        context = StatelessSymbolicContext(dynamic_sizes=kinds)
        return mode.from_tensor(torch.empty(shape, dtype=dtype), symbolic_context=context, static_shapes=False)

    return make


ONE = [
    (F.relu, (), {}), (F.relu, (), {"inplace": True}), (F.gelu, (), {}), (F.softmax, (1,), {}),
    (F.group_norm, (3,), {}),
    (F.layer_norm, ((7,),), {}), (F.dropout, (0.5, False), {}), (torch.sigmoid, (), {}), (torch.Tensor.tanh, (), {}),
    (torch.Tensor.clamp, (), {"min": 0.0}), (F.batch_norm, (torch.zeros(6), torch.ones(6)), {}),
    (torch.Tensor.mul, (2,), {}), (torch.Tensor.add, (0.5,), {}), (torch.rsub, (1,), {}), (torch.Tensor.div, (3,), {}),
    (F.linear, (torch.zeros(4, 7),), {}), (F.linear, (torch.zeros(4, 7), torch.zeros(4)), {}),
    (F.interpolate, (), {"scale_factor": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("function", "rest", "keywords"), ONE)
def test_the_result_has_torchs_shape_and_type(symbolic, function, rest, keywords):
    x = symbolic((2, 6, 5, 7), [D, S, D, S])
    result = shortened(function, (x, *rest), keywords, True)
    expected = function(torch.zeros(2, 6, 5, 7), *rest, **keywords)
    assert result is not NotImplemented
    assert tuple(map(int, result.shape)) == tuple(expected.shape)
    assert result.dtype == expected.dtype


LEFT = [
    (F.softmax, (1,), {"dtype": torch.float64}), (F.instance_norm, (), {}), (torch.Tensor.add, (1,), {"alpha": 2}),
    (F.linear, (torch.zeros(4, 7, dtype=torch.float64),), {}), (torch.Tensor.sum, (), {}), (torch.max, (), {}),
]  # fmt: skip


@pytest.mark.parametrize(("function", "rest", "keywords"), LEFT)
def test_the_rest_is_left_to_torch(symbolic, function, rest, keywords):
    assert shortened(function, (symbolic((2, 6, 5, 7), [D, S, D, S]), *rest), keywords, True) is NotImplemented


def test_whole_numbers_and_other_types_are_left_to_torch(symbolic):
    whole = symbolic((2, 3), [D, S], torch.int64)
    floats, doubles = symbolic((2, 3), [D, S]), symbolic((2, 3), [D, S], torch.float64)
    assert shortened(torch.Tensor.div, (whole, 2), {}, True) is NotImplemented
    assert shortened(F.relu, (whole,), {}, True) is NotImplemented
    assert shortened(torch.Tensor.add, (floats, doubles), {}, True) is NotImplemented


def test_what_has_values_is_left_to_torch(symbolic):
    weight, x = nn.Parameter(torch.full((2, 7), 3.0)), symbolic((2, 7), [D, S])
    assert shortened(torch.Tensor.mul, (weight, 2.0), {}, True) is NotImplemented
    assert shortened(F.softmax, (weight, 1), {}, True) is NotImplemented
    assert shortened(F.batch_norm, (weight, torch.zeros(7), torch.ones(7)), {}, True) is NotImplemented
    with x.fake_mode:
        number = torch.tensor(3.0)
    assert number.constant is not None
    assert shortened(torch.Tensor.mul, (number, 2), {}, True) is NotImplemented


class ByANumber(nn.Module):
    def __init__(self):
        super().__init__()
        self.limit = nn.Parameter(torch.tensor(3.0))

    def forward(self, x):
        if x.shape[1] > (torch.tensor(3.0) * 4).item():
            return x * 2
        return x - self.limit


def test_a_number_that_is_computed_without_inputs_decides_as_it_does_in_a_run(tmp_path):
    specs, space = [parse_tensor("x:float32[N,T]")], parse_space(["N=2", "T=4:4:20"])
    found = explore_sizes(ModuleRunner(ByANumber().eval(), specs), specs, space, [{"N": 2, "T": 4}], tmp_path)
    assert (found.paths, found.obstacle, found.followed) == (2, "", 17)
    assert {4, 13} <= {p["T"] for p in found.points}


def test_a_sum_is_shortened_only_where_the_sizes_are_the_same_expressions(symbolic):
    x, y = symbolic((2, 5), [D, D]), symbolic((2, 5), [D, D])
    assert shortened(torch.Tensor.add, (x, x), {}, True) is x
    assert shortened(torch.Tensor.add, (x, y), {}, True) is NotImplemented
    assert shortened(torch.Tensor.mul, (x, symbolic((1, 1), [S, S])), {}, True) is x
    assert shortened(torch.Tensor.mul, (x, symbolic((3, 1, 1), [S, S, S])), {}, True) is NotImplemented
    assert shortened(torch.Tensor.mul, (symbolic((1, 1), [S, S]), x), {}, True) is NotImplemented


def test_a_moving_length_that_has_to_be_a_weights_is_left_to_torch(symbolic):
    x = symbolic((2, 7), [S, D])
    assert shortened(F.linear, (x, torch.zeros(4, 7)), {}, True) is NotImplemented
    assert shortened(F.layer_norm, (x, (7,)), {}, True) is NotImplemented


def test_a_shape_that_changes_in_place_is_told(symbolic):
    x = symbolic((2, 1, 5), [D, S, D])
    with pytest.raises(ReshapedInPlaceError):
        shortened(torch.Tensor.squeeze_, (x, 1), {}, True)
    assert shortened(torch.Tensor.squeeze_, (x, 1), {}, False) is NotImplemented


class InPlace(nn.Module):
    def forward(self, x):
        y = torch.relu(x)
        y.unsqueeze_(1)
        if x.dim() == 2 and x.shape[1] > 9:
            return y[:, 0] + x
        return y[:, 0] - x


class Contiguous(nn.Module):
    def forward(self, x):
        y = torch.relu(x[:, ::2])
        y = y.view(-1)
        return y * 2 if y.shape[0] > 12 else y * 3


@pytest.mark.parametrize("module", [InPlace(), Contiguous()])
def test_what_a_shared_tensor_would_hide_is_followed(module, tmp_path):
    specs = [parse_tensor("x:float32[N,T]")]
    space = parse_space(["N=2:2:4", "T=4:4:20"])
    found = explore_sizes(ModuleRunner(module.eval(), specs), specs, space, [{"N": 2, "T": 4}], tmp_path)
    assert (found.obstacle, found.followed) == ("", found.total)
    assert found.paths >= 2


CELLS = {torch.gru_cell: (3, 1), torch.lstm_cell: (4, 2), torch.rnn_tanh_cell: (1, 1), torch.rnn_relu_cell: (1, 1)}


@pytest.mark.parametrize("cell", CELLS)
def test_a_step_of_a_recurrent_layer_gives_its_state(symbolic, cell):
    gates, states = CELLS[cell]
    weights = (torch.zeros(gates * 5, 7), torch.zeros(gates * 5, 5), torch.zeros(gates * 5), torch.zeros(gates * 5))
    x = symbolic((2, 7), [D, S])
    state = torch.empty_like(x.new_empty((x.shape[0], 5)))
    result = shortened(cell, (x, state if states == 1 else [state] * states, *weights), {}, True)
    assert isinstance(result, tuple) == (states == 2)
    for each in result if states == 2 else (result,):
        assert each.shape == state.shape
        assert each.shape[0].node.expr == x.shape[0].node.expr
        assert each.dtype == torch.float32
    # Another's rows that have to be as many are a condition on the sizes.
    assert shortened(cell, (x, [symbolic((2, 5), [D, S])] * states, *weights), {}, True) is NotImplemented
    assert shortened(cell, (symbolic((2, 7), [S, D]), [state] * states, *weights), {}, True) is NotImplemented


def test_attention_gives_rows_of_values(symbolic):
    attention = F.scaled_dot_product_attention
    query, others = symbolic((2, 3, 5, 4), [D, S, D, S]), symbolic((2, 3, 6, 4), [D, S, D, S])
    key = query.new_empty((query.shape[0], 3, others.shape[2], 4))
    value = query.new_empty((query.shape[0], 3, others.shape[2], 7))
    mask = query.new_empty((query.shape[2], others.shape[2]))
    for keywords in ({}, {"attn_mask": mask}, {"is_causal": True, "scale": 0.5}):
        result = shortened(attention, (query, key, value), keywords, True)
        assert [n.node.expr for n in result.shape[::2]] == [n.node.expr for n in query.shape[::2]]
        assert result.shape[1::2] == (3, 7)
    for rest in ((others, value), (key, others), (key, query.new_empty((query.shape[0], 3, query.shape[2], 4)))):
        assert shortened(attention, (query, *rest), {}, True) is NotImplemented
    assert shortened(attention, (query, key, value), {"attn_mask": mask.transpose(0, 1)}, True) is NotImplemented
    assert shortened(attention, (query, key, value), {"enable_gqa": True}, True) is NotImplemented
