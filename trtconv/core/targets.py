"""What a model is made for: `tensorrt==8.6`, `tensorrt==10`, `tensorrt==11`, `tensorrt-rtx`."""

from __future__ import annotations

from dataclasses import dataclass

from trtconv.core.errors import InvalidRequestError, did_you_mean

KNOWN_TARGETS = ("tensorrt==8.6", "tensorrt==10", "tensorrt==11", "tensorrt-rtx")


@dataclass(frozen=True)
class Target:
    """A TensorRT family and its version. RTX 1.5 and later have TensorRT 11's semantics, which `generation` says.

    `generation` is the TensorRT major whose rules hold (8, 10 or 11); `max_opset` is the newest ONNX opset that the
    parser takes without dropping semantics (8.6: 17, see the release notes of onnx-tensorrt 8.6).
    """

    family: str
    version: tuple[int, ...]

    def __str__(self) -> str:
        return self.family + ("==" + ".".join(map(str, self.version)) if self.version else "")

    @property
    def is_rtx(self) -> bool:
        """True for TensorRT-RTX."""
        return self.family == "tensorrt-rtx"

    @property
    def generation(self) -> int:
        """8, 10 or 11."""
        return 11 if self.is_rtx else self.version[0]

    @property
    def max_opset(self) -> int:
        """17 for 8.6; 22 for others (fp32 Attention of opset 23 has no kernel there, measured on RTX 1.7)."""
        return 17 if self.generation == 8 else 22

    @property
    def strongly_typed(self) -> bool:
        """True where the network carries its types and no precision flag exists."""
        return self.generation >= 11

    @property
    def has_plugins(self) -> bool:
        """RTX has no plugins; its parser aborts the process when it finds a plugin creator."""
        return not self.is_rtx


def parse_target(text: str) -> Target:
    """Parse a target. Raises InvalidRequestError for an unknown family or a version that trtconv does not know."""
    family, _, version = text.strip().partition("==")
    try:
        numbers = tuple(int(p) for p in version.split(".")) if version else ()
    except ValueError:
        numbers = (-1,)
    if family == "tensorrt-rtx" and (not numbers or numbers[0] == 1):
        return Target(family, numbers)
    if family == "tensorrt" and not numbers:
        return Target(family, (11,))
    if family == "tensorrt" and (numbers[:2] == (8, 6) or numbers[0] in (10, 11)):
        return Target(family, numbers)
    raise InvalidRequestError(
        f"unknown target '{text}'{did_you_mean(text, KNOWN_TARGETS)}", hint="one of " + ", ".join(KNOWN_TARGETS)
    )
