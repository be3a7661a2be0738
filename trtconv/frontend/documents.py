"""What `--json` writes: one object per command, with the name and the version of its schema, and raw numbers.

`schemas/KIND.schema.json` describes each (JSON Schema 2020-12). A version rises when a key goes away or changes its
meaning; new keys alone do not raise it. Sizes are bytes, times seconds, ranges objects. JSON has no NaN and no
infinity: they are the texts `nan`, `inf` and `-inf`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trtconv.core.shape_space.space import ShapeSpace

SCHEMAS = Path(__file__).parent / "schemas"
# Those whose version is not 1.
_VERSIONS: dict[str, int] = {}


def document(kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
    """The object that is written for `data`; `kind` is the name of its schema."""
    clash = {"schema", "kind"} & set(data)
    assert not clash, clash
    return {"schema": _VERSIONS.get(kind, 1), "kind": kind, **plain(data)}


def plain(value: Any) -> Any:
    """A value as JSON has it: paths as texts, shape spaces and dataclasses as objects, non-finite numbers as texts."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, ShapeSpace):
        return {name: dataclasses.asdict(dim) for name, dim in value.dims}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v) for v in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    return str(value)
