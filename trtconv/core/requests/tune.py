"""What `trtconv tune` asks for besides what a conversion asks for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.core.option import option
from trtconv.core.precision import FP16, HALF_NAMES, INT8, QUANTISED_NAMES

LOW_NAMES = (*HALF_NAMES, *sorted(QUANTISED_NAMES, reverse=True))


def parse_precisions(text: str) -> tuple[str, ...]:
    """Parse `fp16,int8`. Raises InvalidRequestError for a name that is not a low precision."""
    names = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    for name in names:
        if name not in LOW_NAMES:
            raise InvalidRequestError(
                f"'{name}' is not a precision to search in{did_you_mean(name, LOW_NAMES)}",
                hint="one or more of " + ",".join(LOW_NAMES),
            )
    if not names:
        raise InvalidRequestError("no precision to search in is given", hint="write --precisions fp16,int8")
    return names


def _seen_from(text: Any, base: Path) -> Any:
    """A metric that is a function of a file is seen from the config's folder."""
    return str(base / text) if text and ":" in text else text


_config_precisions: Callable[[Any, Path], Any] = lambda names, base: parse_precisions(",".join(names))  # noqa: E731


@dataclass(frozen=True)
class ContractRequest:
    """The contract, what may compute in which precision, and how long to search (`minutes`; None: to the end)."""

    metric: str = field(
        default="top1",
        metadata=option(
            "--metric",
            help="What is judged: top1, map, miou, psnr or a function (default top1).",
            group="Check",
            example="--metric top1",
            metavar="NAME|FILE.py:FUNCTION",
            key="contract.metric",
            parse_config=_seen_from,
        ),
    )
    max_drop: str = field(
        default="0.5%",
        metadata=option(
            "--max-drop",
            help="How far it may drop below fp32 (default 0.5%).",
            group="Check",
            example="--max-drop 0.5%",
            metavar="0.5%|NUMBER",
            key="contract.max_drop",
        ),
    )
    precisions: tuple[str, ...] = field(
        default=(FP16.name, INT8.name),
        metadata=option(
            "--precisions",
            help="What to search in (default fp16,int8).",
            group="Build",
            example="--precisions fp16,int8",
            metavar=",".join(LOW_NAMES),
            key="contract.precisions",
            parse=parse_precisions,
            parse_config=_config_precisions,
        ),
    )
    minutes: float | None = field(
        default=None,
        metadata=option(
            "--minutes",
            help="Stop searching after so long; a later run goes on.",
            group="Build",
            example="--minutes 30",
            form="number",
            bounds=(0.0, 1e6),
            key="contract.minutes",
        ),
    )
    restart: bool = field(
        default=False,
        metadata=option("--restart", help="Forget what an interrupted run measured.", group="Output", form="flag"),
    )
