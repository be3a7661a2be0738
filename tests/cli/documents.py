"""The schemas of `--json`, and a document validated by the one that it names."""

import json
from pathlib import Path
from typing import Any

import jsonschema

from trtconv.frontend.documents import SCHEMAS

ROOT = Path(__file__).parents[2]
FILES = {p.name.removesuffix(".schema.json"): p for p in SCHEMAS.glob("*.schema.json")} | {
    "check": ROOT / "trtconv" / "check" / "reporters" / "report.schema.json"
}


def validated(text: str | dict[str, Any], kind: str) -> dict[str, Any]:
    """The document, which is of this kind and as its schema says."""
    data = json.loads(text) if isinstance(text, str) else text
    assert data["kind"] == kind
    jsonschema.Draft202012Validator(json.loads(FILES[kind].read_text())).validate(data)
    return data
