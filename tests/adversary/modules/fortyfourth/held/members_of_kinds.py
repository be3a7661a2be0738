# ruff: noqa: E501 - attacks are written as users write them
"""What modules hold that is no plain weight: odd tensors as buffers, locks, cycles, generators, arrays, what cannot be copied or compared."""

from __future__ import annotations

import ctypes
import io
import re
import threading
import types

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.adversary.attack import attack

X4 = "x:float32[N,T,4]"
ROWS = {"dims": "N=1:2:3 T=1:9:20", "kinds": ("normal", "halves", "zeros")}


class A44Holds(nn.Module):
    """A linear layer, and what else is held."""
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.hold()
    def hold(self):
        """What it holds."""
    def forward(self, x):
        return self.lin(x)


@attack(X4, **ROWS)
class A45H01SparseBuffer(A44Holds):
    """A sparse buffer that is made dense."""
    def hold(self):
        self.register_buffer("a", torch.eye(4).to_sparse())
    def forward(self, x):
        return self.lin(x) @ self.a.to_dense()
@attack(X4, **ROWS)
class A45H02SparseRows(A44Holds):
    """A matrix in compressed rows."""
    def hold(self):
        self.register_buffer("a", torch.eye(4).to_sparse_csr())
    def forward(self, x):
        return self.lin(x) @ self.a.to_dense()
@attack(X4, **ROWS, refused="the module cannot be exported")
class A45H03SparseMember(A44Holds):
    """A sparse tensor as a plain member in a list."""
    def hold(self):
        self.a = [torch.eye(4).to_sparse()]
    def forward(self, x):
        return torch.sparse.mm(self.a[0], x.flatten(0, 1).T).T
@attack(X4, **ROWS)
class A45H04BufferOfNaN(A44Holds):
    """A buffer that is NaN until it is known, and then unused."""
    def hold(self):
        self.register_buffer("a", torch.full((4,), torch.nan))
    def forward(self, x):
        return torch.where(self.a.isnan(), self.lin(x), self.a)
@attack(X4, **ROWS)
class A45H05ExpandedBuffer(A44Holds):
    """A buffer that is one number, expanded."""
    def hold(self):
        self.register_buffer("a", torch.tensor([2.0]).expand(4))
        self.register_buffer("b", torch.arange(10.0).as_strided((4, 4), (1, 1)))
    def forward(self, x):
        return self.lin(x) * self.a @ self.b
@attack(X4, **ROWS)
class A45H06InferenceTensor(A44Holds):
    """A buffer and a weight made in inference mode."""
    def hold(self):
        with torch.inference_mode():
            self.register_buffer("a", torch.ones(4) * 3)
            self.lin2 = nn.Linear(4, 4)
    def forward(self, x):
        return self.lin2(self.lin(x) * self.a)
@attack(X4, **ROWS)
class A45H07Lock(A44Holds):
    """A lock is held in forward."""
    def hold(self):
        self.lock = threading.Lock()
    def forward(self, x):
        with self.lock:
            return self.lin(x)
@attack(X4, **ROWS)
class A45H08Cycle(A44Holds):
    """A child knows its parent by a list, a list holds itself, a dictionary its owner."""
    def hold(self):
        self.lin.owner = [self]
        self.loop = []
        self.loop.append(self.loop)
        self.known = {"me": self}
    def forward(self, x):
        return self.lin.owner[0].known["me"].lin(x) * len(self.loop)
@attack(X4, **ROWS)
class A45H09FilesAndPatterns(A44Holds):
    """A stream, a pattern, a C number, a memoryview, a frozen mapping and an array."""
    def hold(self):
        self.stream, self.pattern, self.number = io.BytesIO(b"2"), re.compile("a+"), ctypes.c_int(3)
        self.view, self.mapping, self.array = memoryview(b"12"), types.MappingProxyType({"k": 2.0}), np.float32([1, 2, 3, 4])
    def forward(self, x):
        return self.lin(x) * self.mapping["k"] + torch.from_numpy(self.array) * self.number.value
@attack(X4, **ROWS)
class A45H10Generator(A44Holds):
    """A generator that is never asked, a random one, and an iterator at its end."""
    def hold(self):
        self.gen, self.rng, self.it = (i for i in range(3)), torch.Generator().manual_seed(3), iter([])
        self.np_rng = np.random.default_rng(0)
    def forward(self, x):
        return self.lin(x) * len(list(self.it)) + self.lin(x)
@attack(X4, **ROWS)
class A45H11UnreadyLayer(A44Holds):
    """A lazy layer that no call has made yet."""
    def hold(self):
        self.late = nn.LazyLinear(3)
    def forward(self, x):
        return self.late(self.lin(x))
@attack(X4, **ROWS)
class A45H12UnusedLazyLayer(A44Holds):
    """A lazy layer that forward does not use."""
    def hold(self):
        self.late = nn.LazyLinear(3)
@attack(X4, **ROWS)
class A45H13OddTypesAsBuffers(A44Holds):
    """Buffers of complex numbers, float8, words without a sign, and booleans."""
    def hold(self):
        self.register_buffer("c", torch.tensor([1j, 2.0, 1 + 1j, -1]))
        self.register_buffer("f", torch.tensor([0.5, 1.0, 448.0, -2.0]).to(torch.float8_e4m3fn))
        self.register_buffer("w", torch.tensor([1, 2, 3, 65535], dtype=torch.uint16))
        self.register_buffer("q", torch.quantize_per_tensor(torch.ones(4), 0.5, 3, torch.quint8))
    def forward(self, x):
        return self.lin(x) * self.c.abs() + self.f.float() * self.w.int() + self.q.dequantize()
@attack(X4, **ROWS, refused="'tests.adversary.modules.fortyfourth.mem")
class A45H14MetaBuffer(A44Holds):
    """A buffer on the meta device that is asked for its shape alone."""
    def hold(self):
        self.register_buffer("m", torch.empty(7, device="meta"))
    def forward(self, x):
        return self.lin(x) * self.m.shape[0]
@attack(X4, **ROWS)
class A45H15PropertyThatRaises(A44Holds):
    """A property that raises, a __getattr__ of one's own, an __eq__ that raises, a __len__ of none."""
    class Odd:
        def __eq__(self, other):
            raise RuntimeError("not comparable")
        __hash__ = None
        def __len__(self):
            return 0
        def __bool__(self):
            raise RuntimeError("no truth")
    def hold(self):
        self.odd = self.Odd()
    @property
    def raises(self):
        raise RuntimeError("do not ask")
@attack(X4, **ROWS)
class A45H16TensorSubclass(A44Holds):
    """A weight of a subclass of Parameter, a buffer of a subclass of Tensor."""
    class Mine(torch.Tensor):
        pass
    def hold(self):
        self.register_buffer("a", torch.ones(4).as_subclass(self.Mine) * 2)
        self.p = nn.Parameter(torch.randn(4).as_subclass(self.Mine))
    def forward(self, x):
        return self.lin(x) * self.a + self.p
@attack(X4, **ROWS)
class A45H17NamesWithDots(A44Holds):
    """Children named by numbers and by words of the language, one under two names, a None child."""
    def hold(self):
        self.blocks = nn.ModuleDict({"class": nn.Linear(4, 4), "0": nn.ReLU(), "forward_": self.lin, "ünï": nn.Tanh(), "a b": nn.Sigmoid()})
        self.none = None
        self.add_module("nothing", None)
    def forward(self, x):
        for m in self.blocks.values():
            x = m(x)
        return x
@attack(X4, **ROWS)
class A45H18SlicedWeights(A44Holds):
    """Weights that are views of one: halves of a flat parameter, a transposed one, overlapping ones."""
    def hold(self):
        flat = torch.randn(32)
        self.a, self.b, self.c = nn.Parameter(flat[:16].view(4, 4)), nn.Parameter(flat[8:24].view(4, 4)), nn.Parameter(flat[16:].view(4, 4).T)
    def forward(self, x):
        return F.linear(F.linear(self.lin(x), self.a), self.b) @ self.c
@attack(X4, **ROWS)
class A45H19CannotBeCopied(A44Holds):
    """__deepcopy__ and __reduce__ raise."""
    def __deepcopy__(self, memo):
        raise RuntimeError("not copied")
    def __reduce__(self):
        raise RuntimeError("not pickled")
@attack(X4, **ROWS)
class A45H20ExtraStateThatRaises(A44Holds):
    """A train() of its own, a forward with a default tensor, an extra state that raises."""
    def train(self, mode=True):
        return super().train(mode)
    def get_extra_state(self):
        raise RuntimeError("none")
    def forward(self, x, bias=torch.ones(4)):  # noqa: B008
        return self.lin(x) + bias
