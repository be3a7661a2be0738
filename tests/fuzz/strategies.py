"""What hostile inputs look like: JSON, ONNX messages, bytes and texts that were changed in a few places."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

NASTY_TEXT = (
    "", " ", "\0", "x" * 5000, "../x", "/etc/passwd", "a\nb", "\x1b[2J", "::error::x", "\u202e", "\ufffe", "nan",
    "1e400", "-1", "0", "9" * 400, "１", "²", "²:²:²", "True", "null", "{}", "%s%n", "a=b", ":", "[", "N=1:2:3",
    "\ud800",
)  # fmt: skip
NASTY_NUMBERS = (
    0, -1, 1, 2**31, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30, 0.5, -0.0, 1e308, 5e-324, float("inf"), float("-inf"),
    float("nan"),
)  # fmt: skip
NASTY_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    {"": 0},
    {"a": {}},
    *NASTY_NUMBERS,
    *NASTY_TEXT,
)
# What json.dumps does not write.
NASTY_JSON = (
    b"", b"[", b"{}", b"[]", b"null", b"1", b'"x"', b"NaN", b"9" * 5000, b"[" * 100_000, b'{"a":' * 50_000,
    b"\xff\xfe{}", b"\xef\xbb\xbf{}", b'{"a":1,"a":2}', b"\0" * 64,
)  # fmt: skip


def texts(*seeds: str) -> st.SearchStrategy[str]:
    """Seeds that were cut and put together anew, with nasty pieces in between; and texts of any characters."""
    alphabet = sorted({c for s in seeds for c in s} | set("0=:,[]%.-+ eE_*()\n\0²"))
    pieces = st.one_of(
        st.sampled_from(seeds),
        st.sampled_from(NASTY_TEXT),
        st.text(alphabet, max_size=8),
        st.builds(_slice, st.sampled_from(seeds), st.integers(0, 80), st.integers(0, 80)),
    )
    return st.one_of(st.lists(pieces, min_size=1, max_size=5).map("".join), st.text(max_size=40))


def _slice(text: str, start: int, end: int) -> str:
    return text[start:end]


@st.composite
def changed_bytes(draw: st.DrawFn, seeds: st.SearchStrategy[bytes]) -> bytes:
    """A seed with up to eight places flipped, cut out, doubled, or overwritten by a length that lies."""
    data = bytearray(draw(seeds))
    for _ in range(draw(st.integers(1, 8))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        count = draw(st.sampled_from((1, 1, 1, 2, 4, 8, 64, 1024)))
        kind = draw(st.sampled_from(("flip", "cut", "double", "fill", "end")))
        if kind == "flip" and data:
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "cut":
            del data[at : at + count]
        elif kind == "double":
            data[at:at] = data[at : at + count]
        elif kind == "fill":
            data[at : at + count] = draw(st.sampled_from((b"\xff", b"\0", b"\x7f", b"\x80"))) * min(count, 16)
        else:
            del data[at:]
    return bytes(data)


@st.composite
def changed_json(draw: st.DrawFn, seed: Any) -> Any:
    """A JSON value with one to four of its parts replaced, removed, doubled, renamed or nested."""
    value = json.loads(json.dumps(seed))
    for _ in range(draw(st.integers(1, 4))):
        value = _change(draw, value)
    return value


def _change(draw: st.DrawFn, value: Any) -> Any:
    # Down to a random depth, so that the top is changed as well.
    if isinstance(value, dict) and value and draw(st.integers(0, 5)):
        key = draw(st.sampled_from(sorted(value)))
        match draw(st.sampled_from(("inside", "inside", "inside", "inside", "remove", "rename", "add"))):
            case "inside":
                return {**value, key: _change(draw, value[key])}
            case "remove":
                return {k: v for k, v in value.items() if k != key}
            case "rename":
                return {(draw(st.sampled_from(NASTY_TEXT[:20])) if k == key else k): v for k, v in value.items()}
        return {**value, draw(st.sampled_from(("extra", "path", "__class__", "", "schema"))): value[key]}
    if isinstance(value, list) and value and draw(st.integers(0, 5)):
        at = draw(st.integers(0, len(value) - 1))
        match draw(st.sampled_from(("inside", "inside", "inside", "remove", "double", "many"))):
            case "inside":
                return [*value[:at], _change(draw, value[at]), *value[at + 1 :]]
            case "remove":
                return value[:at] + value[at + 1 :]
            case "double":
                return [*value[: at + 1], *value[at:]]
        return value * 50
    if draw(st.integers(0, 6)) == 0:
        return nested(value, draw(st.sampled_from((1, 3, 60, 500))))
    return draw(st.sampled_from(NASTY_VALUES))


def nested(value: Any, depth: int) -> Any:
    """The value inside that many lists."""
    for _ in range(depth):
        value = [value]
    return value


def json_bytes(seed: Any) -> st.SearchStrategy[bytes]:
    """A JSON file: its content changed, its bytes changed, or something else altogether."""
    plain = json.dumps(seed).encode()
    return st.one_of(
        changed_json(seed).map(lambda v: json.dumps(v).encode("utf-8", "surrogatepass")),
        changed_bytes(st.just(plain)),
        st.sampled_from(NASTY_JSON),
    )


@st.composite
def changed_message(draw: st.DrawFn, seeds: tuple[Any, ...]) -> Any:
    """A protobuf message of a seed with one to five fields anywhere inside it changed, by the types of its schema."""
    source = draw(st.sampled_from(seeds))
    message = type(source)()
    message.CopyFrom(source)
    for _ in range(draw(st.integers(1, 5))):
        part = message
        while draw(st.integers(0, 6)):
            inner = [v for f, v in part.ListFields() if f.type == f.TYPE_MESSAGE]
            choices = [m for v in inner for m in (v if hasattr(v, "__len__") else (v,))]
            if not choices:
                break
            part = draw(st.sampled_from(choices))
        _change_field(draw, part)
    return message


def _change_field(draw: st.DrawFn, part: Any) -> None:
    field = draw(st.sampled_from(list(part.DESCRIPTOR.fields)))
    repeated = field.is_repeated if hasattr(field, "is_repeated") else field.label == field.LABEL_REPEATED
    if draw(st.integers(0, 4)) == 0:
        part.ClearField(field.name)
        return
    if field.type == field.TYPE_MESSAGE:
        values = getattr(part, field.name)
        if not repeated:
            values.SetInParent()
        elif len(values):
            values.add().CopyFrom(values[draw(st.integers(0, len(values) - 1))])
        else:
            values.add()
        return
    value = _field_value(draw, field)
    try:
        if not repeated:
            setattr(part, field.name, value)
        elif len(getattr(part, field.name)) and draw(st.booleans()):
            getattr(part, field.name)[draw(st.integers(0, len(getattr(part, field.name)) - 1))] = value
        else:
            getattr(part, field.name).extend([value] * draw(st.sampled_from((1, 1, 2, 300))))
    except (ValueError, TypeError):
        return  # what protobuf itself does not take


def _field_value(draw: st.DrawFn, field: Any) -> Any:
    if field.type == field.TYPE_STRING:
        return draw(st.sampled_from((*NASTY_TEXT, "x", "y", "If", "Loop", "Einsum", "Constant", "own", "location")))
    if field.type == field.TYPE_BYTES:
        return draw(st.sampled_from((b"", b"\0", b"\xff\xfe", b"x" * 64, b"i" * 3000 + b"->" + b"." * 3000)))
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return float(draw(st.sampled_from((0.0, -1.0, 1e38, float("nan"), float("inf")))))
    if field.type == field.TYPE_ENUM:
        return draw(st.integers(-1, 40))
    return draw(st.sampled_from((0, 1, -1, 2, 3, 7, 16, 17, 30, 2**31 - 1, -(2**31), 2**40, 2**63 - 1)))
