"""Modules whose forward takes dicts, lists, tuples and dataclasses: the inputs by name that they run with."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import pytest
import torch
from torch import Tensor, nn

from trtconv.export.module.runner import ModuleRunner
from trtconv.export.signature.containers import search_parts
from trtconv.export.signature.likely_inputs import likely_inputs


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.line = nn.Conv2d(3, 4, 1), nn.Linear(8, 4)
        self.levels = nn.ModuleList(nn.Conv2d(c, 4, 1) for c in (8, 16, 32))

    def pooled(self, images):
        return self.conv(images).mean((2, 3))

    def keyed(self, image, scale):
        return self.conv(image) * scale[:, None, None, None]


class HintedDict(Layers):
    def forward(self, batch: dict[str, Tensor]):
        return self.line(batch["tokens"]) + self.line(batch["extra"])


class PlainDict(Layers):
    def forward(self, batch):
        return self.pooled(batch["images"]) * batch["weight"]


class Fetched(Layers):
    def forward(self, batch):
        y, mask = self.pooled(batch.get("image")), batch.get("mask")
        return y if mask is None else y * mask


class Starred(Layers):
    def forward(self, batch):
        return self.keyed(**batch)


class Mixed(Layers):
    def forward(self, images: Tensor, extras: dict[str, Tensor], mask: Tensor | None = None):
        y = self.pooled(images) + self.line(extras["v"])
        return y if mask is None else y * mask


class Levels(Layers):
    def forward(self, features: list[Tensor]):
        return [level(f) for level, f in zip(self.levels, features, strict=False)]


class PlainLevels(Layers):
    def forward(self, features):
        return [level(f) for level, f in zip(self.levels, features, strict=False)]


class AnyLength(Layers):
    def forward(self, xs: list[Tensor]):
        return torch.cat([self.line(x) for x in xs], 1)


class Unpacked(Layers):
    def forward(self, inputs):
        images, vector = inputs
        return self.pooled(images) + self.line(vector)


class TwoOf(Layers):
    def forward(self, pair: tuple[Tensor, Tensor]):
        return self.line(pair[0]) - self.line(pair[1])


class Nested(Layers):
    def forward(self, groups: dict[str, list[Tensor]]):
        return self.line(groups["a"][0]) + self.line(groups["a"][1])


class OpenNames(Layers):
    def forward(self, **tensors: Tensor):
        return self.line(tensors["a"]) + self.line(tensors["b"])


class OpenPlaces(Layers):
    def forward(self, *tensors: Tensor):
        return self.line(tensors[0]) + self.line(tensors[1])


@dataclass
class Batch:
    image: Tensor
    mask: Tensor
    unused: Any = None


class Pair(NamedTuple):
    left: Tensor
    right: Tensor


class Keys(TypedDict):
    image: Tensor
    scale: Tensor


class OfDataclass(Layers):
    def forward(self, batch: Batch):
        return self.conv(batch.image) * batch.mask


class OfNamedTuple(Layers):
    def forward(self, pair: Pair):
        return self.conv(pair.left) - self.conv(pair.right)


class OfTypedDict(Layers):
    def forward(self, batch: Keys):
        return self.keyed(batch["image"], batch["scale"])


IMAGE, ROW = ("N", 3, "H", "W"), ("N", 8)


@pytest.mark.sampled(7)
@pytest.mark.parametrize(
    ("module", "dims"),
    [
        (HintedDict, {"batch.tokens": ROW, "batch.extra": ROW}),
        (PlainDict, {"batch.images": IMAGE, "batch.weight": ("N", 4)}),
        (Fetched, {"batch.image": IMAGE}),
        (Starred, {"batch.image": IMAGE, "batch.scale": ("N",)}),
        (Mixed, {"images": IMAGE, "extras.v": ROW}),
        (Levels, {f"features.{i}": ("N", c, "H", "W") for i, c in enumerate((8, 16, 32))}),
        (PlainLevels, {f"features.{i}": ("N", c, "H", "W") for i, c in enumerate((8, 16, 32))}),
        (AnyLength, {"xs.0": ROW, "xs.1": ROW}),
        (Unpacked, {"inputs.0": IMAGE, "inputs.1": ROW}),
        (TwoOf, {"pair.0": ROW, "pair.1": ROW}),
        (Nested, {"groups.a.0": ROW, "groups.a.1": ROW}),
        (OpenNames, {"a": ROW, "b": ROW}),
        (OpenPlaces, {"tensors0": ROW, "tensors1": ROW}),
        (OfDataclass, {"batch.image": IMAGE, "batch.mask": ("N", 4, "H", "W")}),
        (OfNamedTuple, {"pair.left": IMAGE, "pair.right": IMAGE}),
        (OfTypedDict, {"batch.image": IMAGE, "batch.scale": ("N",)}),
    ],
)
def test_each_tensor_in_a_container_is_an_input(module, dims):
    layers = module().eval()
    required = [i for i in likely_inputs(layers) if not i.optional]
    parts = search_parts(layers, required, Path())
    specs = parts.search.inputs
    assert specs is not None, parts.search.last
    assert {s.name: s.dims for s in specs} == dims
    assert parts.any_length == (("xs",) if module is AnyLength else ())
    sizes = {"N": 2, "H": 6, "W": 7}
    arrays = {s.name: torch.rand(s.shape(sizes)).numpy() for s in specs}
    assert ModuleRunner(layers, specs)(arrays)


class Steps(Layers):
    def forward(self, x):
        state = x.new_zeros(x.shape[1], 4)
        for step in x:
            state = torch.tanh(self.line(step) + state)
        return state


def test_a_tensor_that_is_gone_through_stays_one():
    layers = Steps().eval()
    specs = search_parts(layers, likely_inputs(layers), Path()).search.inputs
    assert [s.name for s in specs] == ["x"]


class AllOf(Layers):
    def forward(self, batch: dict[str, Tensor]):
        return sum((self.line(x) for x in batch.values()), torch.zeros(1))


def test_a_dict_whose_keys_nothing_tells_is_no_tensor():
    layers = AllOf().eval()
    parts = search_parts(layers, likely_inputs(layers), Path())
    assert parts.search.inputs is None
    assert parts.search.last.error == "forward takes a dict 'batch' and asks for no key of it by name"
    assert [(p.name, p.dims) for p in parts.likely] == [("batch.KEY", None)]
