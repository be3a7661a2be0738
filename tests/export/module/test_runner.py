"""Runs of the original module."""

from __future__ import annotations

import numpy as np
import torch

from trtconv.export.module.runner import ModuleRunner


def test_what_was_compiled_runs_as_it_was_written() -> None:
    """A module under torch.compile would be compiled for each size that is compared."""
    sizes = []

    def compiler(graph: torch.fx.GraphModule, examples: object) -> object:
        sizes.append(examples)
        return graph

    runner = ModuleRunner(torch.nn.Sequential(torch.compile(torch.nn.Linear(3, 2), backend=compiler)))
    for rows in (2, 3, 4):
        runner({"input": np.ones((rows, 3), np.float32)})
    assert not sizes
