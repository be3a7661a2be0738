"""State of a first call outside of the process's objects, and more switches: maps, pipes, sockets, threads, databases, working folders, masks of signals."""
# ruff: noqa: E501, SIM115 - attacks are written as users write them

from __future__ import annotations

import builtins
import logging
import mmap
import os
import sqlite3
import sys
import tempfile
import threading

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="from the first call of a process")
class A7785FirstSizeInASharedMap(nn.Module):
    """An anonymous shared memory map holds the first length (as dataloaders' workers share a counter)."""

    def __init__(self) -> None:
        super().__init__()
        self.__dict__["map"] = mmap.mmap(-1, 8)

    def __deepcopy__(self, memo):
        return type(self)()

    def forward(self, x):
        if self.map[0] == 0:
            self.map[0] = x.shape[1]
        return x * self.map[0]


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="first call of a process")
class A7786FirstSizeInADatabase(nn.Module):
    """sqlite3 in memory keeps the first batch."""

    def __init__(self) -> None:
        super().__init__()
        self.__dict__["db"] = sqlite3.connect(":memory:", check_same_thread=False)
        self.db.execute("create table s (n integer)")

    def __deepcopy__(self, memo):
        return type(self)()

    def forward(self, x):
        row = self.db.execute("select n from s").fetchone()
        if row is None:
            self.db.execute("insert into s values (?)", (x.shape[1],))
            row = (x.shape[1],)
        return x + row[0]


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="first call of a process")
class A7787FirstSizeOfAThread(nn.Module):
    """threading.local and a logger's level remember the first length."""

    box = threading.local()

    def forward(self, x):
        if not hasattr(self.box, "t"):
            self.box.t = x.shape[1]
        return x + self.box.t


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="first call of a process")
class A7788FirstSizeInALogger(nn.Module):
    def forward(self, x):
        log = logging.getLogger("r64")
        if log.level == 0:
            log.setLevel(x.shape[1])
        return x + log.level


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="first call of a process")
class A7789FirstSizeInBuiltins(nn.Module):
    """builtins, the recursion limit and umask: places that no one looks at."""

    def forward(self, x):
        if not hasattr(builtins, "_r64_first"):
            builtins._r64_first = x.shape[1]
        return x + builtins._r64_first


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="first call of a process")
class A7790FirstSizeInTheInterpreter(nn.Module):
    def forward(self, x):
        if sys.getswitchinterval() == 0.005:
            sys.setswitchinterval(x.shape[1] / 1000)
        return x + round(sys.getswitchinterval() * 1000)


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="first call of a process")
class A7791FirstSizeInNumpy(nn.Module):
    """NumPy's print precision keeps the first length; torch's print options too."""

    def forward(self, x):
        if np.get_printoptions()["precision"] == 8:
            np.set_printoptions(precision=x.shape[1] + 20)
        return x + np.get_printoptions()["precision"]


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7792MemmapTable(nn.Module):
    """A table of positions in a np.memmap that __init__ wrote; forward reads as many rows as there are steps."""

    def __init__(self) -> None:
        super().__init__()
        self.path = os.path.join(tempfile.mkdtemp(prefix="r64_"), "table.npy")
        np.save(self.path, np.linspace(0, 1, 64, dtype=np.float32))

    def forward(self, x):
        table = np.load(self.path, mmap_mode="r")
        return x + torch.from_numpy(np.array(table[: x.shape[1]]))


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="which it has written in a call before")
class A7793LongestInAFile(nn.Module):
    """The longest length so far in a file; the output is scaled by it."""

    def __init__(self) -> None:
        super().__init__()
        self.path = os.path.join(tempfile.mkdtemp(prefix="r64_"), "longest")

    def forward(self, x):
        old = int(open(self.path).read()) if os.path.exists(self.path) else 0
        new = max(old, x.shape[1])
        with open(self.path, "w") as f:
            f.write(str(new))
        return x * new


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="first call of a process")
class A7794DeterministicSwitch(nn.Module):
    """Thread counts, matmul precision and deterministic mode are switched by the first call and asked for later."""

    def forward(self, x):
        if torch.get_float32_matmul_precision() == "highest":
            torch.set_float32_matmul_precision("high" if x.shape[1] > 5 else "medium")
        return x * {"high": 2.0, "medium": 3.0}[torch.get_float32_matmul_precision()]


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7795LazyModulesBuiltAtFirstCall(nn.Module):
    """LazyLinear and a layer that the first call makes by x.shape[-1], which is fixed; a lazily made norm by T is shared by a mean."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.LazyLinear(6)
        self.b = None
        with torch.no_grad():
            self.a(torch.zeros(1, 1, 4))

    def forward(self, x):
        y = self.a(x)
        if self.b is None:
            self.b = nn.Linear(y.shape[-1], 3, bias=False)
            nn.init.constant_(self.b.weight, 0.25)
        return self.b(y)
