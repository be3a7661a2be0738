"""A module of the caller's is, after a conversion, what calls of his own would have left."""

import pytest
import torch
from torch import nn

import trtconv
from trtconv.api.calls import requested_module

REQUEST = {"inputs": {"x": "float32[N,8]"}, "dynamic": {"N": "1:2:4"}}


class FoldsItsNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(8, 4), nn.BatchNorm1d(4)
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x):
        if isinstance(self.norm, nn.BatchNorm1d):
            scale = self.norm.weight.data / (self.norm.running_var + self.norm.eps).sqrt()
            self.linear.weight.data = self.linear.weight.data * scale[:, None]
            self.linear.bias.data = self.linear.bias.data * scale
            self.norm = nn.Identity()
        return self.norm(self.linear(x))


class MergesABranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x):
        if hasattr(self, "b"):
            self.a.weight.data.add_(self.b.weight.data)
            self.a.bias.data.add_(self.b.bias.data)
            del self.b
        return self.a(x)


class Transposes(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.is_transposed = nn.Parameter(torch.randn(4, 8)), False

    def forward(self, x):
        if not self.is_transposed:
            self.w.data, self.is_transposed = self.w.data.t().contiguous(), True
        return x @ self.w


class RemovesAParametrization(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.utils.parametrizations.weight_norm(nn.Linear(8, 4))

    def forward(self, x):
        if nn.utils.parametrize.is_parametrized(self.linear):
            nn.utils.parametrize.remove_parametrizations(self.linear, "weight")
        return self.linear(x)


class HookOfOneCall(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 4)

        def double(part, _):
            part.weight.data.mul_(2)
            handle.remove()

        handle = self.linear.register_forward_pre_hook(double)

    def forward(self, x):
        return self.linear(x)


def made(kind):
    torch.manual_seed(5)
    return kind()


@pytest.mark.parametrize("kind", [FoldsItsNorm, MergesABranch, Transposes, RemovesAParametrization, HookOfOneCall])
def test_what_a_first_call_does_to_the_module_happens_once(tmp_path, kind):
    module, twin, x = made(kind), made(kind).eval(), torch.randn(3, 8)
    result = trtconv.convert(module, output=tmp_path, **REQUEST)
    expected = twin(x)
    torch.testing.assert_close(module.eval()(x), expected)
    outputs = trtconv.load(result.rewritten)(x=x.numpy())
    torch.testing.assert_close(torch.from_numpy(next(iter(outputs.values()))), expected)


class Averaged(nn.Module):
    """Its weights and their mean change places with its mode."""

    def __init__(self):
        super().__init__()
        self.linear, self.mean = nn.Linear(8, 4), nn.Linear(8, 4)

    def train(self, mode=True):
        if mode is not self.training:
            self.linear, self.mean = self.mean, self.linear
        return super().train(mode)

    def forward(self, x):
        return self.linear(x)


def test_a_mode_is_put_back_by_the_module_itself():
    part = Averaged()
    net, weight = nn.Sequential(part), part.linear.weight
    with requested_module(net):
        net.eval()
        assert part.linear.weight is not weight
    assert part.linear.weight is weight
    assert part.training


class LeavesASize(nn.Module):
    last = 0

    def __init__(self):
        super().__init__()
        self.sizes, self.largest = [], {}

    def forward(self, x):
        type(self).last = x.shape[0]
        self.sizes.append(x.shape[0])
        self.largest["N"] = max(self.largest.get("N", 0), x.shape[0])
        return x * 2


def test_no_symbol_of_a_trace_is_left(tmp_path):
    module = LeavesASize()
    trtconv.convert(module, output=tmp_path, **REQUEST)
    assert {type(size) for size in (LeavesASize.last, module.largest["N"], *module.sizes)} == {int}


def test_lazy_layers_are_refused_and_left_as_they_are(tmp_path):
    module = nn.Sequential(nn.LazyLinear(4))
    with pytest.raises(trtconv.InvalidRequestError, match=r"lazy layers of .* have no weights yet: '0.weight'"):
        trtconv.convert(module, output=tmp_path, **REQUEST)
    assert module(torch.zeros(2, 8)).shape == (2, 4)


def test_denormals_are_flushed_again_where_they_were():
    def flushed():
        return float(torch.tensor([1e-40]) * 1) == 0.0

    torch.set_flush_denormal(True)
    try:
        with requested_module(nn.Identity()):
            assert not flushed()
        assert flushed()
    finally:
        torch.set_flush_denormal(False)
