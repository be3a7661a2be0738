"""Sizes in multiples, traced as multiples of one symbol: what that saves, and which conditions it must not lose."""

from pathlib import Path

import onnxruntime
import pytest
import torch
from torch import nn
from torch.nn import functional

from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.export.branches.joined.cuts import Cut
from trtconv.export.branches.split import find_cut
from trtconv.export.exporters.dynamo import export_dynamo
from trtconv.export.exporters.trace import Trace
from trtconv.export.exporters.tracing.program import program_of
from trtconv.export.exporters.unit_sizes import (
    BoundedTraceError,
    UnprovedConditionError,
    is_for_units,
    is_in_multiples,
    sizes_in_units,
)
from trtconv.export.module.binding import bind_inputs
from trtconv.export.module.flat_module import flat_module
from trtconv.export.module.user_code import blame

SIZES = (("N", 2), ("H", 96), ("W", 128))


class Windows(nn.Module):
    """Pads to windows of seven and halves, as Swin does."""

    def forward(self, x):
        x = functional.avg_pool2d(x, 4)
        for _ in range(2):
            height, width = x.shape[2:]
            x = functional.pad(x, (0, (7 - width % 7) % 7, 0, (7 - height % 7) % 7))
            rows, columns = x.shape[2] // 7, x.shape[3] // 7
            means = x.view(x.shape[0], 3, rows, 7, columns, 7).mean((3, 5), keepdim=True)
            x = (x.view(x.shape[0], 3, rows, 7, columns, 7) - means).reshape(x.shape)[:, :, :height, :width]
            x = functional.pad(x, (0, width % 2, 0, height % 2))
            x = x[:, :, 0::2, 0::2] + x[:, :, 1::2, 1::2]
        return x


class Where(nn.Module):
    """Takes another way where the condition does not hold."""

    def __init__(self, condition):
        super().__init__()
        self.condition = condition

    def forward(self, x):
        return x * 2 if self.condition(*x.shape) else x + 1


def trace(module, space="N=1:2:4 H=64:96:160%32 W=64:128:160%32"):
    binding = bind_inputs(module.forward, ["x"])
    spec = parse_tensor("x:float32[N,3,H,W]")
    x = torch.rand(2, 3, 96, 128)
    return Trace(flat_module(module, binding), (x,), (spec,), ("y",), parse_space([space]), SIZES, Path())


@pytest.fixture(scope="module")
def windows(tmp_path_factory):
    output = tmp_path_factory.mktemp("windows") / "windows.onnx"
    export_dynamo(trace(Windows()), output, None)
    return output


@pytest.mark.parametrize("shape", [(2, 3, 96, 128), (1, 3, 64, 160), (4, 3, 160, 64)])
def test_a_file_traced_in_units_equals_the_module_at_other_sizes(windows, shape):
    x = torch.rand(shape)
    (y,) = onnxruntime.InferenceSession(windows).run(None, {"x": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(y), Windows()(x))


def test_sizes_are_quotients_no_more():
    traced = []

    class Last(Windows):
        def forward(self, x):
            y = super().forward(x)
            traced.append([str(s) for s in y.shape[2:]])
            return y

    task = trace(Last())
    with sizes_in_units(task):
        program_of(task)
    assert traced[-1] == ["2*H_in_units", "2*W_in_units"]
    assert not task.flat._forward_hooks
    assert not task.flat._forward_pre_hooks


@pytest.mark.parametrize(
    "condition",
    [
        lambda n, c, h, w: h > 64,
        lambda n, c, h, w: h != w,
        lambda n, c, h, w: n * w <= 300,
        lambda n, c, h, w: (h // 32) % 2 == 1,
    ],
)
def test_a_condition_that_fails_somewhere_is_not_lost(condition, tmp_path):
    task = trace(Where(condition))
    with pytest.raises(Exception) as failure, sizes_in_units(task):
        program_of(task)
    assert isinstance(failure.value, UnprovedConditionError)
    # The trace without units tells it as torch does.
    with pytest.raises(Exception, match="Constraints violated"):
        export_dynamo(task, tmp_path / "model.onnx", None)
    assert not task.flat._forward_hooks


@pytest.mark.parametrize("space", ["N=1:2:4 H=64:96:160%32 W=64:128:160%32", "N=1:2:4 H=96:96:160%32 W=64:128:160%32"])
def test_a_bound_is_a_cut_also_where_one_size_is_left(space):
    task = trace(Where(lambda n, c, h, w: (h + 6) // 7 <= 14), space)
    with pytest.raises(BoundedTraceError) as failure, sizes_in_units(task):
        program_of(task)
    assert find_cut(str(failure.value), task.space) == Cut("H", 96)


def test_a_condition_that_holds_in_the_whole_space_is_no_obstacle():
    task = trace(Where(lambda n, c, h, w: h * w <= 160 * 160 and n * h <= 640 and h != w + 16))
    with sizes_in_units(task):
        assert program_of(task) is not None


def test_an_error_of_the_module_is_its_own(tmp_path):
    class Raises(nn.Module):
        def forward(self, x):
            raise ValueError(f"{x.ndim} axes")

    with pytest.raises(ValueError, match="4 axes"):
        export_dynamo(trace(Raises()), tmp_path / "model.onnx", None)
    assert not is_for_units(ValueError("4 axes"))
    assert is_for_units(UnprovedConditionError())


def test_units_are_for_dims_that_move_in_multiples():
    assert is_in_multiples(trace(Windows()))
    assert not is_in_multiples(trace(Windows(), "N=1:2:4 H=96 W=128"))
    assert not is_in_multiples(trace(Windows(), "N=1:2:4 H=64:96:160 W=64:128:160"))


FITTING = """
class Net(nn.Module):
    def forward(self, x):
        units = x.shape[2] // 32
        # The quotient of a padded size, as windows that no longer fit are.
        return x * 2 if (units + (7 - units % 7) % 7) // 7 <= 1 else x + 1
"""


def test_windows_that_fit_at_some_sizes_are_cut_there(export, write_module):
    condition = lambda n, c, h, w: (h // 32 + (7 - h // 32 % 7) % 7) // 7 <= 1  # noqa: E731
    task = trace(Where(condition), "N=1:2:4 H=64:96:320%32 W=64:128:160%32")
    with pytest.raises(BoundedTraceError) as failure, sizes_in_units(task):
        program_of(task)
    assert not is_for_units(failure.value)
    assert find_cut(str(failure.value), task.space) == Cut("H", 224)
    assert Path(__file__).name in blame(failure.value, Path.cwd())
    write_module(FITTING)
    result = export("net.py:Net", ["x:float32[N,3,H,4]"], "N=1:2:4 H=64:96:320%32", exporter="dynamo")
    for height, number in ((64, 2.0), (224, 2.0), (256, 1.0), (320, 1.0)):
        x = torch.zeros(1, 3, height, 4).numpy() + (number == 2.0)
        (y,) = onnxruntime.InferenceSession(result.model).run(None, {"x": x})
        assert (y == number).all()
