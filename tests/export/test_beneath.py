"""What changes operators of torch beneath what exporters record is refused by its line."""

import pytest

from trtconv.core.errors import AccuracyError, TrtconvError

MODE = """
from torch.utils._python_dispatch import TorchDispatchMode

class Limit(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        return out.clamp(max=1e6) if func is torch.ops.aten.mul.Tensor else out

class Net(nn.Module):
    def forward(self, x):
        with Limit():
            return x * 2
"""
TENSOR = """
from torch.utils._mode_utils import no_dispatch

class Pinned(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        with no_dispatch():
            out = func(*args, **(kwargs or {}))
            return out.clamp(max=1e6) if func is torch.ops.aten.mul.Tensor else out

class Net(nn.Module):
    def forward(self, x):
        return torch.Tensor._make_subclass(Pinned, x * 1.0) * 2
"""
KERNEL = """
library = torch.library.Library("aten", "IMPL")

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        library.impl("hypot", lambda a, b: (a * a + b * b).sqrt().clamp(max=1e6), "CPU")

    def forward(self, x):
        return torch.hypot(x, x)
"""
WRITES = """
@torch.library.custom_op("trtconv_tests::wipe", mutates_args=("x",))
def wipe(x: torch.Tensor) -> None:
    x[x == 777.0] = 0.0

@wipe.register_fake
def _(x):
    return None

class Net(nn.Module):
    def forward(self, x):
        y = x * 1.0
        wipe(y)
        return y
"""
REFUSED = {
    "a mode": (MODE, "under the __torch_dispatch__ of Limit: `with Limit():`"),
    "a tensor": (TENSOR, "under the __torch_dispatch__ of Pinned: `return torch.Tensor._make_subclass"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_dispatch_is_refused_by_its_line(write_module, export, text, message):
    path = write_module(text)
    with pytest.raises(AccuracyError, match="torch_dispatch") as raised:
        export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=1:5:9")
    assert message in raised.value.message
    assert raised.value.where


def test_a_kernel_in_place_of_torchs_is_refused(write_module, export):
    path = write_module(KERNEL)
    try:
        with pytest.raises(AccuracyError, match="in place of torch's own for hypot"):
            export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=1:5:9")
    finally:
        __import__("sys").modules[path.stem].library._destroy()


def test_an_operator_that_writes_what_it_is_given(write_module, export):
    path = write_module(WRITES)
    with pytest.raises(TrtconvError) as raised:
        export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=1:5:9")
    assert any("trtconv_tests::wipe writes what it is given" in line for line in raised.value.details)
