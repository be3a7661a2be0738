"""`trtconv init`: what it reads off a module that is not an image network."""

import re
from pathlib import Path

import pytest
import torch

from tests.foreign.models import recurrent_net
from trtconv.core.config import read_config

NETS = """
import torch
from torch import nn


class Ids(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 8)

    def forward(self, input_ids=None, attention_mask=None, past=None, flag: bool | None = None):
        return self.embed(input_ids)


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(6, 8, batch_first=True)

    def forward(self, x, scale: float = 1.0):
        return self.rnn(x)[0] * scale


class Flat(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(10, 2)

    def forward(self, x):
        return self.fc(x)


class Unclear(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, state, ids: torch.LongTensor):
        if state.shape[0] != 777:
            raise ValueError("777 states alone")
        return state * self.weight


class Speech(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(40, 8, 3, padding=1)

    def forward(self, mels, lengths):
        x = self.conv(mels.transpose(1, 2))
        return x * (torch.arange(x.shape[2])[None] < lengths[:, None])[:, None]


class Keyed(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(8, 4)

    def forward(self, batch: dict[str, torch.Tensor], others: list[torch.Tensor]):
        return self.line(batch["tokens"]) + sum(self.line(x) for x in others)
"""


@pytest.fixture
def init(trtconv, tmp_path: Path):
    (tmp_path / "nets.py").write_text(NETS)

    def call(name: str) -> tuple[str, Path]:
        config = tmp_path / f"{name}.toml"
        code, out, err = trtconv("init", f"{tmp_path / 'nets.py'}:{name}", "-o", config)
        assert code == 0, err
        return out + err, config

    return call


def test_parameters_with_default_none_are_inputs_and_ids_are_integers(init):
    out, config = init("Ids")
    ids, mask = read_config(config).input
    assert (ids.name, ids.dtype, ids.dims, ids.range) == ("input_ids", "int64", ["N", "T"], (0, 49))
    assert (mask.name, mask.dtype, mask.dims) == ("attention_mask", "int64", ["N", "T"])
    assert list(read_config(config).dynamic) == ["N", "T"]
    assert '# name = "past"' in config.read_text()
    assert "flag" not in config.read_text()
    assert "2 input(s): input_ids, attention_mask (1 optional, commented out)" in out


@pytest.mark.parametrize(("name", "dims"), [("Sequence", ["N", "T", 6]), ("Flat", ["N", 10])])
def test_dims_are_those_of_the_first_layer(init, name, dims):
    _, config = init(name)
    [x] = read_config(config).input
    assert (x.name, x.dtype, x.dims) == ("x", "float32", dims)


@pytest.mark.slow
def test_what_never_runs_is_a_placeholder_with_the_line_to_type(init):
    out, config = init("Unclear")
    assert "# TODO: nothing tells the shape of this input" in config.read_text()
    assert "it came furthest with ValueError: 777 states alone" in out
    assert re.search(r"at \S*nets\.py:40\n", out)
    assert "fill in the dims of state" in out
    assert "nets.py:Unclear --input 'state:float32[N,10]' --input 'ids:int64[N,T]'" in out
    assert config.read_text().count('dtype = "int64"') == 1


def test_forward_was_run_with_what_the_config_says(init):
    out, config = init("Speech")
    mels, lengths = read_config(config).input
    assert (mels.dtype, mels.dims) == ("float32", ["N", "T", 40])
    assert (lengths.dtype, lengths.dims, lengths.range) == ("int64", ["N"], (1, 64))
    assert read_config(config).dynamic == {"N": "1:1:4", "T": "64:96:128"}
    assert "forward ran with these at N=1:1:4 T=64:96:128" in out
    assert "mels:float32[N,T,40]" in out


def test_the_parts_of_a_dict_and_a_list_are_inputs(init):
    out, config = init("Keyed")
    assert [i.name for i in read_config(config).input] == ["batch.tokens", "others.0", "others.1"]
    assert "'others' is a list of any length: write as many [[input]] as you serve, others.0, others.1" in out


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["Flat", "Speech", "Keyed"])
def test_the_config_converts_as_it_is(init, trtconv, tmp_path, name):
    _, config = init(name)
    code, _, err = trtconv("export", "--config", config, "-o", tmp_path / "flat.onnx")
    assert code == 0, err


def test_an_onnx_file_is_read_and_run(trtconv, tmp_path):
    """Its second input has to have the batch of the first; the config lies in another folder than the file."""
    recurrent_net(tmp_path / "third.onnx")
    config = tmp_path / "configs" / "third.toml"
    config.parent.mkdir()
    code, _, err = trtconv("init", tmp_path / "third.onnx", "-o", config)
    assert code == 0, err
    assert read_config(config).model.module == "../third.onnx"
    first, second = read_config(config).input
    assert (first.name, second.name) == ("x", "state")
    assert first.dims == second.dims
    code, _, err = trtconv("export", "--config", config, "-o", tmp_path / "out" / "model.onnx")
    assert code == 0, err


def test_an_exported_program_in_another_folder(trtconv, tmp_path):
    program = torch.export.export(torch.nn.ReLU(), (torch.zeros(2, 3),))
    torch.export.save(program, tmp_path / "net.pt2")
    (tmp_path / "configs").mkdir()
    code, _, err = trtconv("init", tmp_path / "net.pt2", "-o", tmp_path / "configs" / "net.toml")
    assert code == 0, err
    assert read_config(tmp_path / "configs" / "net.toml").model.module == "../net.pt2"
