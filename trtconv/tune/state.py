"""What a search has measured, in a file that outlives it: written after each measurement, read when it goes on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trtconv.core.artifacts import read_json, write_json
from trtconv.core.errors import InvalidRequestError

SCHEMA = 1


class SearchState:
    """Measurements by candidate and part. `key` says what they hold for: the model, the data and the contract."""

    def __init__(self, path: Path, key: Mapping[str, Any]) -> None:
        self._path, self._key = path, dict(key)
        self._measured: dict[str, dict[str, Any]] = {}
        self.resumed = 0
        try:
            earlier = read_json(path, "state") if path.is_file() else {}
        except InvalidRequestError:
            earlier = {}
        if earlier.get("schema") == SCHEMA and earlier.get("key") == self._key:
            self._measured = dict(earlier["measured"])
            self.resumed = len(self._measured)

    def get(self, name: str) -> dict[str, Any] | None:
        """A measurement of this or an earlier run."""
        return self._measured.get(name)

    def put(self, name: str, measurement: Mapping[str, Any]) -> None:
        """Remember one; the file is replaced as a whole."""
        self._measured[name] = dict(measurement)
        write_json(self._path, {"schema": SCHEMA, "key": self._key, "measured": self._measured})

    def remove(self) -> None:
        """The search came to its end."""
        self._path.unlink(missing_ok=True)
