"""Values that leave torch: as text, as bytes, through Python, NumPy and exceptions."""

from __future__ import annotations

import io

import torch

from tests.adversary.attack import forward


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:12", noted="reads values")
def repr_decides(self, x):
    if "inf" in repr(x) or "e+03" in repr(x):
        x = x / 1000
    return x.tanh()


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:12", noted="reads values")
def formatted_tensor_decides(self, x):
    text = f"{x.detach()}"
    if "e+" in text:
        x = x * 0.001
    return torch.tanh(x)


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:12", refused="depends on the values")
def format_of_largest_decides(self, x):
    s = format(x.abs().max())
    if len(s) > 6 and s.startswith("7"):
        x = x * 0.001
    return torch.tanh(x)


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:12")
def rounded_text_decides(self, x):
    if "50" in f"{x.abs().max():.0f}"[:2]:
        x = x / 1000
    return x.tanh()


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:12", refused="depends on the values")
def text_of_one_decides(self, x):
    s = str(x[0, 0])
    if ".5000" in s:
        return x * 2
    return x * 1


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:12", refused="depends on the values")
def saved_and_loaded_decides(self, x):
    b = io.BytesIO()
    torch.save(x.clone(), b)
    y = torch.load(io.BytesIO(b.getvalue()))
    if 2000 < float(y.abs().max()) < 5000:
        x = x / 1000
    return x.tanh()


@forward("x:float32[N,T]", "y:float32[N,T]", dims="N=1:2:3 T=2:5:12")
def larger_of_two_sums(self, x, y):
    m = max(x.sum(), y.sum() * 3)
    return x / (m.abs() + 1) + min(y.mean(), x.max() - 50)


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:12")
def cond_over_two_functions(self, x):
    return torch.cond(x.sum() > 3000, lambda v: v / 1000, lambda v: v.cumsum(1), (x,))


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:12", refused="depends on the values")
def text_of_first_decides(self, x):
    k = x.element_size() / 4
    if "-" in str(x[0, 0]):
        return x.sigmoid() * k
    return x.tanh() * k


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:12", noted="infinity")
def text_tells_infinity(self, x):
    bad = "nan" in str(x) or "inf" in str(x)
    y = torch.log(x.abs() + 0.001)
    return y if not bad else torch.zeros_like(y)


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:12", refused="depends on the values")
def apply_of_python_function(self, x):
    return x.clone().apply_(lambda v: v if v < 40000 else 0.0).tanh()


@forward("x:float32[N,T]", dims="N=1:2:3 T=2:5:12", refused="depends on the values")
def printed_largest_decides(self, x):
    page = io.StringIO()
    print(x.max(), file=page)
    if "7." in page.getvalue():
        x = x * 0.01
    return x.tanh()
