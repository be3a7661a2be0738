"""Attacks on the rewrite are texts: a line that begins with `>>` and says how, then a graph in ONNX's own text.

>> NAME  opset=17  dims=N=1:2:5,T=4:5:9  range=x:-9:9  feed=special  refused: WHAT THE ERROR SAYS
>> NAME  opset=17  targets=tensorrt==10,tensorrt-rtx  noted: WHAT THE NOTE SAYS
agraph (float[N,6] x) => (float[a,b] y) { y = Neg(x) }
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.adversary.attack import EQUAL, NOTED, REFUSED, Feed, GraphAttack

FOLDER = Path(__file__).with_name("graphs")


def special() -> Feed:
    """Both infinities and zeros, a denormal, and the lowest float."""
    return {"x": np.array([[np.inf, -np.inf, -0.0, 0.0, 1e-40, -3.4e38]], np.float32)}


def extreme_integers() -> Feed:
    """The ends of int32, in int64."""
    return {"x": np.array([[2**31 - 1, -(2**31), -7, 7, 0, -1]], np.int64)}


def both_scales() -> Feed:
    """An input that has a default."""
    return {"x": np.ones((2, 6), np.float32), "s": np.full(6, 3.0, np.float32)}


def tiny() -> Feed:
    """Squares underflow."""
    return {"x": np.full((2, 6), 1e-25, np.float32)}


CONVERSIONS: dict[str, Callable[[str], Any]] = {
    "opset": int,
    "dims": lambda v: v.replace(",", " "),
    "targets": lambda v: tuple(v.split(",")),
}
FEEDS = {"special": special, "extreme-integers": extreme_integers, "both-scales": both_scales, "tiny": tiny}


def read_graphs() -> Iterator[GraphAttack]:
    """All graphs, in the order of the files."""
    for path in sorted(FOLDER.rglob("*.txt")):
        for part in path.read_text().split(">> ")[1:]:
            head, _, text = part.partition("\n")
            yield _attack(path.stem, head, text.strip())


def _attack(file: str, head: str, text: str) -> GraphAttack:
    name, *words = head.strip().split("  ")
    options: dict[str, Any] = {"ranges": {}, "feeds": ()}
    for word in words:
        key, _, value = word.partition("=")
        if word.startswith(("refused: ", "noted: ")):
            outcome, _, options["says"] = word.partition(": ")
            options["outcome"] = {"refused": REFUSED, "noted": NOTED}.get(outcome, EQUAL)
        elif word == "finite":
            options["infinities"] = False
        elif key == "range":
            variable, low, high = value.rsplit(":", 2)
            options["ranges"][variable] = (float(low), float(high))
        elif key == "feed":
            options["feeds"] += (FEEDS[value],)
        else:
            options[key] = CONVERSIONS[key](value)
    return GraphAttack(name, text, file=file, **options)
