"""What export writes, and what it prints."""

from __future__ import annotations

import numpy as np

from tests.export.test_export import IMAGES, NET, SPACE
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.proof.reference import read_samples


def test_nothing_reaches_the_terminal(export, write_module, capfd):
    write_module(NET.replace("x = self.conv(images)", "print('from the module')\n        x = self.conv(images)"))
    export("net.py:make", IMAGES, SPACE)
    export("net.py:make", IMAGES, SPACE, exporter="torchscript")
    printed = capfd.readouterr()
    assert printed.out == ""
    assert printed.err == ""


def test_same_request_gives_the_same_bytes(export, write_module):
    write_module(NET)
    first = export("net.py:make", IMAGES, SPACE).model.read_bytes()
    assert export("net.py:make", IMAGES, SPACE).model.read_bytes() == first


def test_large_weights_go_to_one_file_beside_the_model(export, write_module, monkeypatch):
    import trtconv.export.exporters.dynamo

    monkeypatch.setattr(trtconv.export.exporters.dynamo, "EXTERNAL_ABOVE", 1000)
    net = "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    net += "        self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64)\n        self.b.weight = self.a.weight\n"
    write_module(f"{net}    def forward(self, x):\n        return self.b(self.a(x))\n\ndef make():\n    return Net()\n")
    result = export("net.py:make", ["x:float32[N,64]"], "N=1:2:4", exporter="dynamo")
    data = result.model.with_name("model.onnx.data")
    assert result.model.stat().st_size < 16_000
    assert 64 * 64 * 4 <= data.stat().st_size < 2 * 64 * 64 * 4  # the tied weight is there once
    for sample in list(read_samples(result.reference))[:2]:
        actual_output = OnnxRuntimeRunner(result.model)(sample.inputs)["output"]
        np.testing.assert_allclose(actual_output, sample.outputs["output"], atol=1e-4, rtol=1e-4)
