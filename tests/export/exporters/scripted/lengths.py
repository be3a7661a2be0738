"""Exporting a module with a loop, and what its file has to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch

from trtconv.core.model.bodies import walk_nodes
from trtconv.core.requests import ModuleSource
from trtconv.export.module.source import load_module

Case = tuple[list[str], str, tuple[int, ...]]


def require_equal(
    export: Callable[..., Any],
    path: Path,
    name: str,
    case: Case,
    lengths: Sequence[int],
    atol: float,
    *,
    sequences: bool = False,
) -> None:
    """The file of the class has a Loop and no `sequences`, and gives the module's outputs for x [2, length, ...].

    A case is the inputs, the space, and the shape of x behind its steps.
    """
    inputs, space, shape = case
    result = export(f"{path}:{name}", inputs, space, exporter="torchscript")
    nodes = list(walk_nodes(onnx.load(result.model).graph.node))
    assert [n for n in nodes if n.op_type == "Loop"]
    assert any(n.op_type.startswith("Sequence") for n in nodes) == sequences
    module = load_module(ModuleSource(f"{path}:{name}", base=path.parent)).eval()
    session = onnxruntime.InferenceSession(result.model)
    for length in lengths:
        x = np.random.default_rng(length).standard_normal((2, length, *shape), dtype=np.float32)
        with torch.no_grad():
            outputs = module(torch.from_numpy(x))
        expected = [*outputs] if isinstance(outputs, tuple) else [outputs]
        for y, e in zip(session.run(None, {"x": x}), expected, strict=True):
            np.testing.assert_allclose(y, e.numpy(), atol=atol)
