"""Numbers that tracing bakes: which expression gives them, and that the repaired graph is right at every size."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from trtconv.core.progress import SilentProgress
from trtconv.core.requests import ExportRequest, ModuleSource
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.export.exporters.attempt import Attempt, ExportTask, Way, attempt
from trtconv.export.exporters.torchscript import export_torchscript
from trtconv.export.module.quiet import collected_noise
from trtconv.export.module.runner import ModuleRunner
from trtconv.export.module.sample_function import inputs_maker
from trtconv.export.sizes.generalise.fit import Observation, fit
from trtconv.proof.points import sample_points
from trtconv.proof.sampling import run_samples
from trtconv.proof.sizes import Budget, traced_sizes

SIZES = [(17, 19), (20, 19), (24, 19), (29, 19), (17, 22), (17, 26), (17, 31), (29, 31)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (lambda h, w: h, "H"),
        (lambda h, w: h * 3 // 2, "(3*H) // 2"),
        (lambda h, w: (h - 1) // 2 + 1, "(H + 1) // 2"),
        (lambda h, w: -(h // 2), "-(H // 2)"),
        (lambda h, w: h - 3, "H - 3"),
        (lambda h, w: min(h, 22), "min(H, 22)"),
        (lambda h, w: max(h, 22), "max(H, 22)"),
        (lambda h, w: h * w, "H * W"),
        (lambda h, w: 8 * ((h + 1) // 2) * ((w + 1) // 2), None),
        (lambda h, w: h + w + 5, "5 + H + W"),
        (lambda h, w: w // 4 - h, None),
    ],
)
def test_fit_finds_the_expression(value, text):
    observations = [Observation((("H", h), ("W", w)), value(h, w)) for h, w in SIZES]
    formula = fit(observations)
    if text is not None:
        assert str(formula) == text
    if formula is not None:
        assert all(formula.at(o.by_name) == o.value for o in observations)
        assert formula.at({"H": 40, "W": 53}) == value(40, 53)


def test_fit_refuses_what_it_cannot_express():
    values = [3, 1, 4, 1, 5, 9, 2, 6]
    assert fit([Observation((("H", h), ("W", w)), v) for (h, w), v in zip(SIZES, values, strict=True)]) is None


class Resized(nn.Module):
    def forward(self, x):
        return F.interpolate(x, size=(int(x.shape[2] * 1.5), int(x.shape[3]) * 2), mode="bilinear")


class WholeHeight(nn.Module):
    def forward(self, x):
        return F.avg_pool2d(x, [int(x.shape[2]), 1])


class Flattened(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3, 2, 1)

    def forward(self, x):
        y = self.conv(x)
        return y.view(-1, 8, int(y.shape[2]) * int(y.shape[3])).sum(1)


class Cropped(nn.Module):
    def forward(self, x):
        return x[:, :, : min(20, int(x.shape[2]))]


class Mean(nn.Module):
    def forward(self, x):
        return x.sum((2, 3)) / float(int(x.shape[2]) * int(x.shape[3]))


class Positions(nn.Module):
    def forward(self, x):
        return x + torch.arange(int(x.shape[3]))


class Windowed(nn.Module):
    def forward(self, x):
        return x * torch.from_numpy(np.hanning(int(x.shape[3]))).float()


class Multiple(nn.Module):
    def forward(self, x):
        return F.pad(x, (0, 0, 0, math.lcm(int(x.shape[2]), 4) % 48))


class Grid(nn.Module):
    """Positions by NumPy, as masked autoencoders have them, in each joint size of H and W."""

    def forward(self, x):
        height, width = int(x.shape[2]), int(x.shape[3])
        angles = np.outer(np.sin(np.arange(height)), np.cos(np.arange(width) ** 2))
        return x + torch.from_numpy(angles).float()


class Meshed(nn.Module):
    """What NumPy and Python take of numbers alone, not of sizes that are tensors."""

    def forward(self, x):
        rows, columns = np.mgrid[0 : x.shape[2], 0 : x.shape[3]]
        scale = round(x.shape[3] / x.size(2), 1) + divmod(len(x[0, 0]), 7)[1]
        return x * scale + torch.from_numpy(np.hypot(rows, columns)).float()


class Branch(nn.Module):
    def forward(self, x):
        return torch.relu(x) if int(x.shape[2]) % 2 else torch.tanh(x)


def generalised(module: nn.Module, folder: Path, ranges: str = "N=1:2:5 H=17:32:61 W=19:48:67") -> Attempt:
    specs, space = (parse_tensor("x:float32[N,8,H,W]"),), parse_space([ranges])
    runner, sizes = ModuleRunner(module, specs), traced_sizes(space, specs)
    make = inputs_maker(specs, None, Path())
    samples = run_samples(runner, specs, sample_points(space, specs, traced=sizes), make, False, Budget())
    request = ExportRequest(ModuleSource("net.py:make"), specs, space, Path("model.onnx"))
    with collected_noise():
        job = ExportTask(request, runner, samples, make, tuple(sizes.items()), folder, SilentProgress())
        return attempt(Way("torchscript", export_torchscript, generalises=True), job)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("module", "messages"),
    [
        (Resized, "25 = (3*H) // 2, 38 = 2*W"),
        (WholeHeight, "the window is the whole axis, so it is ReduceMean over axes [2]"),
        (Flattened, "90 = ((H + 1) // 2) * ((W + 1) // 2)"),
        (Cropped, "17 = min(H, 20)"),
        (Mean, "323 = H * W"),
        (Positions, "a row of 19 = W numbers from 0 in steps of 1"),
        (Windowed, "a table of its values at 49 sizes of W"),
        (Multiple, "a table of its values at 45 sizes of H"),
    ],
)
def test_baked_numbers_follow_the_size(module, messages, tmp_path):
    path = generalised(module().eval(), tmp_path)
    assert path.equal, path.describe()
    assert any(messages in n for n in path.candidate.notes), path.candidate.notes
    assert any("test_method.py:" in n for n in path.candidate.notes)


def test_a_constant_of_two_dims_is_a_table_of_their_joint_sizes(tmp_path):
    path = generalised(Grid().eval(), tmp_path, "N=1:2:5 H=16:32:64%16 W=19:21:25")
    assert path.equal, path.describe()
    assert any("a table of its values at 28 sizes of H and W" in n for n in path.candidate.notes)


def test_sizes_are_plain_numbers_where_tensors_raise(tmp_path):
    path = generalised(Meshed().eval(), tmp_path, "N=1:2:5 H=16:32:64%16 W=19:21:25")
    assert path.equal, path.describe()
    at_two = [n for n in path.candidate.notes if "a table of its values at 28 sizes of H and W" in n]
    assert len(at_two) == 2, path.candidate.notes


def test_a_table_of_too_many_sizes_is_refused(tmp_path):
    path = generalised(Grid().eval(), tmp_path)
    assert path.candidate is None
    assert "a table of 2,205 sizes of H and W would take too long" in str(path.error)


def test_a_branch_is_told_by_the_operations_where_the_graphs_part(tmp_path):
    path = generalised(Branch().eval(), tmp_path)
    assert not path.equal
    assert path.candidate is None
    assert "Relu" in str(path.error)
    assert "Tanh" in str(path.error)
