"""The module that a check runs again, and what gives the outputs of its submodules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.artifacts import beside
from trtconv.core.requests import CheckRequest

if TYPE_CHECKING:
    import numpy as np

    from trtconv.check.blame.find import ModuleOutputs

    Array = np.ndarray[Any, np.dtype[Any]]
    ModuleRunner = Callable[[Mapping[str, Array]], dict[str, Array]]


def module_of(request: CheckRequest) -> tuple[ModuleRunner, ModuleOutputs]:
    """The module that a check runs, and what gives the outputs of its submodules; around both what padding adds."""
    from trtconv.core.shape_space.padding import recorded_padding
    from trtconv.export.module.runner import ModuleRunner as Runner
    from trtconv.export.module.source import load_module
    from trtconv.export.module.submodule_outputs import submodule_outputs

    assert request.against is not None
    module = Runner(load_module(request.against), output_names=_outputs_of(request.subject), renames=False)
    padding = recorded_padding(request.subject)
    if padding is not None:
        # What a padded model computes is the module on padded inputs, its outputs cut back.
        pad = padding.pad
        return padding.around(module), lambda inputs: submodule_outputs(module, pad(inputs))
    return module, lambda inputs: submodule_outputs(module, inputs)


def _outputs_of(subject: Path) -> tuple[str, ...]:
    """The names of an ONNX file's outputs; an engine's are those of its reference."""
    from trtconv.core.model.file import load_model, signature

    graph = subject if subject.suffix == ".onnx" else beside(subject, ".onnx")
    return tuple(o.name for o in signature(load_model(graph)).outputs) if graph.is_file() else ()
