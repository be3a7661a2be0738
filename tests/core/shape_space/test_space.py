import pytest

from trtconv.core.errors import InvalidRequestError
from trtconv.core.shape_space.space import DimRange, ShapeSpace, parse_assignment, parse_range, parse_space


def test_a_range_with_a_multiple():
    assert parse_range("320:640:1280%32") == DimRange(320, 640, 1280, 32)


def test_a_single_number_is_a_fixed_dim():
    assert parse_range("8").values() == range(8, 9, 8)
    assert 8 in parse_range("8")


def test_a_space_reads_back_as_it_prints():
    text = "N=1:4:16 H=320:640:1280%32"
    assert str(parse_space([text])) == text
    assert parse_space(["N=1:4:16", "H=320:640:1280%32"]) == parse_space([text])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("N=4:1:16", "not ordered"),
        ("N=1:4:2", "not ordered"),
        ("H=300:640:1280%32", "min 300 is not a multiple of 32"),
        ("H=320:641:1280%32", "opt 641"),
        ("H=32:64:128%0", "at least 1"),
        ("N", "cannot read the dynamic dim"),
        ("3N=1:2:3", "cannot read the dynamic dim"),
        ("N=a:b:c", "cannot read the range"),
        ("N=3:3:3%2", "min 3 and opt 3 and max 3 are not multiples of 2"),
        ("N=1:1:99999999999", "the size 99999999999 of N is too large"),
        ("N=" + 5000 * "9", "of N is too large"),
    ],
)
def test_a_wrong_range_is_named(text, message):
    with pytest.raises(InvalidRequestError, match=message):
        parse_assignment(text)


def test_a_name_given_twice_is_an_error():
    with pytest.raises(InvalidRequestError, match="given twice"):
        parse_space(["N=1:1:1 N=1:2:3"])


def test_an_unknown_name_has_a_suggestion():
    with pytest.raises(InvalidRequestError, match="Did you mean 'height'"):
        parse_space(["height=1:2:3"])["heigth"]


def test_merging_keeps_the_order_and_takes_the_other_ranges():
    merged = parse_space(["N=1:2:3 H=4:5:6"]).merged(parse_space(["H=7:8:9 W=1:1:1"]))
    assert str(merged) == "N=1:2:3 H=7:8:9 W=1:1:1"


def test_contains_judges_only_dims_that_it_names():
    space = parse_space(["H=32:64:128%32"])
    assert space.contains({"H": 96, "Z": 1})
    assert not space.contains({"H": 97})
    assert not ShapeSpace((("H", DimRange(1, 1, 2)),)).contains({"H": 3})


@pytest.mark.parametrize(
    ("asked", "beyond"),
    [
        ("N=1:1:4 H=32:64:96%32", ""),
        ("N=2:3:4", ""),
        ("N=2:3:5", "N"),
        ("N=0:1:4", "N"),
        ("N=9:9:9 H=64:64:64", "N"),
        ("H=32:64:96%16", "H"),
        ("H=48:48:48", "H"),
        ("W=1:2:3", ""),
    ],
)
def test_dims_that_leave_a_space(asked, beyond):
    proven = parse_space(["N=1:1:4", "H=32:64:96%32"])
    if not beyond:
        parse_space(asked.split()).require_within(proven)
        return
    with pytest.raises(InvalidRequestError, match=f"{beyond}=.* goes beyond {beyond}=.*, the range") as caught:
        parse_space(asked.split()).require_within(proven)
    assert f"--dynamic {beyond}=" in caught.value.hint
