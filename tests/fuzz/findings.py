"""What fuzzing found, kept as regression cases: `findings/TARGET-DIGEST`, the input as JSON with bytes in base64."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("findings")
FINDINGS = sorted(FOLDER.glob("*.json"))


def write_finding(target: str, value: Any, error: str) -> Path:
    """Keep an input; the file's name is the target and a digest of the input."""
    text = json.dumps({"target": target, "error": error, "value": _encode(value)}, indent=1)
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{target}-{hashlib.sha256(json.dumps(_encode(value)).encode()).hexdigest()[:12]}.json"
    path.write_text(text + "\n")
    return path


def read_finding(path: Path) -> tuple[str, Any]:
    """The target's name and the input."""
    data = json.loads(path.read_text())
    return data["target"], _decode(data["value"])


def _encode(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, tuple):
        return {"tuple": [_encode(v) for v in value]}
    if isinstance(value, dict):
        return {"dict": [[_encode(k), _encode(v)] for k, v in value.items()]}
    return [_encode(v) for v in value] if isinstance(value, list) else value


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return [_decode(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "base64" in value:
        return base64.b64decode(value["base64"])
    if "tuple" in value:
        return tuple(_decode(v) for v in value["tuple"])
    return {_decode(k): _decode(v) for k, v in value["dict"]}
