"""What a model is made for: `tensorrt==8.6`, `tensorrt==10`, `tensorrt==11`, `tensorrt-rtx`."""

from __future__ import annotations

from dataclasses import dataclass

from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.core.targets.facts import TargetFacts, read_facts

KNOWN_TARGETS = ("tensorrt==8.6", "tensorrt==10", "tensorrt==11", "tensorrt-rtx")


@dataclass(frozen=True)
class Target:
    """A TensorRT family and its version; what is known of it stands in its table."""

    family: str
    version: tuple[int, ...]

    def __str__(self) -> str:
        return self.family + ("==" + ".".join(map(str, self.version)) if self.version else "")

    @property
    def is_rtx(self) -> bool:
        """True for TensorRT-RTX."""
        return self.family == "tensorrt-rtx"

    @property
    def table(self) -> str:
        """The name of its table: `tensorrt-8.6`, `tensorrt-10`, `tensorrt-11` or `tensorrt-rtx`."""
        return "tensorrt-rtx" if self.is_rtx else f"tensorrt-{'8.6' if self.version[0] == 8 else self.version[0]}"

    @property
    def facts(self) -> TargetFacts:
        """What the table says of the target as a whole."""
        return read_facts(self.table)

    @property
    def generation(self) -> int:
        """The TensorRT major whose rules hold: 8, 10 or 11."""
        return self.facts.generation

    @property
    def max_opset(self) -> int:
        """The newest ONNX opset that graphs for the target are written in."""
        return self.facts.max_opset

    @property
    def strongly_typed(self) -> bool:
        """True where the network carries its types and no precision flag exists."""
        return self.facts.strongly_typed

    @property
    def has_plugins(self) -> bool:
        """False where the parser ends the process when it finds a plugin creator."""
        return self.facts.has_plugins


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
    # Another version is no slip of the hand.
    near = "" if family == "tensorrt" and numbers else did_you_mean(text, KNOWN_TARGETS)
    raise InvalidRequestError(f"unknown target '{text}'{near}", hint="one of " + ", ".join(KNOWN_TARGETS))
