"""A dim of 1 or 2 stays a dim, also where ranges are only hints."""

from pathlib import Path

import pytest
import torch

from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.export.exporters.trace import Trace
from trtconv.export.exporters.tracing.shapes import dynamic_shapes, hinted_shapes


class Shift(torch.nn.Module):
    def forward(self, tensors):
        return tensors[0] + 1


@pytest.mark.parametrize("shapes_of", [dynamic_shapes, hinted_shapes])
@pytest.mark.parametrize("space", ["N=1:1:2", "N=2:2:2", "N=1:2:8"])
def test_a_batch_of_up_to_two_stays_dynamic(shapes_of, space):
    specs = (parse_tensor("x:float32[N,4]"),)
    trace = Trace(Shift(), (torch.ones(2, 4),), specs, ("y",), parse_space([space]), (("N", 2),), Path())
    (shapes,) = shapes_of(trace)
    program = torch.export.export(trace.flat, (trace.inputs,), dynamic_shapes=(shapes,))
    size = next(n for n in program.graph.nodes if n.op == "placeholder").meta["val"].shape[0]
    assert isinstance(size, torch.SymInt) == trace.dynamic("N")
