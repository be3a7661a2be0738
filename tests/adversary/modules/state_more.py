"""Hooks, monkeypatches, wrappers and other ways in which a forward is not what its class says."""

from __future__ import annotations

import types

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward

X, N = "x:float32[N,4]", "N=1:2:5"
THREE = torch.tensor(3.0)


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)

    def forward(self, x):
        return self.norm(self.layer(x))


@attack(X, dims=N)
def patched_forward():
    module = Plain()
    module.forward = types.MethodType(lambda self, x: self.layer(x) - self.norm(x), module)
    return module


@attack(X, dims=N)
def patched_child():
    module = Plain()
    module.layer.forward = lambda x: x.flip(-1)
    return module


@attack(X, dims=N)
def hook_on_root():
    module = Plain()
    module.register_forward_hook(lambda m, i, o: (o, o * 2))
    return module


@attack(X, dims=N)
def hook_with_kwargs():
    module = Plain()
    module.register_forward_pre_hook(lambda m, a, k: (a, {n: v * 3 for n, v in k.items()}), with_kwargs=True)
    return module


@attack(X, dims=N, refused="forward changes")
def weight_changed_by_hook():
    module = Plain()

    def shrink(m, inputs):
        with torch.no_grad():
            m.weight.mul_(0.999)

    module.layer.register_forward_pre_hook(shrink)
    return module


@attack(X, dims=N)
def compiled_child():
    module = Plain()
    module.layer = torch.compile(module.layer, backend="eager")
    return module


@attack(X, dims=N)
def scripted_child():
    module = Plain()
    module.layer = torch.jit.script(module.layer)
    return module


@attack(X, dims=N)
def scripted_with_branch():
    class Branch(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if bool(x.sum() > 0.0):
                return x * 2.0
            return x - 1.0

    return torch.jit.script(Branch())


@attack(X, dims=N)
def scripted_loop():
    class Loop(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            total = torch.zeros_like(x[0])
            for i in range(x.size(0)):
                total = total * 0.5 + x[i]
            return total

    return torch.jit.script(Loop())


@attack(X, dims=N)
def traced_child_baked_size():
    class Inner(nn.Module):
        def forward(self, x):
            return x + torch.arange(x.shape[0], dtype=torch.float32)[:, None] / x.shape[0]

    module = Plain()
    module.layer = torch.jit.trace(Inner(), torch.zeros(3, 4))
    return module


@attack(X, dims=N)
def data_parallel_wrapper():
    return nn.DataParallel(Plain())


@attack(X, dims=N)
def lazy_linear():
    module = Plain()
    module.layer = nn.LazyLinear(4)
    module(torch.zeros(1, 4))
    return module


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


class Swap(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        return y * 2, x - 1

    @staticmethod
    def backward(ctx, a, b):
        return b, a


@forward(X, dims=N)
def autograd_function_round(self, x):
    return StraightThrough.apply(x * 2) / 2


@forward(X, dims=N)
def autograd_function_two(self, x):
    a, b = Swap.apply(x, x.flip(1))
    return a - b


@forward(X, dims=N)
def gradient_in_forward(self, x):
    with torch.enable_grad():
        y = x.detach().requires_grad_()
        (grad,) = torch.autograd.grad((y**3).sum(), y)
    return grad


@forward(X, dims=N, refused="cannot be exported")
def functional_grad(self, x):
    return torch.func.grad(lambda v: (v.sin() * v).sum())(x)


@forward(X, dims=N)
def vmapped(self, x):
    return torch.vmap(lambda row: row / row.norm().clamp_min(1e-3) + row.cumsum(0))(x)


@forward(X, dims=N)
def vmapped_cond(self, x):
    return torch.vmap(lambda row: torch.where(row.sum() > 0, row, -row))(x)


@forward(X, dims=N)
def complex_product(self, x):
    z = torch.complex(x[:, :2], x[:, 2:])
    w = z * z.conj().flip(1) + 1j
    return torch.view_as_real(w)


@forward(X, dims=N)
def complex_angle(self, x):
    return torch.complex(x[:, :2], x[:, 2:]).angle()


@forward(X, dims=N)
def polar_power(self, x):
    return torch.polar(x[:, :2].abs(), x[:, 2:]).real


@forward(X, dims=N, refused="cannot be exported")
def sparse_product(self, x):
    indices = torch.tensor([[0, 1, 2, 2], [1, 0, 3, 3]])
    weight = torch.sparse_coo_tensor(indices, torch.tensor([1.0, 2.0, 3.0, 4.0]), (3, 4))
    return torch.sparse.mm(weight, x.T).T


@forward(X, dims=N, refused="cannot be exported")
def sparse_coalesced(self, x):
    return x.to_sparse().to_dense() * 2


@forward(X, dims=N, refused="cannot be exported")
def nested_mean(self, x):
    rows = torch.nested.nested_tensor([x[0], x[0, :2]])
    return torch.nested.to_padded_tensor(rows, -1.0)


@attack(X, dims=N, refused="cannot be exported")
def dynamic_quantised():
    torch.backends.quantized.engine = "x86" if "x86" in torch.backends.quantized.supported_engines else "qnnpack"
    return torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval(), {nn.Linear})


@forward(X, dims=N)
def fake_quantised(self, x):
    return torch.fake_quantize_per_tensor_affine(x, 0.05, 3, -128, 127)


@forward(X, dims=N, noted="with an infinity")
def fake_quantised_channels(self, x):
    scale, zero = torch.tensor([0.1, 0.05, 0.2, 1.0]), torch.tensor([0, 1, -3, 5], dtype=torch.int32)
    return torch.fake_quantize_per_channel_affine(x, scale, zero, 1, -8, 7)


@forward(X, dims=N)
def autocast_inside(self, x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return F.linear(x, torch.linspace(-1, 1, 16).reshape(4, 4)).float()


@forward(X, dims=N)
def default_dtype_inside(self, x):
    return x * torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.get_default_dtype())


@forward(X, dims=N)
def checkpointed(self, x):
    return torch.utils.checkpoint.checkpoint(lambda v: v.tanh() * 2, x, use_reentrant=False)


@forward(X, "k:float32[4]", dims=N)
def keyword_only(self, x, *, k):
    return x - k


@forward("b:float32[N,4]", "a:float32[N,4]", dims=N)
def order_of_names(self, a, b):
    return a - 2 * b


@forward(X, dims=N)
def default_argument_tensor(self, x, scale=THREE, flag=True):
    return x * scale if flag else x


@forward(X, dims=N)
def variadic(self, *tensors, **named):
    values = [*tensors, *named.values()]
    return values[0] * 2


@forward(X, dims=N)
def dict_order(self, x):
    return {"z": x + 1, "a": x + 2, "m": {"q": x.sum(1), "b": x.mean(1)}}


@forward(X, dims=N)
def list_with_none(self, x):
    return [x, None, (x * 2, [x * 3, None])]


@forward(X, dims=N, refused="the module returns")
def optional_output_by_size(self, x):
    return (x, x * 2) if x.shape[0] > 1 else (x,)


@forward(X, dims=N, refused="is of type int")
def number_in_dict(self, x):
    return {"y": x * 2, "scale": 3}


@forward(X, dims=N, refused="is of type int")
def size_in_dict(self, x):
    return {"y": x * 2, "count": x.shape[0]}


@forward(X, dims=N)
def same_tensor_two_names(self, x):
    y = x * 2
    return {"first": y, "second": y, "input": x}
