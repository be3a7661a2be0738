"""An exported program says what its inputs are: nothing has to be named."""

import json
from pathlib import Path

import pytest

from trtconv.core.config import read_config


@pytest.fixture
def program(tmp_path: Path) -> Path:
    import torch
    from torch import nn

    class Net(nn.Module):
        def forward(self, images, ids):
            return images.mean((2, 3)) + ids.float().mean(1, keepdim=True)

    batch, height = torch.export.Dim("batch", min=1, max=8), torch.export.Dim("height", min=8)
    shapes = {"images": {0: batch, 2: height}, "ids": {0: batch}}
    example = (torch.ones(2, 3, 16, 4), torch.ones(2, 5, dtype=torch.long))
    path = tmp_path / "net.pt2"
    torch.export.save(torch.export.export(Net(), example, dynamic_shapes=shapes), path)
    return path


def test_inputs_and_ranges_are_read(trtconv, program, tmp_path):
    code, _, err = trtconv("export", program, "-o", tmp_path / "net.onnx")
    assert code == 2, "height has no upper bound"
    assert "--dynamic H=MIN:OPT:MAX" in err
    code, _, err = trtconv("export", program, "-o", tmp_path / "net.onnx", "--dynamic", "H=8:16:32")
    assert code == 0, err
    record = json.loads((tmp_path / "net.onnx.json").read_text())
    assert record["inputs"] == ["images:float32[N,3,H,4]", "ids:int64[N,5]"]
    assert record["space"] == "N=1:2:8 H=8:16:32"


def test_init_reads_them_too(trtconv, program, tmp_path):
    code, _out, err = trtconv("init", program, "-o", tmp_path / "t.toml")
    assert code == 0, err
    config = read_config(tmp_path / "t.toml")
    assert [(i.name, i.dtype, i.dims) for i in config.input] == [
        ("images", "float32", ["N", 3, "H", 4]),
        ("ids", "int64", ["N", 5]),
    ]
    assert config.dynamic["N"] == "1:2:8"
