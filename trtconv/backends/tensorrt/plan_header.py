"""The first bytes of an engine, readable without TensorRT: which library and which version wrote it.

TensorRT 8.6 and later begin a plan with the 32-bit tag 'ftrt', TensorRT-RTX with 'vtrt'; bytes 24 to 27 are major,
minor, patch and build (printed so by NVIDIA's own sample, samples/common/sampleEngines.cpp of TensorRT 11.1; for
TensorRT-RTX measured on 1.7.1.116). Bytes 16 to 23 held the plan's size in every plan that was looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trtconv.core.artifacts import require_file
from trtconv.core.errors import InvalidRequestError

HEADER_BYTES = 64
_FAMILIES = {b"ftrt": "tensorrt", b"vtrt": "tensorrt-rtx"}


@dataclass(frozen=True)
class PlanHeader:
    """Family (`tensorrt` or `tensorrt-rtx`) and version of the library that wrote a plan."""

    family: str
    version: tuple[int, int, int, int]

    @property
    def version_text(self) -> str:
        """`8.6.0` or `1.7.1.116`; TensorRT's own build number is kept where it is not zero."""
        numbers = self.version if self.version[3] else self.version[:3]
        return ".".join(map(str, numbers))

    def __str__(self) -> str:
        return f"{self.family} {self.version_text}"


def parse_plan_header(data: bytes) -> PlanHeader | None:
    """The header of a plan's first bytes, or None when they are no plan."""
    family = _FAMILIES.get(data[:4][::-1]) or _FAMILIES.get(data[:4])
    if family is None or len(data) < HEADER_BYTES:
        return None
    major, minor, patch, build = data[24:28]
    return PlanHeader(family, (major, minor, patch, build))


def read_plan_header(path: Path) -> PlanHeader:
    """Read the header of an engine file. Raises InvalidRequestError when it is not an engine."""
    require_file(path, "engine")
    with open(path, "rb") as stream:
        data = stream.read(HEADER_BYTES)
    return plan_header(path, data)


def plan_header(path: Path, data: bytes) -> PlanHeader:
    """The header of an engine file, from its first bytes or all. Raises InvalidRequestError if it is not an engine."""
    header = parse_plan_header(data)
    if header is None:
        size = len(data)
        begun = {data[:4], data[:4][::-1]} & set(_FAMILIES)
        kind = "is empty" if size == 0 else "is cut off" if begun else "is not a TensorRT engine"
        raise InvalidRequestError(f"'{path}' {kind}", hint="build it again with `trtconv build`")
    return header
