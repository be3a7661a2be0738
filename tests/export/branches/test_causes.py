"""What the exporters' own errors do not say."""

import pytest

from trtconv.core.errors import TrtconvError

LOOKS_UP = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = {k: 1.0 + k for k in range(5)}

    def forward(self, x):
        return x * self.scales[min(x.shape[1] // 7, 4)]
"""


def test_the_cause_is_named(write_module, export):
    path = write_module(LOOKS_UP)
    with pytest.raises(TrtconvError, match="looks its size up in a dictionary"):
        export(f"{path}:Net", ["x:float32[2,T]"], "T=4:5:40", exporter="dynamo")


def test_a_number_of_a_dictionary_is_a_table_of_the_sizes(write_module, export):
    path = write_module(LOOKS_UP)
    result = export(f"{path}:Net", ["x:float32[2,T]"], "T=4:5:40")
    assert any("a table of its values at 37 sizes of T" in n for n in result.notes)
