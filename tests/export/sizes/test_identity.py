"""Truth values of sizes that a module asks for by identity."""

import numpy as np
import onnxruntime as ort
import pytest
import torch

from trtconv.core.requests import ModuleSource
from trtconv.export.module.source import load_module
from trtconv.export.sizes.identity import ASKED

HEAD = "class Net(nn.Module):\n    def forward(self, x):\n        t = x.shape[1]\n"
LINES = {
    "compared": "return x * 2 if (t == 23) is True else -x",
    "not false": "return x * 2 if (t != 23) is not False else -x",
    "beside others": "return x * 2 if (t % 8 == 7) is True and t > 20 else -x",
    "of three": "k = None if t < 5 else t == 23\n        return x * (2.0 if k is True else 3.0 if k is None else 4.0)",
}


@pytest.mark.parametrize("lines", LINES.values(), ids=LINES)
def test_both_sides_are_in_the_file(write_module, export, tmp_path, lines):
    path = write_module(f"{HEAD}        {lines}\n")
    result = export(f"{path}:Net", ["x:float32[N,T]"], "N=1:1:2 T=3:9:40")
    assert result.sizes.complete
    session = ort.InferenceSession(str(tmp_path / "out" / "model.onnx"))
    module = load_module(ModuleSource(f"{path}:Net", base=path.parent))
    for t in range(3, 41):
        x = torch.randn(1, t)
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], module(x).numpy(), rtol=1e-6)


@pytest.mark.parametrize(("text", "asks"), [("x is True", True), ("x is not False", True), ("this is Truely", False)])
def test_a_file_that_asks(text, asks):
    assert bool(ASKED.search(text)) == asks
