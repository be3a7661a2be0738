"""`trtconv rewrite` in process, and what the judge says of the rewritten graph."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx.inliner import inline_selected_functions
from onnx.reference import ReferenceEvaluator

from tests.adversary.attack import EQUAL, NOTED, REFUSED, Feed, GraphAttack
from tests.adversary.convert import WRONG, Outcome, tells
from tests.adversary.judge import File, difference
from tests.adversary.values import INFINITE, feeds
from trtconv.core.errors import TrtconvError
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import parse_target

OTHER_DOMAINS = {"com.microsoft": 1, "ai.onnx.ml": 3}


def parse(attack: GraphAttack) -> onnx.ModelProto:
    """The model; domains besides ONNX's own are taken from the text's functions, and those that the text names."""
    others = "".join(f', "{d}" : {v}' for d, v in OTHER_DOMAINS.items() if f"{d}." in attack.text)
    header = f'<ir_version: 8, opset_import: ["" : {attack.opset}, "own" : 1{others}]>\n'
    model = onnx.parser.parse_model(header + attack.text)
    onnx.checker.check_model(model)
    return model


class Reference:
    """ONNX's own evaluator, for what ONNX Runtime lacks."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._run, self._inputs = ReferenceEvaluator(model), [i.name for i in model.graph.input]

    def __call__(self, feed: Feed) -> list[Any]:
        return list(self._run.run(None, {n: feed[n] for n in self._inputs if n in feed}))


# Judged by ONNX's own definition of them. ONNX Runtime's kernel masks by the lowest finite number: a row in which all
# that is allowed scores minus infinity attends to what is masked there, and is NaN by the definition and in torch.
BY_DEFINITION = [("", "Attention")]


def open_graph(model: onnx.ModelProto) -> Any:
    """ONNX Runtime, or the evaluator."""
    if any(("", n.op_type) in BY_DEFINITION for n in model.graph.node):
        try:
            model = inline_selected_functions(model, BY_DEFINITION, inline_schema_functions=True)
        except RuntimeError:  # its assertion where an optional input is left out in the middle
            return Reference(model)
    try:
        return File(model.SerializeToString())
    except Exception:  # an operator or a type that it lacks
        return Reference(model)


def input_texts(model: onnx.ModelProto, attack: GraphAttack) -> list[str]:
    """The inputs as the command line takes them; those with a default are values too."""
    texts = []
    for value in model.graph.input:
        kind = value.type.tensor_type
        dims = ",".join(d.dim_param or str(d.dim_value) for d in kind.shape.dim)
        bounds = attack.ranges.get(value.name)
        span = f"={bounds[0]}:{bounds[1]}" if bounds else ""
        texts.append(
            f"{value.name}:{np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)).name}[{dims}]{span}"
        )
    return texts


def run_graph(attack: GraphAttack, folder: Path) -> Outcome:
    """Rewrite for each target and judge. Anything but a TrtconvError is raised."""
    started = time.monotonic()
    model = parse(attack)
    path = folder / "model.onnx"
    onnx.save(model, path)
    before = open_graph(model)
    worst, says = EQUAL, ""
    for target in attack.targets:
        output = folder / "model.trt.onnx"
        request = RewriteRequest(path, output, parse_target(target), space=parse_space([attack.dims]), **attack.options)
        try:
            result = rewrite_model(request)
        except TrtconvError as error:
            worst, says = REFUSED, f"{target}: " + " | ".join([error.message, *error.details, f"hint: {error.hint}"])
            continue
        outcome, text = judge_graph(before, onnx.load(output), attack, result.notes)
        if outcome == WRONG:
            rules = sorted({e.rule for e in result.entries})
            return Outcome(attack.name, WRONG, f"{target}: {text} rules {rules}", time.monotonic() - started)
        worst, says = (outcome, text) if outcome != EQUAL else (worst, says)
    return Outcome(attack.name, worst, says, time.monotonic() - started)


def rewrite_model(request: RewriteRequest) -> Any:
    """The rewrite room, without its progress."""
    from trtconv.rewrite import rewrite_model as rewrite

    return rewrite(dataclasses.replace(request), SilentProgress())


def judge_graph(before: Any, model: onnx.ModelProto, attack: GraphAttack, notes: tuple[str, ...]) -> tuple[str, str]:
    """Both graphs at the judge's points."""
    texts = input_texts(parse(attack), attack)
    after = open_graph(model)
    taken = {i.name for i in model.graph.input}
    noted = ""
    points = [(f"own {i}", make()) for i, make in enumerate(attack.feeds)]
    defaults = {t.name for t in parse(attack).graph.initializer}
    points += [
        (k, f if i % 3 else {n: v for n, v in f.items() if n not in defaults})
        for i, (k, f) in enumerate(feeds(texts, attack.dims))
    ]
    for label, feed in points:
        if label.endswith(INFINITE) and not attack.infinities:
            continue
        wrong = compare_graphs(before, after, feed, taken)
        if wrong and isinstance(before, Reference) and isinstance(after, File):
            # ONNX Runtime lacks an operator of the graph before alone. Its tanh and sigmoid are approximations, off by
            # 1e-7, which is much of a small output: the two have to agree in one evaluator.
            wrong = compare_graphs(before, Reference(model), feed, taken)
        if not wrong:
            continue
        awaited = attack.says if attack.outcome == NOTED else ""
        told = (n for n in notes if tells(n, label.endswith(INFINITE), wrong) or (awaited and awaited in n))
        note = next(told, "")
        if not note:
            return WRONG, f"{label}: {wrong} | notes: {notes}"
        noted = noted or f"{label}: {wrong} | {note}"
    return (NOTED, noted) if noted else (EQUAL, "")


def compare_graphs(before: Any, after: Any, feed: Feed, taken: set[str]) -> str:
    """What is wrong at a point; empty when the graph before does not run there."""
    with np.errstate(all="ignore"):
        try:
            expected = before(feed)
        except Exception:  # the graph is undefined there
            return ""
        try:
            actual = after({n: v for n, v in feed.items() if n in taken})
        except Exception as error:  # whatever the evaluators raise
            return f"the rewritten graph raises: {str(error)[:150]}"
        results = []
        for old, new in zip(expected, actual, strict=True):
            pairs = zip(old, new, strict=True) if isinstance(old, list) else [(old, new)]
            results += [difference(np.asarray(a), np.asarray(a), np.asarray(b)) for a, b in pairs]
            if np.asarray(old).dtype != np.asarray(new).dtype and not isinstance(old, list):
                results.append(f"{np.asarray(new).dtype} for {np.asarray(old).dtype}")
    return next((f"output {i}: {d}" for i, d in enumerate(results) if d), "")
