"""What a search has measured, in a file that outlives it: written every few seconds and at the end, read to go on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from trtconv.core.artifacts import read_json, write_json
from trtconv.core.errors import InvalidRequestError
from trtconv.core.text.fields import Fields

SCHEMA = 1
# A file is flushed to the disk when it is replaced, which may take longer than a measurement.
SECONDS = 2.0


def _measurement(table: Fields) -> dict[str, Any]:
    value, decibels = table.number("value"), table.number("decibels")
    return {"value": value, "decibels": decibels, "folds": list(table.numbers("folds"))}


class SearchState:
    """Measurements by candidate and part. `key` says what they hold for: the model, the data and the contract."""

    def __init__(self, path: Path, key: Mapping[str, Any]) -> None:
        self._path, self._key = path, dict(key)
        self._measured: dict[str, dict[str, Any]] = {}
        self.resumed = 0
        self._written_at, self._unwritten = time.monotonic(), False
        try:
            earlier = read_json(path, "state") if path.is_file() else {}
            if earlier.get("schema") == SCHEMA and earlier.get("key") == self._key:
                measured = Fields(earlier).table("measured")
                self._measured = {name: _measurement(measured.table(name)) for name in measured.names()}
        except (InvalidRequestError, ValueError):
            # What cannot be read is measured again.
            self._measured = {}
        self.resumed = len(self._measured)

    def get(self, name: str) -> dict[str, Any] | None:
        """A measurement of this or an earlier run."""
        return self._measured.get(name)

    def put(self, name: str, measurement: Mapping[str, Any]) -> None:
        """Remember one; a killed process loses what it measured in the last seconds."""
        self._measured[name] = dict(measurement)
        self._unwritten = True
        if time.monotonic() - self._written_at > SECONDS:
            self.write()

    def write(self) -> None:
        """Replace the file as a whole."""
        if self._unwritten:
            write_json(self._path, {"schema": SCHEMA, "key": self._key, "measured": self._measured})
        self._written_at, self._unwritten = time.monotonic(), False

    def __enter__(self) -> SearchState:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.write()

    def remove(self) -> None:
        """The search came to its end."""
        self._unwritten = False
        self._path.unlink(missing_ok=True)
