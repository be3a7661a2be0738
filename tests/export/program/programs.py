"""A real exported program with dynamic sizes, and copies of it in which somebody changed something."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

PROGRAM = "models/model.json"


class Net(nn.Module):
    """Sizes with FloorDiv, Mod and Max, and a nested graph."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x, y):
        n = x.shape[0]
        rows = self.linear(x).repeat((n + 6) // 2, 1)
        rows = nn.functional.pad(rows, (0, 0, 0, n % 3))
        branch = torch.cond(rows.sum() > 0, lambda a: a + 1, lambda a: a - 1, (rows,))
        return branch, torch.zeros(torch.sym_max(n, y.shape[0])) + 1


def save_program(path: Path) -> Path:
    """Export `Net` as torch 2.13 does."""
    dim = torch.export.Dim
    shapes = {"x": {0: dim("n", min=2, max=64)}, "y": {0: dim("m", min=4, max=64)}}
    program = torch.export.export(Net(), (torch.ones(6, 4), torch.ones(9)), dynamic_shapes=shapes)
    torch.export.save(program, path)
    return path


def members(path: Path) -> dict[str, bytes]:
    """The members without their root folder."""
    with zipfile.ZipFile(path) as archive:
        return {i.filename.partition("/")[2]: archive.read(i) for i in archive.infolist()}


def write_archive(path: Path, content: dict[str, bytes], **options: Any) -> Path:
    """A `.pt2` with these members."""
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, data in content.items():
            archive.writestr(f"{path.stem}/{name}", data)
    return path


def with_json(source: Path, path: Path, change: Callable[[Any], None], member: str = PROGRAM) -> Path:
    """A copy of `source` whose JSON `member` went through `change`."""
    content = members(source)
    data = json.loads(content[member])
    change(data)
    content[member] = json.dumps(data).encode()
    return write_archive(path, content)
