"""A function as a recorded file, and what ONNX Runtime makes of it."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from trtconv.export.exporters.recorded.operators import recorded_forms

OPSET = 17


@pytest.fixture(params=["traced", "scripted"])
def differing(request: pytest.FixtureRequest) -> Callable[..., list[int]]:
    """Which outputs of a function differ in its file, in type or value; the function as it is, and as a script."""

    def run(
        function: Callable[..., tuple[Any, ...]], *inputs: torch.Tensor, tolerance: float = 0.0, opset: int = OPSET
    ) -> list[int]:
        part = torch.jit.script(function) if request.param == "scripted" else function

        class Net(nn.Module):
            def forward(self, *tensors: torch.Tensor) -> Any:
                return part(*tensors)

        net = torch.jit.trace(Net(), inputs, check_trace=False) if request.param == "scripted" else Net()
        names = [f"in{i}" for i in range(len(inputs))]
        axes = {n: {a: f"{n}_{a}" for a in range(t.dim())} for n, t in zip(names, inputs, strict=True)}
        file = io.BytesIO()
        with recorded_forms(opset):
            torch.onnx.export(
                net, inputs, file, dynamo=False, opset_version=opset, input_names=names, dynamic_axes=axes
            )
        session = onnxruntime.InferenceSession(file.getvalue())
        feed = {n: t.numpy() for n, t in zip(names, inputs, strict=True)}
        outputs = session.run(None, {i.name: feed[i.name] for i in session.get_inputs()})
        expected = [t.numpy() for t in function(*inputs)]
        assert len(outputs) == len(expected)
        return [i for i, (a, b) in enumerate(zip(outputs, expected, strict=True)) if not same(a, b, tolerance)]

    return run


def same(actual: Any, expected: Any, tolerance: float) -> bool:
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        return False
    return bool(np.allclose(actual, expected, rtol=tolerance, atol=0.0, equal_nan=True))
