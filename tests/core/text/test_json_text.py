import pytest

from trtconv.core.text.json_text import parse_json


@pytest.mark.parametrize(
    "text",
    ["", "[", "NaN", "[Infinity]", '{"a": -Infinity}', "1e400", "-1e999", "9" * 101, "9" * 5000, "[" * 100_000,
     '{"a":' * 50_000, b"\xff"],
    ids=lambda t: repr(t[:8]),
)  # fmt: skip
def test_what_is_refused_is_a_value_error(text):
    with pytest.raises(ValueError):
        parse_json(text)


def test_what_is_read_becomes_any_number():
    value = parse_json('{"a": [1, -2.5, 1e308, 123456789012345678901234567890, true, null, "x"]}')
    assert value == {"a": [1, -2.5, 1e308, 123456789012345678901234567890, True, None, "x"]}
    assert [float(v) for v in value["a"][:4]]
    assert int(value["a"][2]) > 10**300
