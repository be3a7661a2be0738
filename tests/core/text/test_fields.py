"""Each field of a table that somebody else may have written has one type."""

import pytest

from trtconv.core.text.fields import Fields

TABLE = {
    "text": "a", "flag": True, "none": None, "whole": 3, "number": 0.5, "infinite": "inf", "texts": ["a"],
    "wholes": [1, 2], "table": {"a": "b"}, "tables": [{"a": 1}], "counts": {"a": 1},
    "settings": {"a": [1, {"b": None}]},
    "digest": "0" * 64, "lone": "\ud800", "huge": 1 << 70,
}  # fmt: skip
TAKES = {
    "text": ("text", "digest", "infinite"), "flag": ("flag",), "optional_flag": ("flag", "none"), "whole": ("whole",),
    "number": ("whole", "number", "infinite", "huge"),
    "optional_number": ("whole", "number", "infinite", "huge", "none"),
    "texts": ("texts",), "wholes": ("wholes",), "numbers": ("wholes",), "table": ("table", "counts", "settings"),
    "optional_table": ("table", "counts", "settings", "none"), "tables": ("tables",), "digest": ("digest",),
    "text_table": ("table",), "whole_table": ("counts",), "settings": ("table", "counts", "settings"),
}  # fmt: skip


@pytest.mark.parametrize("method", TAKES)
def test_one_type_and_no_other(method):
    fields = Fields(TABLE)
    for name in (*TABLE, "absent"):
        if name in TAKES[method]:
            getattr(fields, method)(name)
        else:
            with pytest.raises(ValueError, match=r"it has no 'absent'|lone|surrogates|is not|neither"):
                getattr(fields, method)(name)


@pytest.mark.parametrize("value", [None, [], "a", 1])
def test_what_is_no_table(value):
    with pytest.raises(ValueError, match="it is not a table"):
        Fields(value)


def test_what_is_not_finite_has_a_text():
    fields = Fields({"a": "inf", "b": "-inf", "c": "nan", "d": "Infinity"})
    assert (fields.number("a"), fields.number("b")) == (float("inf"), float("-inf"))
    assert fields.number("c") != fields.number("c")
    with pytest.raises(ValueError, match="'d' is not a number"):
        fields.number("d")
