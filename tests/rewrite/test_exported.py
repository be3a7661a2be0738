# ruff: noqa: E501 - the text of a model stands on one line
"""The rules fire on what torch's two exporters really write, not only on what we think they write."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import onnx  # noqa: E402
import torch.nn.functional as F  # noqa: E402

from tests.rewrite.harness import all_nodes, runner  # noqa: E402
from trtconv.core.progress import SilentProgress  # noqa: E402
from trtconv.core.targets import parse_target  # noqa: E402
from trtconv.rewrite.engine.points import model_space  # noqa: E402
from trtconv.rewrite.engine.rounds import RewriteSetting  # noqa: E402
from trtconv.rewrite.rules import RULES  # noqa: E402
from trtconv.rewrite.whole_graph import rewrite_graph  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.slow]


class L2Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(8.0) + 1)

    def forward(self, x):
        norm = x.pow(2).sum(dim=1, keepdim=True).sqrt() + 1e-6
        return self.weight.view(1, -1, 1, 1) * (x / norm)


class Wrapped(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class ScaledFirst(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(8.0) + 1)

    def forward(self, x):
        return self.weight.view(1, -1, 1, 1) * x / (x.pow(2).sum(dim=1, keepdim=True).sqrt() + 1e-6)


def update(x):
    y = x.clone()
    high = y > 0.5
    y[high] = y[high] * 2 + 1
    return y


def scatter(x):
    return torch.zeros_like(x).scatter_add(3, (x > 0).long(), x)


def masked(x):
    y = x.clone()
    y[y < 0] = 0.5
    return y


RTX, EIGHT, TEN = "tensorrt-rtx", "tensorrt==8.6", "tensorrt==10"
CASES = [
    ("L2Norm module", L2Norm(), "l2norm", RTX, ()),
    ("F.normalize", Wrapped(lambda x: F.normalize(x, dim=1)), "l2norm", RTX, ()),
    ("vector_norm", Wrapped(lambda x: x / (torch.linalg.vector_norm(x, dim=1, keepdim=True) + 1e-6)), "l2norm", RTX, ()),
    ("x.norm", Wrapped(lambda x: x / x.norm(dim=1, keepdim=True).clamp(min=1e-6)), "l2norm", RTX, ()),
    ("rsqrt", Wrapped(lambda x: x * torch.rsqrt((x * x).sum(1, keepdim=True) + 1e-6)), "l2norm", RTX, ()),
    ("interpolate by factor", Wrapped(lambda x: F.interpolate(x, size=(x.shape[2] * 2, x.shape[3] * 2))), "resize-by-size", RTX, ("torchscript",)),
    ("scatter_add", Wrapped(scatter), "scatter-elements", RTX, ()),
    ("antialias", Wrapped(lambda x: F.interpolate(x, size=(9, 11), mode="bilinear", antialias=True)), "resize-antialias", RTX, ("dynamo",)),
    ("masked assignment", Wrapped(masked), "masked-fill", RTX, ("dynamo",)),
    ("gelu", Wrapped(F.gelu), "gelu", EIGHT, ("dynamo",)),
    ("instance norm", torch.nn.InstanceNorm2d(8, affine=True), "instance-norm", EIGHT, ("torchscript",)),
    ("pixel unshuffle", Wrapped(lambda x: F.pixel_unshuffle(x, 2)), "pixel-unshuffle", EIGHT, ()),
    ("nearest 1.7", Wrapped(lambda x: F.interpolate(x, scale_factor=1.7)), "resize-nearest", EIGHT, ()),
    ("ceil_mode", torch.nn.AvgPool2d(3, 2, 1, ceil_mode=True), "pool-ceil-mode", EIGHT, ()),
    ("einsum", Wrapped(lambda x: torch.einsum("...ij,...kj->...ik", x, x)), "einsum", TEN, ("torchscript",)),
    ("triu", Wrapped(torch.triu), "trilu", EIGHT, ("dynamo",)),
    ("scale before the norm", ScaledFirst(), "l2norm", RTX, ()),
    ("dilated max pool", torch.nn.MaxPool2d(3, 2, 1, dilation=2), "pool-dilated", RTX, ()),
    ("indices of a max pool", Wrapped(lambda x: F.max_pool2d(x, 2, return_indices=True)[1].float()), "pool-indices", RTX, ()),
    ("update of what a mask selects", Wrapped(update), "masked-fill", RTX, ()),
    ("number of ones", Wrapped(lambda x: x * (x > 0.5).nonzero().shape[0]), "selection-count", RTX, ()),
    ("logsumexp", Wrapped(lambda x: x.logsumexp(1)), "log-sum-exp", RTX, ()),
    ("sine", Wrapped(torch.sin), "sin-cos", EIGHT, ()),
    ("negative padding", Wrapped(lambda x: F.pad(x, (-1, 2, 3, -2))), "pad-negative", EIGHT, ()),
    ("bytes", Wrapped(lambda x: (x.clamp(0, 2) * 100).to(torch.uint8).float()), "uint8", RTX, ()),
    ("bits", Wrapped(lambda x: ((x * 9).long() & 12).float()), "bitwise", RTX, ("dynamo",)),
]  # fmt: skip
PAIRS = [(case, exporter) for case in CASES for exporter in (case[4] or ("dynamo", "torchscript"))]


def exported(module, exporter, path):
    x = torch.randn(2, 8, 16, 24)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if exporter == "torchscript":
            axes = {"x": {0: "N", 2: "H", 3: "W"}}
            torch.onnx.export(module, (x,), str(path), input_names=["x"], output_names=["y"], dynamic_axes=axes,
                              opset_version=17, dynamo=False)  # fmt: skip
        else:
            dynamic = {0: torch.export.Dim.DYNAMIC, 2: torch.export.Dim.DYNAMIC, 3: torch.export.Dim.DYNAMIC}
            torch.onnx.export(module, (x,), str(path), input_names=["x"], output_names=["y"], dynamic_shapes=(dynamic,),
                              opset_version=20, dynamo=True, verbose=False)  # fmt: skip
    return onnx.load(str(path))


@pytest.mark.parametrize(("case", "exporter"), PAIRS, ids=lambda v: v if isinstance(v, str) else v[0])
def test_the_rule_fires_on_the_exported_graph(case, exporter, tmp_path, capfd):
    _, module, rule, target, _ = case
    module = module.eval()
    if isinstance(module, Wrapped):
        module = Wrapped(module.function)
    dynamic = Moving(module) if exporter == "dynamo" else module
    before = exported(dynamic, exporter, tmp_path / "m.onnx")
    space, specs = model_space(before)
    chosen = tuple(r for r in RULES if r.needed(parse_target(target)) and not r.plugin)
    after, record = rewrite_graph(
        before, chosen, RewriteSetting(parse_target(target), space, specs, True), SilentProgress()
    )
    assert not record.rejected, record.rejected[0].reason
    assert rule in {e.rule for e in record.entries}, [n.op_type for n in all_nodes(before.graph)]
    for shape in ((2, 8, 16, 24), (1, 8, 18, 22), (3, 8, 32, 10)):
        x = torch.randn(*shape) * 3
        actual = runner(after)({"x": x.numpy()})["y"]
        assert np.allclose(actual, dynamic(x).detach().numpy(), rtol=1e-4, atol=1e-4)


class Moving(torch.nn.Module):
    """A module as dynamo takes it with dynamic sizes."""

    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)
