"""Branches on sizes that fall into three: Ifs side by side where every part runs everywhere, nested where not."""

import numpy as np
import onnx
import pytest

pytest.importorskip("torch")

from trtconv.backends.onnxruntime_cpu import OnnxRuntimeRunner

THREE = """
class Three(nn.Module):
    def forward(self, x):
        if x.shape[1] < 30:
            return x.mean(1) + 1
        if x.shape[1] < 50:
            return {middle}
        return x.mean(1).relu()


def make():
    return Three().eval()
"""


def export_three(write_module, export, middle):
    made = export(f"{write_module(THREE.format(middle=middle))}:make", ["x:float32[N,T,4]"], "N=1:2:3 T=11:40:70")
    runner = OnnxRuntimeRunner(made.model)
    return onnx.load(made.model).graph, lambda size: runner({"x": np.full((2, size, 4), -2, np.float32)})["output"][0, 0]


def test_parts_that_run_at_every_size_stand_side_by_side(write_module, export):
    graph, at = export_three(write_module, export, "x.mean(1) * 3")
    assert [n.op_type for n in graph.node].count("If") == 2
    assert [at(t) for t in (11, 29, 30, 49, 50, 70)] == [-1, -1, -6, -6, 0, 0]


def test_a_part_that_is_undefined_outside_is_only_run_inside(write_module, export):
    graph, at = export_three(write_module, export, "F.avg_pool1d(x.transpose(1, 2), 30, 1).mean(2) - 1")
    assert [n.op_type for n in graph.node].count("If") == 1
    assert [at(t) for t in (11, 29, 30, 49, 50, 70)] == [-1, -1, -3, -3, 0, 0]
