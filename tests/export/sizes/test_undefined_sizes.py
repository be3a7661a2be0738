"""Modules that raise at some sizes: narrowed by `align`, padded by `pad_to_multiple`, explained without either."""

import numpy as np
import onnx
import pytest

pytest.importorskip("torch")

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import InvalidRequestError, TrtconvError
from trtconv.core.progress import SilentProgress
from trtconv.core.shape_space.padding import recorded_padding
from trtconv.export.module.runner import ModuleRunner
from trtconv.proof.reference import read_samples
from trtconv.rewrite.alignment.undefined_sizes import warn_of_undefined_sizes

FPN = """
class Fpn(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.ModuleList(nn.Conv2d(3 if i == 0 else 4, 4, 3, 2, 1) for i in range(3))

    def forward(self, x):
        a = self.c[0](x).relu()
        b = self.c[1](a).relu()
        c = self.c[2](b)
        b = b + F.interpolate(c, scale_factor=2.0)
        a = a + F.interpolate(b, scale_factor=2.0)
        return a, b, F.interpolate(a, scale_factor=2.0)


def make():
    torch.manual_seed(0)
    return Fpn().eval()
"""
HRNET = """
class Exchange(nn.Module):
    def __init__(self):
        super().__init__()
        self.fine, self.coarse = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, 4, 1)
        self.mid = nn.Conv2d(4, 4, 3, 2, 1)

    def forward(self, x, mask):
        f = self.fine(x)
        m, c = self.mid(f), self.coarse(f)
        f = f + F.interpolate(m, scale_factor=2.0, mode="bilinear") + F.interpolate(c, scale_factor=4.0)
        return f * mask[:, None], f.mean((2, 3))


def make():
    torch.manual_seed(0)
    return Exchange().eval()
"""
DECONV = """
class Pose(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(*(nn.Conv2d(3, 3, 3, 2, 1) for _ in range(5)))
        self.up = nn.Sequential(*(nn.ConvTranspose2d(3, 3, 4, 2, 1) for _ in range(3)))

    def forward(self, x):
        return self.up(self.down(x))


def make():
    torch.manual_seed(0)
    return Pose().eval()
"""
ANCHORS = """
class Head(nn.Module):
    def forward(self, x):
        y = F.max_pool2d(x, 2)
        return (x + F.interpolate(y, scale_factor=2.0)).flatten(2)


def make():
    return Head().eval()
"""
X = ["x:float32[N,3,H,W]"]
SPACE = "N=1:1:3 H=17:33:45 W=19:29:51"


@pytest.mark.parametrize(
    ("mode", "chosen"),
    [
        ("auto", "reflect"),
        pytest.param("edge", "edge", marks=pytest.mark.slow),
        pytest.param("zero", "zero", marks=pytest.mark.slow),
    ],
)
def test_a_padded_pyramid_equals_the_module_on_padded_inputs_at_every_size(write_module, export, mode, chosen):
    result = export(f"{write_module(FPN)}:make", X, SPACE, pad_to_multiple=mode)
    assert str(result.space) == SPACE
    onnx.checker.check_model(str(result.model), full_check=True)
    assert warn_of_undefined_sizes(onnx.load(result.model), SilentProgress()) == []
    runner = OnnxRuntimeRunner(result.model)
    padding = recorded_padding(result.model)
    assert [(i.mode, i.axes) for i in padding.inputs] == [(chosen, ((2, 8), (3, 8)))]
    module = _module(write_module)
    rng = np.random.default_rng(0)
    for n, h, w in ((1, 17, 19), (2, 23, 51), (3, 40, 48), (1, 45, 20)):
        x = rng.standard_normal((n, 3, h, w)).astype(np.float32)
        pads = ((0, 0), (0, 0), (0, -h % 8), (0, -w % 8))
        wide = np.pad(x, pads, mode="constant" if chosen == "zero" else chosen)
        expected, actual = module({"x": wide}), runner({"x": x})
        sizes = [(-(-h // s), -(-w // s)) for s in (2, 4, 1)]
        for (a, b), whole, cut in zip(sizes, expected.values(), actual.values(), strict=True):
            assert cut.shape[2:] == (a, b)
            np.testing.assert_allclose(cut, whole[:, :, :a, :b], atol=1e-5)
    odd = [s for s in read_samples(result.reference) if s.point.sizes["H"] % 8]
    assert odd
    assert all(s.outputs["output_2"].shape[2] == s.point.sizes["H"] for s in odd)


def _module(write_module):
    from trtconv.core.requests import ModuleSource
    from trtconv.export.module.source import load_module

    return ModuleRunner(load_module(ModuleSource(f"{write_module(FPN)}:make")))


def test_two_inputs_of_one_size_are_padded_alike_and_a_mask_with_false(write_module, export):
    inputs = ["x:float32[N,3,H,W]", "mask:bool[N,H,W]"]
    result = export(f"{write_module(HRNET)}:make", inputs, "N=2 H=9:17:22 W=13", pad_to_multiple="auto")
    padding = recorded_padding(result.model)
    assert [(i.name, i.mode, i.axes) for i in padding.inputs] == [
        ("x", "reflect", ((2, 4), (3, 4))),
        ("mask", "zero", ((1, 4), (2, 4))),
    ]
    assert {(c.output, c.axis) for c in padding.outputs} == {("output_0", 2), ("output_0", 3)}


def test_align_narrows_space_points_and_manifest(write_module, export):
    result = export(f"{write_module(FPN)}:make", X, SPACE, align=True)
    assert str(result.space) == "N=1:1:3 H=24:32:40%8 W=24:32:48%8"
    assert all(p.sizes["H"] % 8 == p.sizes["W"] % 8 == 0 for p in result.points)
    assert str(result.space) in result.manifest.read_text()
    assert any("--align" in n for n in result.notes)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("option", [{"align": True}, {"pad_to_multiple": "auto"}])
def test_a_module_that_runs_everywhere_is_left_as_it_is(write_module, export, option):
    result = export(f"{write_module(DECONV)}:make", X, SPACE, **option)
    assert str(result.space) == SPACE
    assert recorded_padding(result.model) is None
    assert any("nothing to do" in n for n in result.notes)


def test_one_odd_size_can_be_padded_but_not_aligned(write_module, export):
    spec = f"{write_module(FPN)}:make"
    result = export(spec, X, "N=1 H=33 W=37", pad_to_multiple="auto")
    actual = OnnxRuntimeRunner(result.model)({"x": np.zeros((1, 3, 33, 37), np.float32)})
    assert [v.shape[2:] for v in actual.values()] == [(17, 19), (9, 10), (33, 37)]
    with pytest.raises(InvalidRequestError, match="H=33:33:33 has no multiple of 8"):
        export(spec, X, "N=1 H=33 W=37", align=True)


def test_what_cannot_be_cut_back_or_padded_is_refused(write_module, export):
    spec = f"{write_module(ANCHORS)}:make"
    with pytest.raises(InvalidRequestError, match="follows H and W"):
        export(spec, X, SPACE, pad_to_multiple="auto")
    with pytest.raises(InvalidRequestError, match="exclude each other"):
        export(spec, X, SPACE, pad_to_multiple="auto", align=True)
    with pytest.raises(InvalidRequestError, match="H=4 cannot be padded by reflection"):
        export(f"{write_module(FPN)}:make", X, "N=1 H=3:17:33 W=19:29:51", pad_to_multiple="reflect")


def test_without_the_options_the_error_names_the_multiple(write_module, export):
    with pytest.raises(TrtconvError, match="the module itself raises") as error:
        export(f"{write_module(FPN)}:make", X, SPACE)
    assert "H a multiple of 8" in error.value.hint
    assert "--pad-to-multiple" in error.value.hint
    assert "net.py" in error.value.where


def test_sizes_that_are_too_small_want_a_larger_min(write_module, export):
    source = """
from torch import nn


def make():
    return nn.Conv1d(2, 3, 5)
"""
    with pytest.raises(TrtconvError, match="the module itself raises") as error:
        export(f"{write_module(source)}:make", ["x:float32[N,2,T]"], "N=1:1:2 T=1:3:40")
    assert error.value.hint == "give --dynamic T=5:5:40"
    assert "runs from T = 5 on" in error.value.details[0]
