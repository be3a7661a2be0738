"""How tensors come in and go out: dicts, lists, dataclasses, keywords, dtypes, nested outputs, shared weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn

from tests.zoo.case import IMAGE, LINE, PIXELS, SMALL, STEPS, Case, module, of


class FromDict(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(8, 4, 3, padding=1)

    def forward(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        logits = self.conv(batch["image"])
        return {"logits": logits * batch["mask"], "scores": logits.softmax(1)}


class FromList(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lateral = nn.ModuleList([nn.Conv2d(8, 4, 1), nn.Conv2d(8, 4, 1)])

    def forward(self, levels: list[torch.Tensor]) -> torch.Tensor:
        fine, coarse = (conv(level) for conv, level in zip(self.lateral, levels, strict=True))
        return fine + F.interpolate(coarse, size=fine.shape[2:], mode="nearest")


class FromTuple(nn.Module):
    def forward(self, pair: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return pair[0] - pair[1].flip(1)


@dataclass
class Sample:
    image: torch.Tensor
    mask: torch.Tensor


@dataclass
class Found:
    boxes: torch.Tensor
    scores: torch.Tensor


class FromDataclass(nn.Module):
    def forward(self, sample: Sample) -> Found:
        x = sample.image.masked_fill(~sample.mask, 0.0)
        return Found(x.amax((2, 3)), x.mean((2, 3)).softmax(1))


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


class FromNamedTuple(nn.Module):
    def forward(self, pair: Pair) -> Pair:
        return Pair(pair.second * 2.0, pair.first + 1.0)


class KeywordOnly(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(16, 4)

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor, flag: bool = False) -> torch.Tensor:
        return self.fc(x) * (scale if not flag else 1.0)


class OptionalMask(nn.Module):
    """The mask has a default and is not given."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        y = x.mean(1)
        return y if mask is None else y * mask


class ThirdFirst(nn.Module):
    """The inputs are given in another order than forward has."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return a * 2.0 - b / (c.abs() + 1.0)


class Variadic(nn.Module):
    def forward(self, *levels: torch.Tensor) -> torch.Tensor:
        return torch.cat([level.mean((2, 3)) for level in levels], 1)


class NestedOutputs(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, object]:
        half = F.avg_pool2d(x, 2)
        return {"levels": [x * 2, half], "head": {"score": half.mean((1, 2, 3)), "none": None}}


class InputAsOutput(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x, F.relu(x)


class UnusedInput(nn.Module):
    def forward(self, x: torch.Tensor, unused: torch.Tensor) -> torch.Tensor:
        return x.sum(1)


class ShapeOnlyInput(nn.Module):
    """Only the shape of `like` is looked at."""

    def forward(self, x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, size=like.shape[2:], mode="bilinear", align_corners=True)


class ConstantOutput(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("anchors", torch.arange(8.0).view(2, 4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.amax(1), self.anchors


class SharedLayer(nn.Module):
    """One head over all levels, as RetinaNet has it."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        levels = [x, F.max_pool2d(x, 2), F.max_pool2d(x, 4)]
        return torch.cat([self.head(level).flatten(2) for level in levels], 2)


class TiedEmbedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 16)
        self.out = nn.Linear(16, 30, bias=False)
        self.out.weight = self.words.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.out(torch.tanh(self.words(ids)))


class Training(nn.Module):
    """Made in training mode, as users hand it over."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Dropout(0.5))
        self.train()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


class Bert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.kinds, self.places = nn.Embedding(30, 16), nn.Embedding(2, 16), nn.Embedding(64, 16)
        self.norm = nn.LayerNorm(16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor, kinds: torch.Tensor) -> torch.Tensor:
        x = self.words(ids) + self.kinds(kinds) + self.places.weight[: ids.shape[1]]
        x = self.layer(self.norm(x), src_key_padding_mask=mask == 9)
        keep = (mask != 9).unsqueeze(-1).float()
        return (x * keep).sum(1) / keep.sum(1).clamp(min=1e-9)


def half(case: Case) -> Case:
    """Typed by its author, and built as it is typed."""
    return replace(case, precision="auto")


CASES: tuple[Case, ...] = (
    module("dict", FromDict, ("batch.image:float32[N,8,H,W]", "batch.mask:float32[N,1,H,W]=0:1"), PIXELS),
    module(
        "list",
        FromList,
        ("levels.0:float32[N,8,H,W]", "levels.1:float32[N,8,H2,W2]"),
        "N=1:2:5 H=17:32:61 W=19:48:67 H2=9:16:30 W2=8:24:33",
    ),
    module("tuple", FromTuple, ("pair.0:float32[N,T,16]", "pair.1:float32[N,T,16]"), STEPS),
    module("dataclass", FromDataclass, ("sample.image:float32[N,8,H,W]", "sample.mask:bool[N,1,H,W]"), PIXELS),
    module("named_tuple", FromNamedTuple, ("pair.first:float32[N,T,16]", "pair.second:float32[N,T,4]"), STEPS),
    module("keyword_only", KeywordOnly, (LINE, "scale:float32[N,1,4]"), STEPS),
    module("optional_not_given", OptionalMask, (LINE,), STEPS),
    module("optional_given", OptionalMask, (LINE, "mask:float32[N,1]"), STEPS),
    module("other_order", ThirdFirst, ("c:float32[N,T]", "a:float32[N,T]", "b:float32[N,T]"), STEPS),
    module(
        "variadic",
        Variadic,
        ("first:float32[N,8,H,W]", "second:float32[N,8,H2,W2]"),
        "N=1:2:5 H=17:32:61 W=19:48:67 H2=9:16:30 W2=8:24:33",
    ),
    module("nested_outputs", NestedOutputs),
    module("input_as_output", InputAsOutput),
    of("identity", lambda x: x),
    of("view_of_input", lambda x: (x[:, :4], x)),
    module("unused_input", UnusedInput, (LINE, "unused:float32[N,3]"), STEPS),
    module(
        "shape_only_input",
        ShapeOnlyInput,
        (IMAGE, "like:float32[N,1,H2,W2]"),
        "N=1:2:5 H=17:32:61 W=19:48:67 H2=9:16:30 W2=8:24:33",
    ),
    module("constant_output", ConstantOutput),
    module("shared_layer", SharedLayer),
    module("tied_embedding", TiedEmbedding, "ids:int64[N,T]=0:29", STEPS),
    module("training_mode", Training),
    module("bert_like", Bert, ("ids:int64[N,T]=0:29", "mask:int64[N,T]=0:9", "kinds:int64[N,T]=0:1"), STEPS),
    of("int32_ids", lambda x: F.embedding(x, torch.arange(60.0).view(30, 2)), "x:int32[N,T]=0:29", STEPS),
    of("int64_sum", lambda x: x.sum(1) * 3 - x.amax(1), "x:int64[N,T]=0:29", STEPS),
    of("int64_mean_float", lambda x: x.double().mean(1).float(), "x:int64[N,T]=0:29", STEPS),
    of("uint8_to_unit", lambda x: x.to(torch.float32).div(255).permute(0, 3, 1, 2), "x:uint8[N,H,W,3]=0:255", PIXELS),
    of("uint8_out", lambda x: (x.clamp(0, 1) * 255).round().to(torch.uint8), "x:float32[N,8,H,W]=0:1", SMALL),
    of("uint8_arithmetic", lambda x: (x // 2).float(), "x:uint8[N,T]=0:255", STEPS),
    of("int8_input", lambda x: x.float() * 0.05, "x:int8[N,T]=-128:127", STEPS),
    of("bool_out", lambda x: x > 0.5),
    of("bool_and_float_masks", lambda x: (~x).float().cumsum(1), "x:bool[N,T]", STEPS),
    of("bool_any", lambda x: x.any(1) | x.all(1), "x:bool[N,T]", STEPS),
    of("float64_through", lambda x: (x.double() * 1e-3).sum((2, 3)).float()),
    half(module("half_conv", lambda: nn.Conv2d(8, 4, 3).half(), "x:float16[N,8,H,W]", SMALL)),
    half(module("half_layer_norm", lambda: nn.LayerNorm(16).half(), "x:float16[N,T,16]", STEPS)),
    half(
        of("half_to_float_sum", lambda x: (x.float().pow(2).sum(-1) + 1e-6).rsqrt().half(), "x:float16[N,T,16]", STEPS)
    ),
    of("scalar_out", lambda x: x.sum()),
    of("scalar_input_axis", lambda x: x.unsqueeze(0) + x.unsqueeze(1), "x:float32[T]", "T=5:20:50"),
    of("empty_slice_cat", lambda x: torch.cat([x[:, :0], x], 1)),
)
