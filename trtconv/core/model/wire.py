"""What a serialized model says without its weights, read from the bytes without parsing it.

The weights are nearly all of the bytes, and a question such as "is there a Sigmoid?" is asked of each file that is run.
"""

from __future__ import annotations

from collections.abc import Iterator

# onnx.proto: ModelProto.graph; GraphProto.initializer and sparse_initializer.
GRAPH, WEIGHTS = 7, frozenset((5, 15))
# Protocol buffers, "Encoding": what follows a field's tag.
_VARINT, _I64, _BYTES, _I32 = 0, 1, 2, 5
_FIXED = {_I64: 8, _I32: 4}


def without_weights(model: bytes) -> bytes:
    """The bytes of a serialized ModelProto but those of the initializers of its main graph.

    Bodies of nodes keep theirs. Bytes that are no ModelProto come back as they are: who parses them says what is wrong.
    """
    view = memoryview(model)
    parts: list[memoryview] = []
    try:
        for field, start, body, end in _fields(view, 0, len(view)):
            if field != GRAPH or body == start:
                parts.append(view[start:end])
                continue
            parts += [view[s:e] for f, s, _, e in _fields(view, body, end) if f not in WEIGHTS]
    except (IndexError, ValueError):
        return model
    return b"".join(parts)


def _fields(view: memoryview, at: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Number, start, start of the content, and end of each field; the content of a number starts where it does."""
    while at < end:
        start = at
        tag, at = _varint(view, at)
        kind = tag & 7
        if kind == _BYTES:
            length, body = _varint(view, at)
            at = body + length
        elif kind == _VARINT:
            body, (_, at) = start, _varint(view, at)
        elif kind in _FIXED:
            body, at = start, at + _FIXED[kind]
        else:
            raise ValueError(f"no such kind of field: {kind}")
        if at > end:
            raise ValueError("a field goes beyond its message")
        yield tag >> 3, start, body, at


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    """A number and the place behind it."""
    value = shift = 0
    while True:
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
