"""The forms of operators are read once, and no export sees what another one added."""

import torch
from torch import nn
from torch.onnx._internal.exporter._registration import ONNXRegistry

from trtconv.export.exporters.functional import registry
from trtconv.export.exporters.functional.registry import remembered_forms


def forms_of(some):
    return {target: [form.onnx_function for form in forms] for target, forms in some.functions.items()}


def test_it_is_what_torch_reads():
    read = ONNXRegistry.from_torchlib(opset_version=18)
    with remembered_forms():
        first, again = (ONNXRegistry().from_torchlib(opset_version=18) for _ in range(2))
        other = ONNXRegistry.from_torchlib(opset_version=20)
    assert forms_of(first) == forms_of(again) == forms_of(read)
    assert (first.opset_version, other.opset_version) == (18, 20)
    assert forms_of(other) != forms_of(first)


def test_what_an_export_adds_is_its_own():
    with remembered_forms():
        first = ONNXRegistry.from_torchlib()
        first.register_op(torch.ops.aten.relu.default, lambda x: x)
        again = ONNXRegistry.from_torchlib()
    name = torch.ops.aten.relu.default.name()
    assert len(first.functions[name]) == len(again.functions[name]) + 1


def test_it_is_read_once(monkeypatch):
    counts = []
    read = registry._read.__wrapped__
    registry._read.cache_clear()
    monkeypatch.setattr(registry, "_read", registry.cache(lambda *key: counts.append(key) or read(*key)))
    with remembered_forms():
        for _ in range(3):
            ONNXRegistry.from_torchlib(opset_version=18)
    assert len(counts) == 1
    monkeypatch.setattr(registry, "_libraries", lambda: (True, True))
    with remembered_forms():
        ONNXRegistry.from_torchlib(opset_version=18)
    assert len(counts) == 2


def test_outside_of_the_block_torch_reads_as_ever(tmp_path):
    with remembered_forms():
        pass
    assert ONNXRegistry.from_torchlib() is not ONNXRegistry.from_torchlib()
    torch.onnx.export(nn.ReLU(), (torch.zeros(2),), str(tmp_path / "m.onnx"), dynamo=True, verbose=False)
