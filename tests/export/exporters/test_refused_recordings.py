"""A recording that is wrong at another size names the line that is to blame, and the true cause."""

from __future__ import annotations

import pytest

from trtconv.core.errors import AccuracyError, UnsupportedError
from trtconv.export.exporters import finish
from trtconv.export.module.operator_lines import empty_line
from trtconv.export.module.runner import ModuleRunner

HEAD = (
    "import math\n\n\nclass Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.gru = nn.GRU(4, 4, batch_first=True)\n\n    def forward(self, x):\n        y = self.gru(x)[0]\n"
)
BLOCKS = (
    f"{HEAD}        n = y.shape[1] // 3 * 3\n        y = y.transpose(1, 2)[..., :n]\n"
    "        return y.reshape(y.shape[0], 4, -1, 3).sum(-1)\n"
)
LOGARITHM = f"{HEAD}        t = x.shape[1]\n        return y * (math.hypot(t, 1.0) / math.log(10)) + t * 0.3\n"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("source", "line", "hint"),
    [(BLOCKS, "net.py:16", "a tensor without elements"), (LOGARITHM, "net.py:16", "a plain number of a size")],
)
def test_the_line_is_named(write_module, export, monkeypatch, source, line, hint):
    # With it no tensor without elements has another shape.
    monkeypatch.setattr(finish, "count_axes_from_front", lambda model: 0)
    with pytest.raises(AccuracyError) as caught:
        # A number of so many sizes is no table.
        export(f"{write_module(source)}:Net", ["x:float32[N,T,4]"], "N=1:1:2 T=1:9:600", exporter="torchscript")
    assert caught.value.where == line
    assert hint in (caught.value.hint or "")


def test_an_empty_tensor_is_found_where_there_is_one():
    import numpy as np
    import torch

    class Shifted(torch.nn.Module):
        def forward(self, x):
            shifted = x[:, 2:]
            return shifted.sum(1)

    runner = ModuleRunner(Shifted())
    line = empty_line(runner, {"x": np.ones((3, 2), np.float32)})
    assert line is not None
    assert line.endswith(f":{Shifted.forward.__code__.co_firstlineno + 1}")
    assert empty_line(runner, {"x": np.ones((3, 3), np.float32)}) is None


CATCHES = (
    f"{HEAD}        try:\n            y = y{{step}}\n        except {{kind}}:\n            y = y * 2\n"
    "        return y + 1\n"
)


@pytest.mark.parametrize(
    ("step", "kind"),
    [(".narrow(2, 0, 9)", "RuntimeError"), ("[:, :, [7]]", "IndexError"), (".view(7, 7)", "BaseException")],
)
def test_an_error_that_the_module_catches_is_a_refusal_and_does_not_end_the_process(write_module, export, step, kind):
    path = write_module(CATCHES.format(step=step, kind=kind))
    with pytest.raises(UnsupportedError, match="which the module catches") as caught:
        export(f"{path}:Net", ["x:float32[N,T,4]"], "N=1:1:2 T=4:9:30", exporter="torchscript")
    assert caught.value.where == "net.py:16"
