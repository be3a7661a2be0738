"""The zip of a `.pt2`, read once and by one reader, so that torch cannot see other bytes than those that were checked.

torch reads these files with a zip reader of its own and with Python's, one for each layout. Two readers can disagree
about a hostile zip. `ProgramArchive` stands in for torch's (torch.export.pt2_archive.PT2ArchiveReader) and gives it
each JSON written anew from what was checked.
"""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import InvalidRequestError
from trtconv.export.program.schema import SchemaError, checked

if TYPE_CHECKING:
    import torch

MOST_MEMBERS = 200_000
MOST_JSON_BYTES = 1 << 29
LEGACY_PROGRAM = "serialized_exported_program.json"
_PROGRAM = "models/model.json"
_CONFIGS = ("data/weights/model_weights_config.json", "data/constants/model_constants_config.json")
_MEMBER = re.compile(
    r"models/model\.json|data/(weights|constants)/(model_(weights|constants)_config\.json|model\.pt|(weight|tensor)_\d+)|"
    r"data/sample_inputs/model\.pt|archive_format|archive_version|byteorder|version|\.data/\w+|\.format_version|"
    r"\.storage_alignment|extra/.*",
    re.ASCII,
)
_LEGACY_MEMBER = re.compile(
    r"version|extra_files/.*|serialized_(exported_program\.json|example_inputs\.pt|(state_dict|constants)\.(pt|json))"
)


class ProgramArchive:
    """The members of a `.pt2` by name, with the methods and the `archive_file` of torch's reader.

    Raises InvalidRequestError for a zip with duplicate, compressed, encrypted or unknown members, and for JSON that
    the schema or the grammar of sizes does not take.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._zip = zipfile.ZipFile(path)
        try:
            self._members = self._index()
        except BaseException:
            self._zip.close()
            raise
        self.archive_file = self

    def __enter__(self) -> ProgramArchive:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    @property
    def is_legacy(self) -> bool:
        """True for the layout of torch up to 2.7."""
        return LEGACY_PROGRAM in self._members

    def _index(self) -> dict[str, zipfile.ZipInfo]:
        entries = [i for i in self._zip.infolist() if not i.is_dir()]
        names = [i.filename for i in entries]
        if len(names) > MOST_MEMBERS or len(set(names)) != len(names):
            raise self._refusal("it holds a member twice, or too many")
        legacy = LEGACY_PROGRAM in names
        # torch's writer puts everything into one folder, its older one did not.
        root = "" if legacy or not names else names[0].partition("/")[0] + "/"
        pattern = _LEGACY_MEMBER if legacy else _MEMBER
        for entry in entries:
            name = entry.filename.removeprefix(root)
            if not entry.filename.startswith(root) or not pattern.fullmatch(name):
                raise self._refusal(
                    f"its member '{entry.filename:.120}' is not part of a program of tensors and could run code"
                )
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
                raise self._refusal(f"its member '{entry.filename:.120}' is compressed, which torch does not write")
        if sum(i.file_size for i in entries) > self._path.stat().st_size:
            raise self._refusal("its members are larger than the file")
        return {i.filename.removeprefix(root): i for i in entries}

    def _refusal(self, why: str) -> InvalidRequestError:
        return InvalidRequestError(
            f"'{self._path}' is not an exported program that can be read safely: {why}",
            hint="write it with torch.export.save(torch.export.export(...), path), without custom objects",
        )

    def get_file_names(self) -> list[str]:
        """The members that torch may load; extra files are left alone."""
        return [n for n in self._members if not n.startswith("extra")]

    def read_string(self, name: str) -> str:
        """A member as text."""
        return self.read_bytes(name).decode()

    def read_bytes(self, name: str) -> bytes:
        """A member; of JSON what was checked of it. Raises KeyError when it is absent."""
        from torch._export.serde import schema

        if name in (_PROGRAM, LEGACY_PROGRAM):
            return self._checked_json(name, schema.ExportedProgram)
        if name in _CONFIGS:
            return self._checked_json(name, schema.PayloadConfig)
        return bytes(self._read(name))

    def get_record_size(self, name: str) -> int:
        """Bytes of a member."""
        return self._members[name].file_size

    def get_storage_from_record(self, name: str, count: int, dtype: torch.dtype) -> torch.Tensor:
        """A member as a flat tensor of `count` elements."""
        import torch

        return torch.frombuffer(self._read(name), dtype=dtype, count=count)

    def _read(self, name: str) -> bytearray:
        entry = self._members[name]
        content = bytearray(entry.file_size)
        view, position = memoryview(content), 0
        with self._zip.open(entry) as opened:
            stream: Any = opened
            while position < len(content):
                count = stream.readinto(view[position:])
                if not count:
                    raise self._refusal(f"its member '{name:.120}' is cut off")
                position += count
            stream.read(1)
        return content

    def _checked_json(self, name: str, kind: type) -> bytes:
        if self.get_record_size(name) > MOST_JSON_BYTES:
            raise self._refusal(f"its member '{name}' has more than {MOST_JSON_BYTES >> 20} MiB")
        try:
            data = json.loads(self._read(name).decode(), object_pairs_hook=_without_duplicates)
            return json.dumps(checked(kind, data)).encode()
        except SchemaError as error:
            raise self._refusal(f"in '{name}' at {error.where}, {error.text!r:.160} {error.why}") from error
        except (ValueError, RecursionError) as error:
            raise self._refusal(f"'{name}' is not JSON: {str(error)[:120]}") from error


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("it holds a key twice")
    return table
