"""`trtconv convert` in process up to the file that the engine is built from, and what the judge says of it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.adversary.attack import EQUAL, NOTED, REFUSED, Feed, ModuleAttack
from tests.adversary.judge import Eager, File, compare
from tests.adversary.values import INFINITE, feeds
from trtconv.core.errors import TrtconvError
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import CheckRequest, ExportRequest, ModuleSource, RewriteRequest
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import parse_target
from trtconv.core.tensors import parse_tensor

WRONG = "WRONG"
# From here on, and from its inverse down, what a note says of far values is about a point.
FARTHEST, FAR = 1e15, "in its inputs the file differs"


@dataclass(frozen=True)
class Outcome:
    """What an attack came to, in a word and in a line."""

    name: str
    result: str
    says: str
    seconds: float


def run(attack: ModuleAttack, folder: Path, sizes: int = 6) -> Outcome:
    """Convert, then judge at the corners and at so many other sizes. Anything but a TrtconvError is raised."""
    import torch

    started = time.monotonic()
    torch.manual_seed(0)
    module = attack.make()
    torch.manual_seed(0)
    fresh = attack.make()
    try:
        path, notes = convert(module, attack, folder)
    except TrtconvError as error:
        text = " | ".join([error.message, *error.details, f"hint: {error.hint}", f"at {error.where}"])
        return Outcome(attack.name, REFUSED, text, time.monotonic() - started)
    result, says = judge(fresh, path, attack, notes, sizes)
    return Outcome(attack.name, result, says, time.monotonic() - started)


def convert(module: object, attack: ModuleAttack, folder: Path) -> tuple[Path, tuple[str, ...]]:
    """The path of the rewritten model and all notes."""
    from trtconv.check import check_model
    from trtconv.export import export_model
    from trtconv.export.live import live_module
    from trtconv.pipeline.verdict import keep_if_equal
    from trtconv.rewrite import rewrite_model

    live = live_module(module)
    source = ModuleSource(live.name, live=live, base=Path(__file__).parents[2])
    specs = tuple(parse_tensor(i) for i in attack.inputs)
    exported = export_model(
        ExportRequest(source, specs, parse_space([attack.dims]), folder / "model.onnx"), SilentProgress()
    )
    request = RewriteRequest(exported.model, folder / "model.trt.onnx", parse_target(attack.target), **attack.options)
    rewritten = rewrite_model(request, SilentProgress())
    report = check_model(CheckRequest(request.output, exported.reference, source_check=False), SilentProgress())
    keep_if_equal(report, request.output, request.output.with_suffix(".report.html"))
    findings = tuple(f.message for f in report.findings)
    return request.output, (*exported.notes, *rewritten.notes, *findings)


def judge(module: object, path: Path, attack: ModuleAttack, notes: tuple[str, ...], sizes: int = 6) -> tuple[str, str]:
    """`equal`, or `noted` and `WRONG` with the first point that differs."""
    eager, file = Eager(module), File(path)
    points = [(f"own {i}", make()) for i, make in enumerate(attack.feeds)]
    points += feeds(attack.inputs, attack.dims, attack.kinds, sizes)
    noted = ""
    with np.errstate(all="ignore"):
        for label, feed in points:
            wrong = compare(eager, file, feed)
            if not wrong:
                continue
            infinite = label.endswith(INFINITE)
            # Some notes name lines of every attack that was imported: they count where they are awaited.
            awaited = attack.says if attack.outcome == NOTED else ""
            telling = [
                n
                for n in notes
                if tells(n, infinite, wrong) or (is_far(feed) and FAR in n) or (awaited and awaited in n)
            ]
            if not telling:
                return WRONG, f"{label}: {wrong} | notes: {notes}"
            noted = noted or f"{label}: {wrong} | {' | '.join(telling)}"
    if not eager.ran:
        return WRONG, "the judge could run the module at no point"
    return (NOTED, noted) if noted else (EQUAL, "")


def is_far(feed: Feed) -> bool:
    """True for values whose squares leave the range of FP32."""
    floats = [np.abs(v) for v in feed.values() if v.dtype.kind == "f" and v.size]
    return any(v.max() > FARTHEST or 0 < v.max() < 1 / FARTHEST for v in floats)


def tells(note: str, infinite: bool, wrong: str = "") -> bool:
    """True for a note that says where the file may differ; `wrong` is how it does."""
    everywhere = "draws random numbers", "half-way between two steps"
    if infinite and not any(words in note for words in everywhere):
        return "infinity" in note
    if "(nan)" in wrong and "a NaN among its inputs" in note:
        return True
    spoken_of = (
        "the module reads values", "decides by values", "size up in a table", "draws random numbers",
        "makes a number of a size", "takes the smallest or largest of sizes", "what is written in place is a view",
        "a number of the size stands in the file", "cut to whole ones at", "FP32 has too few digits",
        "a mask comes out the same at every sample point", "comes back by a difference", "half-way between two steps",
        "for the next call", "from the values of a call",
    )  # fmt: skip
    return any(words in note for words in spoken_of)
