"""What a check compares with where it is not a reference file: samples that are made while the check runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trtconv.check.compare.subjects import Subject
from trtconv.proof.reference import ReferenceSample


@dataclass(frozen=True)
class OriginalSamples:
    """`label` names it, `original` is what verdicts call it; `samples` are those for a subject, under its names."""

    label: str
    original: str
    samples: Callable[[Subject], Iterable[ReferenceSample]]
