"""A module file of the user's, and a short way to export from it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from trtconv.core.progress import SilentProgress
from trtconv.core.requests import ExportRequest, ModuleSource
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor

pytest.importorskip("torch")

from trtconv.export import ExportResult, export_model

Export = Callable[..., ExportResult]


@pytest.fixture
def write_module(tmp_path: Path) -> Callable[[str], Path]:
    """Write a file that starts with torch's imports; line 1 of the text is line 5 of the file."""

    def write(text: str, name: str = "net.py") -> Path:
        path = tmp_path / name
        head = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"
        path.write_text(head + text)
        return path

    return write


@pytest.fixture
def export(tmp_path: Path) -> Export:
    """Export `spec` to `out/model.onnx`; what is given besides goes to the source or the request."""

    def run(
        spec: str, inputs: list[str], space: str = "", *, args: dict[str, Any] | None = None, **options: Any
    ) -> ExportResult:
        source_options = {k: options.pop(k) for k in ("weights", "sample", "seed") if k in options}
        source = ModuleSource(spec, tuple((args or {}).items()), base=tmp_path, **source_options)
        output = options.pop("output", tmp_path / "out" / "model.onnx")
        specs = tuple(parse_tensor(i) for i in inputs)
        return export_model(ExportRequest(source, specs, parse_space([space]), output, **options), SilentProgress())

    return run


@pytest.fixture
def load() -> Callable[[Path], ModuleType]:
    """The namespace of a module's file, under a name of its own."""

    def run(path: Path) -> ModuleType:
        spec = importlib.util.spec_from_file_location("net_of_numbers", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return run
