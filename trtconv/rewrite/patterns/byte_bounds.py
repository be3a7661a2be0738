"""The smallest and largest numbers of bytes, by ONNX's number of the type."""

from __future__ import annotations

UINT8, INT8 = 2, 3
BYTE_BOUNDS = {UINT8: (0.0, 255.0), INT8: (-128.0, 127.0)}
