"""Reports replace reports alone, and signatures signatures: `--json net.py` would lose a module, `sign -o model.onnx` a
model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.digest import SEAL
from trtconv.core.files.output_paths import is_stream
from trtconv.core.text.json_text import parse_json

_LOOKED_AT = 1 << 16
_NAMED_AT_LAST = b"<dt>trtconv</dt>"
# The first words of a report in Markdown: its verdict.
_VERDICTS = ("### ✅ `", "### ⚠️ `", "### ❌ `")


def require_report_or_nothing(path: Path, *, damaged: bool = False) -> None:
    """Raise InvalidRequestError where a regular file lies at `path` that is no report of trtconv's.

    `-`, a device and a FIFO are written into as they are. With `damaged` one in JSON that cannot be read any more may
    be replaced, too.
    """
    if str(path) == "-" or is_stream(path) or not path.is_file():
        return
    if _is_report(path) or (damaged and _is_damaged(path)):
        return
    raise InvalidRequestError(
        f"the report '{path}' would replace a file that is no report", hint="name another file, or remove that one"
    )


def require_signature_or_nothing(path: Path) -> None:
    """Raise InvalidRequestError where a regular file lies at `path` that is no signature (a bundle of Sigstore)."""
    if not path.is_file():
        return
    bundle = _json(path)
    if not isinstance(bundle, dict) or "mediaType" not in bundle:
        raise InvalidRequestError(
            f"the signature '{path}' would replace a file that is none", hint="name another file, or remove that one"
        )


def _json(path: Path) -> Any:
    """What a file of JSON holds; None for any other."""
    try:
        return parse_json(path.read_bytes())
    except ValueError:
        return None


def _is_report(path: Path) -> bool:
    with open(path, "rb") as stream:
        beginning = stream.read(_LOOKED_AT)
    text = beginning.decode(errors="replace").lstrip("\ufeff \t\r\n")
    if text.startswith("<"):
        # A drawing of the network stood before the name of what wrote it, which is the generator now.
        return "trtconv" in text or _NAMED_AT_LAST in path.read_bytes()
    if text.startswith(("{", "[")):
        return _is_json_report(path)
    return not text or text.startswith(_VERDICTS)


def _is_damaged(path: Path) -> bool:
    data = _json(path)
    return data == {} or (data is None and path.read_bytes().lstrip()[:1] == b"{")


def _is_json_report(path: Path) -> bool:
    """True for an own document, for SARIF and for a report of code quality; a manifest has a seal."""
    data = _json(path)
    if isinstance(data, list):
        return all(isinstance(item, dict) and "fingerprint" in item for item in data)
    return isinstance(data, dict) and SEAL not in data and ("$schema" in data or {"schema", "kind"} <= data.keys())
