# ruff: noqa: E501, RUF059 - attacks are written as users write them
"""What torch rounds once in half precision: a product and its bias, by autocast and by layers in half; conditions of narrow sizes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack, forward
from tests.adversary.modules.fortyseventh.followups_more import long
from tests.adversary.modules.fortysixth.pictures import X4, seq

X, H4 = "x:float32[N,T]", "h:float16[N,T,4]"
WRAPS = (1, 2, 3, 127, 128, 129, 253, 254, 255, 256, 257, 500, 509, 765, 1021, 2557, 4093, 4999, 5000)


def opposed(dtype, bias):
    """A linear layer in a half type whose bias opposes its products."""
    lin = nn.Linear(4, 4)
    with torch.no_grad():
        lin.bias.fill_(bias)
        lin.weight.abs_().add_(0.5)
    return lin.to(dtype)


@attack(H4, **seq(H4))
class A6101HalfLinear(nn.Module):
    """A linear layer in half whose bias opposes its products, and a decision on it."""

    def __init__(self):
        super().__init__()
        self.lin = opposed(torch.float16, -8.0)

    def forward(self, h):
        y = self.lin(h * 0 + h.abs() + 2.4)
        return y, y > 0


@attack("h:float16[N,T,4]=0:4", **seq("h:float16[N,T,4]=0:4"))
class A6102HalfLinearOfRange(nn.Module):
    """The same at values of a declared range, nearer to the bias."""

    def __init__(self):
        super().__init__()
        self.lin = opposed(torch.float16, -8.0)

    def forward(self, h):
        y = self.lin(h)
        return y.float(), (y > 0).float().mean(1)


@attack(X4, **seq(X4))
class A6103AutocastLinear(nn.Module):
    """By autocast to bfloat16: a bias of -3 opposes products of about three; the gate is what is above a tenth."""

    def __init__(self):
        super().__init__()
        self.lin = opposed(torch.float32, -3.0)

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            y = self.lin(x.sigmoid())
        return y.float(), y > 0.1


@attack(X4, **seq(X4), refused="the exported model differs from the module")
class A6104AutocastHalf(nn.Module):
    """The same by float16, two layers, with an argmax of their outputs."""

    def __init__(self):
        super().__init__()
        self.a, self.b = opposed(torch.float32, -3.0), opposed(torch.float32, 0.2)

    def forward(self, x):
        with torch.autocast("cpu", torch.float16):
            y = self.b(F.relu(self.a(x.sigmoid())))
        return y.float(), y.float().argmax(-1)


@attack(X4, **seq(X4), refused="the exported model differs from the module")
class A6105BiasOfMany(nn.Module):
    """A bfloat16 layer with biases of a thousand and scores that are differences of its outputs."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        with torch.no_grad():
            self.lin.bias.copy_(torch.tensor([1000.0, 1001.0, 1002.0, 1003.0]))
            self.lin.weight.mul_(8)
        self.lin.bfloat16()

    def forward(self, x):
        y = self.lin(x.bfloat16()).float()
        return y - 1000, (y - y.amax(-1, keepdim=True)).softmax(-1)


@attack(H4, **seq(H4))
class A6106FusedInHalf(nn.Module):
    """Other fused products in half: addmm, baddbmm, a convolution with its bias, a bilinear, an einsum plus a bias."""

    def __init__(self):
        super().__init__()
        self.c = nn.Conv1d(4, 4, 1).half()
        with torch.no_grad():
            self.c.bias.fill_(-8.0)

    def forward(self, h):
        v = h.abs() + 2
        w = torch.eye(4, dtype=torch.float16) * 1.03
        b = torch.full((4,), -2.5, dtype=torch.float16)
        return torch.baddbmm(b, v, w.expand(h.shape[0], 4, 4)), self.c(v.transpose(1, 2)), torch.einsum("btc,cd->btd", v, w) + b, torch.addmm(b, v[0], w)


@attack("h:float16[T,4]=0:4", dims="T=1:9:40")
class A6107HalfLinearOfTwoAxes(nn.Module):
    """A linear layer in half of two axes."""

    def __init__(self):
        super().__init__()
        self.lin = opposed(torch.float16, -8.0)

    def forward(self, h):
        y = self.lin(h)
        return y.float(), y > 0


@forward(X, **long(X, sizes=WRAPS))
def A6108CondOfBytes(self, x):
    """torch.cond by a size in bytes, summed up over both axes."""
    n = torch.full((1,), x.shape[1]).to(torch.uint8)
    return torch.cond(n[0] == 253, lambda v: v * 2, lambda v: -v, (x,))


@forward(X, **long(X, sizes=(*WRAPS, 1290, 1291, 1625, 1626)))
def A6109CondOfInt32(self, x):
    """torch.cond by the sign of a cube of the size in int32."""
    t = torch.tensor(x.shape[1])
    c = (t * t * t).to(torch.int32)
    return torch.cond(c < 0, lambda v: v * 2, lambda v: -v, (x,))


@forward(X, **long(X, sizes=(*WRAPS, 2731, 2732, 2733)))
def A6110CondOfShort(self, x):
    """torch.cond by a number of samples in int16."""
    n = torch.tensor(x.shape[1] * 12).to(torch.int16)
    return torch.cond(n == -32764, lambda v: v.flip(1), lambda v: v * 0.5, (x,))


@forward(X, **long(X, sizes=(*WRAPS, 2047, 2048, 2049, 2050, 2051)))
def A6111CondOfHalf(self, x):
    """torch.cond by a size in half: beyond 2048 the odd ones are rounded."""
    n = torch.tensor(x.shape[1]).to(torch.float16)
    return torch.cond(n == 2052, lambda v: v.flip(1), lambda v: v * 0.5, (x,))


@forward(X, **long(X, sizes=WRAPS))
def A6112WhereOfBytes(self, x):
    """A where by a size in int8, no cond; an index into a table by it."""
    n = torch.tensor(x.shape[1]).to(torch.int8)
    return torch.where(n == -3, x * 2, -x), torch.tensor([1.0, 5.0, 9.0])[(n == -3).long()] * x


@forward(X, **long(X, sizes=WRAPS))
def A6113WhileOfBytes(self, x):
    """A while_loop as often as the last byte of the size, at most four."""
    n = torch.tensor(x.shape[1]).to(torch.int8)
    from torch._higher_order_ops.while_loop import while_loop

    k, y = while_loop(lambda k, y: (k < 0) & (k > -5), lambda k, y: (k + 1, y * 0.5), (n.to(torch.int64), x))
    return y


@forward(X, **long(X, sizes=WRAPS))
def A6114CondOfNarrowMinimum(self, x):
    """torch.cond by the least of positions in int8: below zero from 129 positions on."""
    p = torch.arange(x.shape[1]).to(torch.int8)
    return torch.cond(p.amin() < -127, lambda v: v * 2, lambda v: -v, (x,))


@torch.jit.script
def narrow_script(x: torch.Tensor) -> torch.Tensor:
    """A scripted branch by a length in int8."""
    t = torch.tensor([x.size(1)]).to(torch.int8)
    if int(t[0]) == -3:
        return x * 2
    return -x


@forward(X, **long(X, sizes=WRAPS))
def A6115ScriptOfNarrow(self, x):
    """Ended the process by SIGSEGV: a script wrote a list into a tensor without data."""
    return narrow_script(x)
