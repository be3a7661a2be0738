"""What values do whose squares leave FP32: a note, where the module still gives numbers."""

import pytest

HEAD = "class Net(nn.Module):\n    def forward(self, x):\n"
SPACE = "N=1:2:3 H=4:6:9"


def far_notes(write_module, export, body: str, spec: str = "x:float32[N,3,H]"):
    result = export(f"{write_module(HEAD + '        ' + body)}:Net", [spec], SPACE)
    return [n for n in result.notes if "in its inputs the file differs" in n]


def test_what_overflows_in_the_file_alone_is_told(write_module, export):
    [note] = far_notes(write_module, export, "return x.std(1)")
    assert "values of 1e+20" in note


def test_it_is_told_where_an_axis_may_have_one_element(write_module, export):
    """Of one element a deviation is 0 at any value; both outputs are named."""
    body = "return x.std(1, correction=0), x.std(1, correction=0) / x.abs().amax(1)"
    path = write_module(f"{HEAD}        {body}")
    notes = export(f"{path}:Net", ["x:float32[N,T,5]"], "N=1:2:3 T=1:6:9").notes
    [note] = [n for n in notes if "in its inputs the file differs" in n]
    assert "output_0" in note
    assert "output_1" in note


BOTH_OR_NEITHER = (
    "return (x * x).sum(1).sqrt()",
    "return x.relu() @ x.mT.sigmoid()",
    "return F.layer_norm(x, x.shape[-1:])",
)


@pytest.mark.parametrize("body", BOTH_OR_NEITHER)
def test_what_overflows_in_both_or_in_neither_is_not(write_module, export, body):
    assert not far_notes(write_module, export, body)


@pytest.mark.parametrize(
    ("limits", "factor"), [("-4:4", "1e-25"), ("0.5:4", ""), ("-4:-0.1", "")]
)
def test_only_what_a_range_of_values_holds_is_tried(write_module, export, limits, factor):
    notes = far_notes(write_module, export, "return x / x.std(1, keepdim=True)", f"x:float32[N,3,H]={limits}")
    assert [f"values of {factor} in" in n for n in notes] == ([True] if factor else [])


def test_the_norm_of_one_element_is_told(write_module, export):
    """torch takes it without a square."""
    path = write_module(f"{HEAD}        return x / x.norm(dim=1, keepdim=True)")
    notes = export(f"{path}:Net", ["x:float32[N,K]=-4:4"], "N=1:2:4 K=1:7:20").notes
    [note] = [n for n in notes if "in its inputs the file differs" in n]
    assert "values of 1e-25" in note
    assert "K=1" in note
