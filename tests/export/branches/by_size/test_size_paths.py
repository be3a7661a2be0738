"""Decisions by size, followed over all joint sizes of a space without running the module at them."""

import functools
import types
from pathlib import Path

import pytest
import torch
from torch import nn

from trtconv.core.effort import Effort
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.export.branches.by_size.size_paths import explore_sizes
from trtconv.export.branches.by_size.size_run import _watched
from trtconv.export.module.runner import ModuleRunner

SPECS = (parse_tensor("x:float32[N,2,H,W]"),)
SPACE = parse_space(["N=1:1:3", "H=16:24:2000", "W=16:32:2000"])
TABLE = {(20, 20): 0.5, (24, 40): 1.5}


class OnePair(nn.Module):
    def forward(self, x):
        return x + 1 if x.shape[2] * x.shape[3] == 769 * 1013 else x


class Region(nn.Module):
    def forward(self, x):
        if x.shape[2] > 1900 and x.shape[3] < 20:
            return x * 2
        return x


class ThreeDims(nn.Module):
    def forward(self, x):
        n, _, h, w = x.shape
        if n == 3 and h % 50 == 7 and w > 1990:
            return x * 2
        return x


class InFloats(nn.Module):
    def forward(self, x):
        return x + 1 if int(x.shape[2] * 0.29) == 100 else x


class Lookup(nn.Module):
    def forward(self, x):
        return x * TABLE.get(tuple(x.shape[-2:]), 1.0)


@functools.cache
def factor(height, width):
    return 2.0 if (height, width) in {(333, 47), (77, 64)} else 1.0


class CachedLookup(nn.Module):
    def forward(self, x):
        return x * factor(x.shape[2], x.shape[3])


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(2, 3, 3, 2, 1)

    def forward(self, x):
        return self.layer(x).relu()


class ByValue(nn.Module):
    def forward(self, x):
        return x + 1 if x.mean() > 0 else x


class TextKey(nn.Module):
    factors = types.MappingProxyType({"19x21": 0.5})

    def forward(self, x):
        return x * self.factors.get(f"{x.shape[2]}x{x.shape[3]}", 1.0)


class TextOfShape(nn.Module):
    factors = types.MappingProxyType({"torch.Size([19, 21])": 0.5})

    def forward(self, x):
        return x * self.factors.get(str(x.shape[-2:]), 1.0)


class NameOfSize(nn.Module):
    gain_37 = 0.5

    def forward(self, x):
        return x * getattr(self, "gain_" + str(x.shape[3]), 1.0)


class LastDigit(nn.Module):
    def forward(self, x):
        return x * 0.5 if repr(x.shape[3]).endswith("7") else x


def explore(module, space=SPACE):
    runner = ModuleRunner(module, SPECS, Path())
    traced = {"N": 2, "H": 17, "W": 19}
    starts = [traced if space.contains(traced) else space.pick("opt"), space.pick("min"), space.pick("max")]
    return explore_sizes(runner, SPECS, space, starts, Path(__file__).parent, seconds=60.0)


@pytest.mark.parametrize(
    ("module", "decides"),
    [
        (OnePair, lambda s: s["H"] * s["W"] == 769 * 1013),
        (Region, lambda s: s["H"] > 1900 and s["W"] < 20),
        (ThreeDims, lambda s: s["N"] == 3 and s["H"] % 50 == 7 and s["W"] > 1990),
        (InFloats, lambda s: int(s["H"] * 0.29) == 100),
    ],
)
def test_a_rare_path_is_found_and_every_joint_size_sorted(module, decides):
    paths = explore(module())
    assert any(decides(p) for p in paths.points)
    assert not all(decides(p) for p in paths.points)
    assert paths.followed == paths.total == 3 * 1985**2
    assert not paths.obstacle
    assert all(Path(line.partition(":")[0]).name == Path(__file__).name for line in paths.lines)
    assert paths.lines


def test_one_point_of_each_path_comes_first():
    paths = explore(OnePair())
    first = {p["H"] * p["W"] == 769 * 1013 for p in paths.points[: paths.paths]}
    assert first == {True, False}


@pytest.mark.parametrize(("module", "sizes"), [(Lookup, (24, 40)), (CachedLookup, (333, 47))])
def test_a_table_gives_its_line_and_its_keys(module, sizes):
    paths = explore(module())
    assert len(paths.tables) == 1
    assert any((p["H"], p["W"]) == sizes for p in paths.points)
    assert not paths.coverage(10).complete


@pytest.mark.parametrize(
    ("module", "decides"),
    [
        (TextKey, lambda s: (s["H"], s["W"]) == (19, 21)),
        (TextOfShape, lambda s: (s["H"], s["W"]) == (19, 21)),
        (NameOfSize, lambda s: s["W"] == 37),
        (LastDigit, lambda s: s["W"] == 37),
    ],
)
def test_a_size_that_becomes_text_decides_by_its_number(module, decides):
    # A run for every pair of sizes: a text holds both.
    paths = explore(module(), parse_space(["N=1:1:3", "H=17:19:20", "W=16:32:40"]))
    assert any(decides(p) for p in paths.points)
    assert [Path(line.partition(":")[0]).name for line in paths.lines] == [Path(__file__).name]


def test_what_ended_the_search_is_told():
    """A window of 185 heights is 185 paths: it is not for want of time that they were not all followed."""

    class Window(nn.Module):
        def forward(self, x):
            return nn.functional.avg_pool2d(x, [x.shape[2], 1])

    many = explore(Window(), parse_space(["N=2:2:2", "H=16:24:200", "W=16:16:16"]))
    assert "64 paths" in many.obstacle
    assert not many.coverage(100).complete
    few = explore(Window(), parse_space(["N=2:2:2", "H=16:24:50", "W=16:16:16"]))
    assert not few.obstacle
    assert few.coverage(few.paths).complete


def test_a_plain_network_decides_nothing_of_its_own():
    paths = explore(Convolution())
    assert not paths.lines
    assert paths.coverage(paths.paths).complete


def test_kernels_of_convolutions_make_no_paths():
    """For one image torch goes by the number of elements; 64 channels cross its bound within these sizes."""
    paths = explore(nn.Sequential(nn.Conv2d(2, 64, 3), nn.BatchNorm2d(64), nn.Conv2d(64, 8, 3)).eval())
    assert paths.paths <= 2
    assert paths.followed == paths.total


@pytest.mark.parametrize("module", [nn.BatchNorm2d(2), nn.BatchNorm2d(2, affine=False), nn.InstanceNorm2d(2)])
@pytest.mark.parametrize("shape", [(2, 2, 5, 1), (1, 2, 4, 4)])
def test_a_norm_without_its_values_has_the_shape_of_its_own(module, shape):
    x = torch.rand(shape)
    with _watched(Effort(60.0, 1)):
        assert module.eval()(x).shape == shape
    given_new_statistics = nn.BatchNorm2d(2, track_running_stats=False).train()
    with _watched(Effort(60.0, 1)):
        assert torch.equal(given_new_statistics(x), torch.nn.functional.batch_norm(x, None, None, training=True))


class Resized(nn.Module):
    """The positions of a vision transformer, resized to its grid."""

    def forward(self, x):
        h, w = x.shape[2:]
        if h * w == 769 * 1013:
            return x
        return x * nn.functional.interpolate(torch.ones(1, 2, 7, 7), (h, w), mode="bicubic", antialias=True)


def test_what_comes_after_an_antialiased_resize_is_followed():
    paths = explore(Resized())
    assert not paths.obstacle
    assert len(paths.lines) == 1
    assert any(p["H"] * p["W"] == 769 * 1013 for p in paths.points)
    with _watched(Effort(60.0, 1)):
        assert nn.functional.interpolate(torch.ones(2, 3, 4, dtype=torch.uint8), 7).shape == (2, 3, 7)
        assert nn.functional.interpolate(torch.ones(2, 3, 4), scale_factor=2).shape == (2, 3, 8)


class Skips(nn.Module):
    """A decoder with skips."""

    def forward(self, x):
        small = nn.functional.avg_pool2d(x, 4)
        up = nn.functional.interpolate(small, scale_factor=2.0)
        return x + nn.functional.interpolate(up, scale_factor=(2.0, 2), mode="bilinear")


class Padded(nn.Module):
    def forward(self, x):
        return nn.functional.local_response_norm(nn.functional.pad(x, (0, 1, 0, -x.shape[2] % 4)), 3)


@pytest.mark.parametrize("module", [Skips, Padded])
def test_what_torch_takes_apart_is_one_path(module):
    paths = explore(module(), parse_space(["N=1:1:3", "H=16:24:2000%4", "W=16:32:2000%4"]))
    assert not paths.obstacle
    assert paths.paths <= 2
    assert paths.followed == paths.total


def test_a_size_at_which_the_module_raises_is_a_path_of_its_own():
    class Small(nn.Module):
        def forward(self, x):
            return nn.functional.interpolate(x, scale_factor=0.03)

    paths = explore(Small())
    assert {p["H"] < 34 or p["W"] < 34 for p in paths.points[: paths.paths]} == {True, False}


@pytest.mark.parametrize("factor", [2, 2.0, 0.5, (1.7, 0.29), [3, 0.4]])
def test_a_factor_gives_the_size_of_torchs_own(factor):
    x = torch.ones(2, 3, 33, 47)
    with _watched(Effort(60.0, 1)):
        shape = nn.functional.interpolate(x, scale_factor=factor).shape
    assert shape == nn.functional.interpolate(x, scale_factor=factor).shape


def test_what_reads_values_cannot_be_followed_and_says_so():
    paths = explore(ByValue())
    assert "reads values" in paths.obstacle
    assert not paths.coverage(10).complete


def test_the_module_is_as_before():
    module = Convolution()
    module.seen = None

    def remember(self, inputs):
        self.seen = inputs[0]

    module.register_forward_pre_hook(remember)
    explore(module)
    assert module.seen is None
    assert torch.equal(module(torch.ones(1, 2, 8, 8)), module(torch.ones(1, 2, 8, 8)))
