"""What every submodule returns at some inputs, for finding the first one that an exported graph computes otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import TrtconvError
from trtconv.export.module.runner import ModuleRunner, to_array

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


def submodule_outputs(runner: ModuleRunner, inputs: Mapping[str, Array]) -> dict[str, tuple[Array, ...]]:
    """Run the module once; the tensors that each submodule returned, by its path.

    A submodule that was called more than once, or that returns anything but a tensor or a tuple of tensors, is left
    out. Empty for a program without submodules (an exported program), and where the module raises.
    """
    import torch

    outputs_by_path: dict[str, tuple[Array, ...]] = {}
    calls: Counter[str] = Counter()

    def keep(path: str) -> Any:
        def hook(module: Any, args: Any, output: Any) -> None:
            calls[path] += 1
            parts = output if isinstance(output, (tuple, list)) else (output,)
            if all(isinstance(p, torch.Tensor) for p in parts):
                outputs_by_path[path] = tuple(to_array(p) for p in parts)

        return hook

    handles = [m.register_forward_hook(keep(path)) for path, m in runner.module.named_modules() if path]
    try:
        runner(inputs)
    except TrtconvError:
        return {}
    finally:
        for handle in handles:
            handle.remove()
    return {path: arrays for path, arrays in outputs_by_path.items() if calls[path] == 1}
