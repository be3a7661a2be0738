import pytest

from trtconv.core.errors import InvalidRequestError
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor, require_ranges


def test_an_input_with_names_integers_and_a_value_range():
    spec = parse_tensor("ids:int64[N,T]=0:30521")
    assert (spec.name, spec.dtype.name, spec.dims, spec.value_range) == ("ids", "int64", ("N", "T"), (0.0, 30521.0))
    assert spec.shape({"N": 2, "T": 7}) == (2, 7)


def test_the_dtype_defaults_to_float32_and_takes_short_names():
    assert parse_tensor("x[1,3]").dtype.name == "float32"
    assert parse_tensor("x:fp16[1,3]").dtype.name == "float16"


def test_a_scalar_has_no_dims():
    assert parse_tensor("s:float32[]").dims == ()


def test_it_reads_back_as_it_prints():
    for text in ("images:float32[N,3,H,W]", "ids:int64[N,T]=0:30521", "ids:int64[N]=0:1234567", "x[N]=0.1:0.3"):
        text = text.replace("x[", "x:float32[")
        assert str(parse_tensor(text)) == text


def test_expressions_of_output_dims_read_back():
    for text in ("y:float32[N,(H - 1)//2 + 1]", "y:float32[Max(1, 4*N),7]", "y:float32[255*s11*s28]"):
        assert str(parse_tensor(text)) == text
        assert len(parse_tensor(text).dims) == (1 if "255" in text else 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("images", "cannot read the input"),
        ("x:float33[N]", "unknown dtype 'float33'. Did you mean 'float32'"),
        ("x:float32[N,-1]", "cannot read the dim"),
        ("x:float32[N]=5:1", "begins above its end"),
        ("float32[N,8]", r"the input 'float32\[N,8\]' has no name"),
        ("x:float32[N]=nan:1", "value range nan:1 of input 'x' is not a valid float32 range"),
        ("x:uint8[N]=0:300", "is not a valid uint8 range"),
        ("x:int64[N]=0:1e30", "is not a valid int64 range"),
        ("x:float32[99999999999]", "too large"),
        ("x:float32[\N{SUPERSCRIPT TWO}]", "cannot read the dim"),
        ("x:float32[N]=a", "cannot read the value range"),
    ],
)
def test_what_cannot_be_read_is_named(text, message):
    with pytest.raises(InvalidRequestError, match=message):
        parse_tensor(text)


def test_a_named_dim_needs_a_range():
    with pytest.raises(InvalidRequestError, match="a dim 'H' without a range") as caught:
        require_ranges([parse_tensor("x:float32[N,H]")], parse_space(["N=1:1:1"]))
    assert "--dynamic H=" in (caught.value.hint or "")


def test_all_dims_without_a_range_are_named_at_once_and_mistyped_ones_too():
    with pytest.raises(InvalidRequestError, match=r"'N' without a range, nor have H, W$") as caught:
        require_ranges([parse_tensor("x:float32[N,3,H,W]")], parse_space([]))
    assert caught.value.hint == "add --dynamic N=MIN:OPT:MAX H=MIN:OPT:MAX W=MIN:OPT:MAX"
    with pytest.raises(InvalidRequestError, match=r"'W' without a range; no input has a dim 'V'$") as caught:
        require_ranges([parse_tensor("x:float32[N,W]")], parse_space(["N=1:1:1", "V=1:2:3"]))
    assert caught.value.hint == "call it --dynamic W=MIN:OPT:MAX"


def test_a_range_needs_a_dim():
    with pytest.raises(InvalidRequestError, match="no input has a dim called 'B'"):
        require_ranges([parse_tensor("x:float32[N]")], parse_space(["N=1:1:1 B=1:2:3"]))
