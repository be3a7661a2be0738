"""A traceback says what to do next, in the words of the call."""

import sys

import pytest

import trtconv
from trtconv.api.calls import _CONVERT
from trtconv.api.error_notes import in_python
from trtconv.core.errors import InvalidRequestError
from trtconv.core.option import described_fields

OPTIONS = {o.name: o for kind in _CONVERT for o in described_fields(kind).values()}


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("give ranges with --dynamic for which it holds", "give ranges with dynamic= for which it holds"),
        ("add --dynamic N=MIN:OPT:MAX", 'add dynamic="N=MIN:OPT:MAX"'),
        ("add --dynamic N=1:2:4 T=2:3:4%2, or fix it", 'add dynamic="N=1:2:4 T=2:3:4%2", or fix it'),
        ("add --dynamic N=1:2:4 --dynamic T=8", 'add dynamic="N=1:2:4 T=8"'),
        ("say --input 'x:float32[N,3]=0:1'", 'say inputs="x:float32[N,3]=0:1"'),
        ("say --input x:DTYPE[D0,D1,...] --input y:int64[N]", 'say inputs=["x:DTYPE[D0,D1,...]", "y:int64[N]"]'),
        ("the file (--sample FILE.py:FUNCTION)", 'the file (sample="FILE.py:FUNCTION")'),
        ("build with --precision fp16, or --opt-level 3.", 'build with precision="fp16", or opt_level=3.'),
        ("pass --no-proof to go on", "pass no_proof=True to go on"),
        ("pass --arg width=3 or --arg name=a", 'pass arg={"width": 3} or arg={"name": "a"}'),
        ("only --plugins changes that", "only plugins= changes that"),
        ("pip install x --no-deps", "pip install x --no-deps"),
        ("run `trtconv init net.py --input x:int64[N]` first", "run `trtconv init net.py --input x:int64[N]` first"),
        ("no options here", "no options here"),
    ],
)
def test_options_are_arguments(text, spoken):
    assert in_python(text, OPTIONS) == spoken
    assert in_python(spoken, OPTIONS) == spoken


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes came with Python 3.11")
def test_the_traceback_has_the_hint(tmp_path):
    with pytest.raises(InvalidRequestError) as caught:
        trtconv.convert("net.py:Net", inputs={"x": "float32[N,8]"}, output=tmp_path / "out")
    assert caught.value.__notes__ == ['  -> add dynamic="N=MIN:OPT:MAX"']
    assert caught.value.hint == 'add dynamic="N=MIN:OPT:MAX"'
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes came with Python 3.11")
def test_a_call_within_a_call_adds_them_once(tmp_path):
    with pytest.raises(InvalidRequestError) as caught:
        trtconv.assert_equal("net.py:Net", tmp_path / "none.onnx")
    assert len(caught.value.__notes__) == len(set(caught.value.__notes__))
