"""Modules whose inputs have dims that follow from others: a mask over past and new tokens, a window of a signal."""

from __future__ import annotations

import onnx
import pytest

from trtconv.core.errors import TrtconvError
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.proof.reference import read_samples

STEP = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.keys, self.out = nn.Embedding(10, 8), nn.Linear(8, 8), nn.Linear(8, 10)

    def forward(self, ids, past, mask):
        x = self.embed(ids)
        keys = torch.cat([past, self.keys(x)], 1)
        scores = x @ keys.mT
        causal = torch.arange(keys.shape[1])[None] <= torch.arange(x.shape[1])[:, None] + past.shape[1]
        scores = scores.masked_fill(~(causal[None] & (mask[:, None] > 0)), -1e4)
        return self.out(scores.softmax(-1) @ keys), keys
"""
STEP_INPUTS = ["ids:int64[N,S]=0:9", "past:float32[N,P,8]", "mask:int64[N,P+S]=0:1"]
OTHERS = {
    "a multiple and one more": (
        "def forward(self, x, y):\n        return x.repeat_interleave(2, 1) + y[:, 1:], y.mean(1)",
        ["x:float32[N,T,3]", "y:float32[N,2*T+1,3]"],
        "N=1:1:2 T=1:4:9",
    ),
    "a share of a multiple": (
        "def forward(self, x, mask):\n        return F.max_pool2d(x, 8) * mask[:, None]",
        ["x:float32[N,2,H,W]", "mask:float32[N,H//8,W//8]=0:1"],
        "N=1:1:2 H=16:24:40%8 W=16:24:48%8",
    ),
    "a product": (
        "def forward(self, x, places):\n        return (x.flatten(2).mT + places).mT.reshape(x.shape)",
        ["x:float32[N,2,H,W]", "places:float32[1,H*W,2]"],
        "N=1:1:2 H=2:4:6 W=3:4:7",
    ),
    "odd lengths": (
        "def forward(self, x):\n        return x[:, x.shape[1] // 2] + x.mean(1)",
        ["x:float32[N,2*T+1]"],
        "N=1:1:2 T=1:4:9",
    ),
    "new tokens that no axis counts": (
        "def forward(self, x, past, mask):\n        kept = x[:, past.shape[1]:]\n"
        "        return (x @ x.mT).masked_fill(~mask[:, None], -9.0).softmax(-1) @ x, kept * 2",
        ["x:float32[N,P+S,6]", "past:float32[N,P,6]", "mask:bool[N,P+S]"],
        "N=1:1:2 P=1:3:5 S=1:2:4",
    ),
}


def test_a_decoder_step_takes_a_mask_over_past_and_new_tokens(write_module, export):
    path = write_module(STEP)
    result = export(f"{path}:Net", STEP_INPUTS, "N=1:1:2 S=1:1:3 P=0:4:7")
    assert result.exporter == "dynamo"
    (mask,) = (v for v in onnx.load(result.model).graph.input if v.name == "mask")
    assert [d.dim_param for d in mask.type.tensor_type.shape.dim] == ["N", "P+S"]
    for sample in read_samples(result.reference):
        shapes = {name: array.shape for name, array in sample.inputs.items()}
        assert shapes["mask"][1] == shapes["past"][1] + shapes["ids"][1]


@pytest.mark.parametrize("case", OTHERS.values(), ids=list(OTHERS))
def test_dims_that_follow_from_others_convert(case, write_module, export):
    forward, inputs, space = case
    path = write_module(f"class Net(nn.Module):\n    {forward}\n")
    assert export(f"{path}:Net", inputs, space).exporter == "dynamo"


def test_a_recording_has_them_too(write_module, export):
    path = write_module(f"class Net(nn.Module):\n    {OTHERS['a product'][0]}\n")
    result = export(f"{path}:Net", OTHERS["a product"][1], OTHERS["a product"][2], exporter="torchscript")
    assert result.exporter == "torchscript"


@pytest.mark.slow
def test_a_decision_by_one_is_read_by_the_others_names(write_module, export):
    asking = "def forward(self, ids, past, mask):\n        if mask.shape[1] == 9:\n            mask = mask * 0 + 1"
    path = write_module(STEP.replace("def forward(self, ids, past, mask):", asking))
    with pytest.raises(TrtconvError, match=r"if mask\.shape\[1\] == 9") as caught:
        export(f"{path}:Net", STEP_INPUTS, "N=1:1:2 S=1:1:3 P=0:4:7")
    assert any("(S + P) != 9" in line for line in caught.value.details)


def test_a_text_of_it_reads_back():
    space = parse_space(["P=0:4:7", "S=1:1:3"])
    spec = parse_tensor("mask:int64[2,P+S]=0:1")
    assert parse_tensor(str(spec)) == spec
    assert spec.shape(space.pick("max")) == (2, 10)
