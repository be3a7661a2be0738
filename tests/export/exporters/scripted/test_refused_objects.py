"""Scripts that ended the process: tensors of lists on tensors without data, and objects that are written."""

import pytest

from trtconv.core.errors import TrtconvError

HEAD = "class Net(nn.Module):\n    def forward(self, x):\n        return scripted(x)\n\n\n"
LIST = f"""{HEAD}@torch.jit.script
def scripted(x: torch.Tensor) -> torch.Tensor:
    t = torch.tensor([x.size(1)])
    if int(t[0]) == 7:
        return x * 2
    return -x
"""
OBJECT = f"""{HEAD}@torch.jit.script
class Tally:
    def __init__(self):
        self.total = 0.0

    def add(self, k: int) -> float:
        self.total += float(k) * 0.5
        return self.total


@torch.jit.script
def scripted(x: torch.Tensor) -> torch.Tensor:
    t = Tally()
    for k in range(x.size(1)):
        x = x + t.add(k)
    return x
"""


def test_a_list_in_a_script_becomes_a_tensor(write_module, export):
    path = write_module(LIST)
    assert export(f"{path}:Net", ["x:float32[N,T]"], "N=1:1:2 T=3:9:20").sizes.complete


def test_an_object_that_is_written_is_refused(write_module, export):
    path = write_module(OBJECT)
    with pytest.raises(TrtconvError) as refusal:
        export(f"{path}:Net", ["x:float32[N,T]"], "N=1:1:2 T=3:9:20")
    assert "a scripted class keeps a state in its members" in "\n".join([refusal.value.message, *refusal.value.details])
