"""Programs that are rewritten node by node compute what they computed; what may share memory is left to torch."""

import onnxruntime
import pytest
import torch
from torch import nn
from torch.onnx._internal.exporter._registration import ONNXRegistry

from trtconv.export.exporters.functional import program, rewritten_by_node
from trtconv.export.exporters.functional.forms import UnknownFormError
from trtconv.export.exporters.functional.program import functional_program


@pytest.fixture(scope="module")
def registry():
    return ONNXRegistry.from_torchlib(opset_version=20)


def module_of(function):
    class Written(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.conv = nn.Conv2d(4, 4, 3, padding=1)
            self.norm = nn.BatchNorm2d(4)
            self.norm.running_mean += torch.rand(4)

        def forward(self, x):
            return function(self, x)

    return Written().eval()


def exported(module, x):
    sizes = {0: torch.export.Dim("N", max=64), 2: torch.export.Dim("H", max=64)}
    return torch.export.export(module, (x,), dynamic_shapes=(sizes,), strict=False)


def image(*sizes):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(sum(sizes)))


def residual(self, x):
    y = torch.relu_(self.norm(self.conv(x)))
    y = self.conv(y)
    y += x
    return torch.relu_(y) * 2


def read_before_the_write(self, x):
    y = self.conv(x)
    before = y.mean((2, 3))
    y.clamp_(min=0.1)
    return y.sum((2, 3)) - before


def activations(self, x):
    y = nn.functional.hardswish(self.conv(x), inplace=True)
    y = nn.functional.silu(self.conv(y), inplace=True)
    return nn.functional.dropout(nn.functional.hardtanh(self.conv(y), inplace=True), 0.5, self.training, inplace=True)


def joined(self, x):
    y = self.conv(x).flatten(1) + x.reshape(x.shape[0], -1)
    return y, x.flatten(0, 1), x.flatten(2), x.flatten(-1)


def chunks(self, x):
    first, second, *rest = self.conv(x).chunk(3, dim=1)
    return first + second, *rest


def pools(self, x):
    return nn.functional.adaptive_avg_pool2d(self.conv(x), 1), nn.functional.adaptive_avg_pool1d(x.mean(1), 1)


def types(self, x):
    mask = (x > 0) & (x < 1)
    y = x.to(torch.float64).type_as(x).contiguous()
    return y * mask.to(x.dtype), (x * 8).to(torch.int32) | 1, y.to("cpu") * 0.5 + mask.sum(1, keepdim=True)


def expanded(self, x):
    return x.mean(1, keepdim=True).expand_as(x) * x.mean((2, 3), keepdim=True).expand_as(x)


def views_as_others(self, x):
    y = self.conv(x)
    table = y.mean(1).flatten(1)
    return y.view_as(y) + x, table.view_as(x[:, 0]) * 2, table.reshape_as(y.mean(1)) + 1


def transposed_convolutions(self, x):
    y = nn.functional.conv_transpose2d(x, self.conv.weight, self.conv.bias, stride=2, padding=1, output_padding=1)
    z = nn.functional.conv_transpose2d(x, self.conv.weight[:, :2], stride=(1, 2), dilation=(2, 1), groups=2)
    rows = nn.functional.conv_transpose1d(x.mean(3), self.conv.weight[..., 0], stride=3)
    return y, z, rows, nn.functional.conv_transpose3d(x.unsqueeze(2), self.conv.weight.unsqueeze(2), padding=(0, 1, 1))


def parts_and_reversed_axes(self, x):
    return self.conv(x).narrow(1, 1, 2) * x.narrow(-1, 2, 3).mean(), x.mean((0, 1)).T + 1, x.mean((1, 2, 3)).T * 2


def resized(self, x):
    return nn.functional.interpolate(x, size=(8, 8), mode="bicubic", antialias=True)


def promoted(self, x):
    counts = (x > 0).sum(1)
    return counts / 3 + counts * 0.5 + x.mean(1), torch.where(x > 0, 1, x), counts + torch.tensor(2.5)


def indices_of_what_holds(self, x):
    batch, channel, row, _ = torch.where(self.conv(x) > 0)
    return x[batch, channel, row].mean(0), x.square()


def larger_and_smaller(self, x):
    y = self.conv(x)
    return torch.max(y, x) - torch.min(x, y.mean((2, 3), keepdim=True)), torch.max((x > 0).sum(1), x.mean(1))


def grids(self, x):
    height, width = torch.arange(x.shape[2]), torch.arange(x.shape[3]) * 2
    across, down = torch.meshgrid(width, height, indexing="xy")
    rows, columns, _ = torch.meshgrid(height, width, torch.tensor(5), indexing="ij")
    return x * across - down, x + rows[..., 0], columns.float()


def dropped_in_place(self, x):
    y = self.conv(x)
    return nn.functional.dropout(y.view(y.shape[0], -1), 0.5, False, inplace=True) * 2 + y.flatten(1)


def written_parts(self, x):
    y = self.conv(x)
    y[:, 1].zero_()
    y[:, 2:, :, 1:] *= 2
    y[:, 0, -1] = 5.0
    padded = x.new_full((x.shape[0], 4, x.shape[2] + 1, 9), -1.0)
    padded[:, :, : x.shape[2], 2:7].copy_(y)
    padded[..., 0] = x.sum()
    return y * 2, padded + 1


def part_that_is_read_before_the_next_write(self, x):
    y = self.conv(x)
    part = y[:, 1]
    part.clamp_(min=0.1)
    total = part.sum()
    y[:, 2] = 0.25
    return y * total


def written_part(self, x):
    y = self.conv(x)
    part = y.narrow(1, 0, 2)
    part.mul_(3)
    return y + part.mean(1, keepdim=True)


KNOWN = (
    written_part,
    written_parts,
    part_that_is_read_before_the_next_write,
    indices_of_what_holds,
    larger_and_smaller,
    grids,
    dropped_in_place,
    residual,
    read_before_the_write,
    activations,
    joined,
    chunks,
    pools,
    types,
    expanded,
    views_as_others,
    transposed_convolutions,
    parts_and_reversed_axes,
    promoted,
)


@pytest.mark.parametrize("function", [*KNOWN, resized])
def test_a_known_program_computes_the_same(function, registry):
    module = module_of(function)
    functional = functional_program(exported(module, image(2, 4, 6, 5)), registry).module(check_guards=False)
    written = [n for n in functional.graph.nodes if str(n.target).endswith("_.default")]
    assert written == []
    for sizes in ((2, 4, 6, 5), (3, 4, 11, 5), (5, 4, 2, 5)):
        x = image(*sizes)
        torch.testing.assert_close(functional(x.clone()), module(x.clone()))


@pytest.mark.parametrize("function", KNOWN)
def test_its_file_computes_the_same(function, tmp_path):
    module, path = module_of(function), tmp_path / "model.onnx"
    with rewritten_by_node():
        torch.onnx.export(exported(module, image(2, 4, 6, 5)), dynamo=True, verbose=False).save(path)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for sizes in ((2, 4, 6, 5), (3, 4, 11, 5), (5, 4, 2, 5)):
        x = image(*sizes)
        outputs = session.run(None, {session.get_inputs()[0].name: x.numpy()})
        expected = module(x.clone())
        expected = expected if isinstance(expected, tuple) else (expected,)
        torch.testing.assert_close([torch.from_numpy(o) for o in outputs], list(expected), rtol=1e-5, atol=1e-5)


def written_and_returned(self, x):
    y = self.conv(x)
    y.relu_()
    return y


def view_of_what_is_written(self, x):
    y = self.conv(x)
    flat = y.view(y.shape[0], -1)
    y.relu_()
    return flat * 2


def written_through_dropout(self, x):
    y = self.conv(x)
    z = nn.functional.dropout(y, 0.5, False)
    z.relu_()
    return y * 2 + z


def written_through_a_view(self, x):
    y = self.conv(x)
    z = y.view_as(y)
    z.relu_()
    return y * 2 + z


def written_through_contiguous(self, x):
    y = self.conv(x)
    z = y.contiguous()
    z += 1
    return y * z


def of_another_type(self, x):
    y = self.conv(x)
    y += x.double()
    return y * 2


def part_that_is_read_later(self, x):
    y = self.conv(x)
    part = y[:, 1]
    part.fill_(3)
    y.mul_(2)
    return part + y.sum(1)


def view_of_a_part_that_is_read_later(self, x):
    y = self.conv(x)
    part = y[:, 1]
    part.fill_(3)
    row = part.unsqueeze(1)
    y.mul_(2)
    return row.sum() + y.sum(1)


def part_that_is_written_again(self, x):
    y = self.conv(x)
    part = y[:, 1]
    part.fill_(3)
    part.add_(1)
    return y * 2


def other_part_that_is_read_later(self, x):
    y = self.conv(x)
    first, row = y[:, 1:3], y[:, 1]
    first.relu_()
    return y + row.unsqueeze(1)


def part_of_itself(self, x):
    y = self.conv(x)
    y[:, 1:] = y[:, :-1]
    return y * 2


# With dropout in evaluation torch's own file is wrong, which the proof finds.
SHARING = (written_through_a_view, written_through_dropout)
ALIASED = (
    view_of_what_is_written,
    part_that_is_read_later,
    view_of_a_part_that_is_read_later,
    part_that_is_written_again,
    other_part_that_is_read_later,
)


@pytest.mark.parametrize("function", [*ALIASED, *SHARING, part_of_itself, of_another_type])
def test_what_may_share_memory_is_left_to_torch(function, registry):
    with pytest.raises(UnknownFormError):
        functional_program(exported(module_of(function), image(2, 4, 6, 5)), registry)


@pytest.mark.parametrize("function", [*ALIASED, *SHARING[:1], written_and_returned, written_through_contiguous])
def test_a_file_of_writes_is_right(function, tmp_path):
    module, path = module_of(function), tmp_path / "model.onnx"
    with rewritten_by_node():
        torch.onnx.export(exported(module, image(2, 4, 6, 5)), dynamo=True, verbose=False).save(path)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    x = image(3, 4, 7, 5)
    [output] = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    torch.testing.assert_close(torch.from_numpy(output), module(x.clone()), rtol=1e-5, atol=1e-5)


def test_a_program_is_not_changed(registry):
    program = exported(module_of(residual), image(2, 4, 6, 5))
    before = str(program.graph)
    functional_program(program, registry)
    assert str(program.graph) == before


# The parts of a usual network in evaluation: dropout of each kind, a bottleneck, a head.
REGULARISED = """
class Regularised(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(True), nn.Dropout2d(0.1))
        self.norm, self.head = nn.LayerNorm(8), nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Dropout(0.5))

    def forward(self, x):
        y = self.norm(self.body(x).flatten(2).transpose(1, 2))
        return self.head(F.alpha_dropout(y, 0.3, self.training)) + F.dropout(y, 0.1, False)
"""


def test_a_usual_network_does_not_run_through_torchs_tracers_again(write_module, export, monkeypatch):
    """Each takes as long as torch.export itself; whatever trtconv puts into a program has to have a form."""
    prepared, refused = program._prepared, []
    def counted(*args):
        try:
            return prepared(*args)
        except Exception as error:
            refused.append(error)
            raise

    monkeypatch.setattr(program, "_prepared", counted)
    write_module(REGULARISED)
    export("net.py:Regularised", ["x:float32[N,3,H,H]"], "N=1:2:4 H=8:16:32")
    assert refused == []
