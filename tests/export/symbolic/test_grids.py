"""Ramps, windows and frequencies over a moving axis."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import AccuracyError
from trtconv.core.requests import ModuleSource
from trtconv.export.module.source import load_module
from trtconv.export.symbolic import grids

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        w = x.shape[1]
        centres = torch.linspace(0.5, w - 0.5, w, dtype=x.dtype) / w
        return x * centres + torch.linspace(-1, 1, w), torch.linspace(0, w - 1, steps=w) + x
"""


def test_a_linspace_follows_the_size(export, write_module):
    write_module(NET)
    result = export("net.py:Net", ["x:float32[N,W]"], "N=1:2:3 W=1:5:12")
    assert result.exporter == "dynamo"
    runner = OnnxRuntimeRunner(result.model)
    for w in range(1, 13):
        ramp = runner({"x": np.zeros((1, w), np.float32)})
        expected = [torch.linspace(-1, 1, w), torch.linspace(0, w - 1, w)]
        for name, values in zip(runner.output_names, expected, strict=True):
            np.testing.assert_array_equal(ramp[name][0], values.numpy())


LAST_BITS = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x, y):
        t = x.shape[1]
        thirds = torch.linspace(0, t - 1, 31).floor() + torch.linspace(t, 0.5, 13)[:1] + torch.linspace(0, 1, 1)
        return torch.linspace(0, t - 1, y.shape[1]).floor(), thirds
"""


@pytest.mark.slow
def test_the_last_bit_of_a_linspace_is_torchs(export, write_module):
    write_module(LAST_BITS)
    result = export("net.py:Net", ["x:float32[1,T]", "y:float32[1,S]"], "T=2:50:200 S=2:60:200")
    assert any("cut to whole ones at net.py:" in n and "39,601 sizes of T, S" in n for n in result.notes)
    runner = OnnxRuntimeRunner(result.model)
    x = {t: np.zeros((1, t), np.float32) for t in range(2, 201)}
    others = ((t, 2 + t * 7 % 199) for t in range(2, 201))
    for t, s in [(33, 31), (129, 29), (5, 57), (129, 61), *others]:
        places, thirds = runner({"x": x[t], "y": x[s]}).values()
        np.testing.assert_array_equal(places, torch.linspace(0, t - 1, s).floor().numpy())
        expected = torch.linspace(0, t - 1, 31).floor() + torch.linspace(t, 0.5, 13)[:1]
        np.testing.assert_array_equal(thirds, expected.numpy())


CREATED = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        w = x.shape[1]
        return x * torch.bartlett_window(w) + torch.bartlett_window(w, False), torch.fft.rfftfreq(w) + x[:, :1], \\
            torch.fft.fftfreq(w, 0.5) - x, x * torch.arange(w) * (7 / w)
"""


@pytest.mark.slow
def test_tensors_made_of_a_size_alone(export, write_module):
    write_module(CREATED)
    result = export("net.py:Net", ["x:float32[N,W]"], "N=1:2:3 W=1:5:12")
    # No path for each length.
    assert result.sizes.paths <= 5, result.sizes
    runner = OnnxRuntimeRunner(result.model)
    for w in range(1, 13):
        outputs = runner({"x": np.ones((1, w), np.float32)})
        expected = [
            torch.bartlett_window(w) + torch.bartlett_window(w, False),
            torch.fft.rfftfreq(w) + 1,
            torch.fft.fftfreq(w, 0.5) - 1,
            torch.arange(w) * (7 / w),
        ]
        for name, values in zip(runner.output_names, expected, strict=True):
            np.testing.assert_allclose(outputs[name][0], values.numpy(), rtol=3e-7, atol=1e-7)


CUT = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        w = x.shape[1]
        return x + (torch.arange(w) / w * 10).mean().mul(7).floor()
"""


@pytest.mark.slow
def test_a_ramp_that_is_cut_is_compared_at_all_lengths(export, write_module):
    write_module(CUT)
    with pytest.raises(AccuracyError, match="differs from the module") as error:
        export("net.py:Net", ["x:float32[N,W]"], "N=1:2:3 W=8:16:60")
    assert error.value.hint.startswith("numbers are computed from a size in floats and cut")


@pytest.mark.parametrize("size", [(1, 2), (2, 2), (3, 7), (4, 4), (5, 6), (12, 11), (3, 4, 5)])
def test_the_nearest_pixel_of_a_reflected_image(size):
    chance = torch.Generator().manual_seed(0)
    image = torch.arange(float(np.prod(size))).reshape(1, 1, *size)
    # Quarters lie half-way between pixels of even sizes.
    halfway = torch.randint(-16, 17, (2000, len(size)), generator=chance) * 0.25
    places = torch.cat([halfway, torch.randn(2000, len(size), generator=chance) * 3])
    grid = places.reshape(1, *[1] * (len(size) - 1), -1, len(size))
    settings = ("nearest", "reflection", False)
    assert torch.equal(grids.grid_sample(F.grid_sample, image, grid, *settings), F.grid_sample(image, grid, *settings))
    assert grids.grid_sample(F.grid_sample, image, grid, "bilinear", "reflection", False) is NotImplemented


def test_a_reflected_image_of_any_size_converts(export, write_module):
    write_module("""
class Net(nn.Module):
    def forward(self, x, g):
        return F.grid_sample(x, g, "nearest", "reflection", False)
""")
    result = export("net.py:Net", ["x:float32[N,2,H,W]", "g:float32[N,4,5,2]=-2:2"], "N=1:2:3 H=2:5:12 W=2:6:12")
    runner = OnnxRuntimeRunner(result.model)
    x, g = torch.randn(2, 2, 4, 12), torch.randint(-8, 9, (2, 4, 5, 2)) / 4
    [output] = runner({"x": x.numpy(), "g": g.numpy()}).values()
    assert torch.equal(torch.from_numpy(output), F.grid_sample(x, g, "nearest", "reflection", False))


PLACES = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        example, row, column = torch.unravel_index(x.flatten().argmax().int(), x.shape)
        return torch.stack([example, row, column]), *torch.unravel_index(x.flatten(1).argmax(1), (x.shape[1], 4))

class Recorded(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        y, _ = self.gru(x)
        return torch.unravel_index(y.flatten(1).argmax(1), (y.shape[1], 4))
"""


@pytest.mark.parametrize(("name", "exporter"), [("Net", "dynamo"), ("Recorded", "torchscript")])
def test_places_of_flat_indices(export, write_module, name, exporter):
    path = write_module(PLACES)
    result = export(f"{path}:{name}", ["x:float32[N,T,4]"], "N=1:2:3 T=3:5:9", exporter=exporter)
    assert result.sizes.paths <= 2, result.sizes
    module = load_module(ModuleSource(f"{path}:{name}", base=path.parent)).eval()
    runner = OnnxRuntimeRunner(result.model)
    for t in (3, 4, 9):
        x = torch.randn(2, t, 4, generator=torch.Generator().manual_seed(t))
        outputs = runner({"x": x.numpy()})
        for output, values in zip(runner.output_names, module(x), strict=True):
            assert outputs[output].dtype == np.int64
            np.testing.assert_array_equal(outputs[output], values.numpy())


AFFINE = """
import torch.nn.functional as F
from torch import nn

class Net(nn.Module):
    def forward(self, theta, x):
        n, c, h, w = x.shape
        return F.affine_grid(theta, (n, c, h + 2, w), align_corners=True)
"""


@pytest.mark.slow
def test_the_only_pixel_of_an_axis_lies_in_the_middle(export, write_module):
    write_module(AFFINE)
    result = export("net.py:Net", ["theta:float32[N,2,3]", "x:float32[N,1,H,W]"], "N=1:2:3 H=1:4:6 W=1:5:8")
    runner = OnnxRuntimeRunner(result.model)
    theta = torch.randn(1, 2, 3)
    for h, w in ((1, 1), (1, 8), (4, 1), (6, 2)):
        [grid] = runner({"theta": theta.numpy(), "x": np.zeros((1, 1, h, w), np.float32)}).values()
        expected = F.affine_grid(theta, [1, 1, h + 2, w], align_corners=True)
        np.testing.assert_allclose(grid, expected.numpy(), atol=1e-6)
