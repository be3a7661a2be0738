"""Tables and states in files and shared memory, once more in the forms that users write."""
# ruff: noqa: E501 - attacks are written as users write them

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

from tests.adversary.attack import attack
from tests.adversary.inputs import FINITE


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7796NumpyTablesOnDisk(nn.Module):
    """Positions by length as .npy files beside the weights, made when missing."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="r64_"))

    def forward(self, x):
        path = self.folder / f"pos_{x.shape[1]}.npy"
        if not path.exists():
            np.save(path, np.linspace(0, 1, x.shape[1], dtype=np.float32))
        return x + torch.from_numpy(np.load(path))


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="which it has written in a call before")
class A7797JsonOfTheFirstRun(nn.Module):
    """A json file keeps the first picture's size; later ones are scaled to it (a calibration file)."""

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp(prefix="r64_")) / "calibration.json"

    def forward(self, x):
        try:
            base = json.loads(self.path.read_text())["base"]
        except FileNotFoundError:
            base = x.shape[1]
            self.path.write_text(json.dumps({"base": int(base)}))
        return x * (x.shape[1] / base)


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="keeps 'first' from the first call of a process")
class A7798SharedMemoryBuffer(nn.Module):
    """A buffer in shared memory (module.share_memory()) takes the first length."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("first", torch.zeros(1))
        self.share_memory()

    def forward(self, x):
        self.first.copy_(torch.where(self.first == 0, torch.full((1,), float(x.shape[1])), self.first))
        return x * self.first


@attack("x:float32[N,T]", dims="N=1:2:3 T=2:5:9", kinds=FINITE, refused="from its first call")
class A7799FileDescriptorState(nn.Module):
    """The position of an open file decides: the first call reads a line, all later ones see the end."""

    def __init__(self) -> None:
        super().__init__()
        path = os.path.join(tempfile.mkdtemp(prefix="r64_"), "once")
        Path(path).write_text("3\n")
        self.__dict__["file"] = open(path)  # noqa: SIM115 - it stays open
        self.scale = 1.0

    def __deepcopy__(self, memo):
        return type(self)()

    def forward(self, x):
        line = self.file.readline()
        if line:
            self.scale = int(line) * x.shape[1]
        return x * self.scale


@attack("x:float32[N,T,4]", dims="N=1:2:3 T=2:5:9", kinds=FINITE)
class A7723ModuleDictBySize(nn.Module):
    """Heads by length from a ModuleDict, made on demand with deterministic weights; nearest key below."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleDict({str(k): nn.Linear(4, 3) for k in (2, 4, 8)})

    def forward(self, x):
        key = max(int(k) for k in self.heads if int(k) <= x.shape[1])
        return self.heads[str(key)](x)
