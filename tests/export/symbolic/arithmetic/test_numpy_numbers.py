"""NumPy's functions of one number, and roots, keep a size symbolic; arrays and numbers go to NumPy as ever."""

import math

import numpy as np
import pytest

from trtconv.export.symbolic.arithmetic.numpy_numbers import symbolic_numpy
from trtconv.export.symbolic.builtins import replacements

NUMPY = """
import math
import numpy as np


class Scaled(nn.Module):
    def forward(self, x):
        return x / np.sqrt(x.shape[1]) * np.log(x.shape[1])


class Parts(nn.Module):
    def forward(self, x):
        n, t, c = x.shape
        steps = int(np.floor(t / 3)) + int(np.ceil(t / 4)) + int(np.round(t * 0.5)) + int(np.maximum(t, 5))
        return x[:, : np.minimum(t, 7)] * steps, x.reshape(n, int(np.prod([t, c])))


class Cast(nn.Module):
    def forward(self, x):
        # As MiDaS does it.
        rows = (np.round(x.shape[1] * 1.3 / 4) * 4).astype(int)
        half, third = np.floor(x.shape[1] / 2).astype(np.int64), np.ceil(x.shape[1] / 3).astype("float32")
        return x * int(rows), x[:, :half] * third


class Arrays(nn.Module):
    def forward(self, x):
        scale = np.sqrt(np.arange(4, dtype=np.float32)) + np.float32(np.pi) + np.round(2.567, 1)
        assert isinstance(scale, np.ndarray)
        return x[:, : int(math.sqrt(x.shape[1]))] * torch.from_numpy(scale)


class Resized(nn.Module):
    def forward(self, x):
        h, w = x.shape[2:]
        rows, columns = max(28, round(h / 28) * 28), max(28, round(w / 28) * 28)
        if rows * columns > 10000:
            shrink = math.sqrt(h * w / 10000)
            rows, columns = math.floor(h / shrink / 28) * 28, math.floor(w / shrink / 28) * 28
        return F.interpolate(x, size=(rows, columns), mode="bilinear")
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["Scaled", "Parts", "Cast", "Arrays"])
def test_a_size_stays_a_size(name, write_module, export):
    write_module(NUMPY)
    assert export(f"net.py:{name}", ["x:float32[N,T,4]"], "N=1:2:3 T=4:9:30").sizes.complete


@pytest.mark.slow
def test_a_resize_to_an_area(write_module, export):
    """Its branch is on two sizes and stands behind a `round`, at which a plain trace ends."""
    write_module(NUMPY)
    result = export("net.py:Resized", ["x:float32[N,3,H,W]"], "N=1:1:2 H=40:64:120 W=40:64:120")
    assert result.exporter == "dynamo"
    assert result.sizes.complete


def test_numbers_and_arrays_go_to_numpy():
    shim = symbolic_numpy(math, replacements(), lambda value: False)
    for name in ("sqrt", "log", "floor", "ceil", "fix", "round", "rint", "trunc"):
        assert getattr(shim, name)(7.5) == getattr(np, name)(7.5)
        assert (getattr(shim, name)(np.array([2.5, 7.5])) == getattr(np, name)(np.array([2.5, 7.5]))).all()
    assert shim.round(2.567, 1) == np.round(2.567, 1)
    assert shim.maximum(2, 3) == 3
    assert shim.prod([[2, 3], [4, 5]], axis=0).tolist() == [8, 15]
    assert shim.float32 is np.float32
    with pytest.raises(AttributeError):
        _ = shim.no_such_function
