"""Rewrite every node test of the ONNX project (shipped in the onnx wheel) for every target, and compare the outputs.

    python -m benchmarks rewrite.backend_node_tests [--target tensorrt==8.6 ...] [--only SUBSTRING] [--json FILE]

For each test: rewrite the model with every proof, rewrite the result again (which has to change nothing, to the
byte), run before and after in ONNX Runtime (or the reference evaluator) with all of the test's own inputs. Counts

    unchanged   ran before and after, every output equal within the default tolerance, strings exactly
    CHANGED     ran, and an output differs; or runs no more
    CRASHED     anything raised that is no refusal
    UNSTABLE    a second rewrite changed something
    refused     the target would compute the node wrongly or cannot say it; the message names the node
    not taken   sequences, strings or types under 16 bits at the border: `trtconv rewrite` refuses the file and says so
    random      the model draws random numbers, so that only names, types and shapes were compared
    not run     neither evaluator runs the model as it is

and which rules fired. Exits with 1 when an output changed, a second run did, or anything crashed.
"""

from __future__ import annotations

import argparse
import collections
import os
import platform
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from benchmarks.record import write_result
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.onnxruntime.graph_runner import ReferenceRunner
from trtconv.core.errors import TrtconvError, UnsupportedError
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import KNOWN_TARGETS, parse_target
from trtconv.proof.comparison import compare_outputs, describe_failure, first_failure
from trtconv.rewrite.engine.points import model_space
from trtconv.rewrite.engine.rounds import RewriteSetting
from trtconv.rewrite.room import rewrite_graph, select_rules
from trtconv.rewrite.rules import RULES

SAME, CHANGED, CRASHED, UNSTABLE = "unchanged", "CHANGED", "CRASHED", "UNSTABLE"
REFUSED, NOT_TAKEN, RANDOM, NOT_RUN = "refused", "not taken", "random", "not run"
VERDICTS = (SAME, CHANGED, CRASHED, UNSTABLE, REFUSED, NOT_TAKEN, RANDOM, NOT_RUN)
BAD = (CHANGED, CRASHED, UNSTABLE)
RANDOM_OPS = {"Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial"}
Arrays = dict[str, np.ndarray]


def cases(only: str) -> Iterator[tuple[str, onnx.ModelProto, list[list[object]]]]:
    """Names, models and all sets of inputs of the node tests; older onnx keeps them in folders, newer in memory."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    for test in tests:
        if only in test.name:
            model = test.model or onnx.load(str(Path(test.model_dir) / "model.onnx"))
            held = [[array_of(i) for i in s[0]] for s in test.data_sets or ()]
            sets = held or stored(Path(test.model_dir), model)
            yield test.name, model, sets


def array_of(value: object) -> object:
    """Some tests hold tensors as messages, since NumPy lacks their type."""
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


def stored(folder: Path, model: onnx.ModelProto) -> list[list[object]]:
    """The inputs in a test's folders; None for one that is no tensor."""
    sets = []
    for data_set in sorted(folder.glob("test_data_set_*")):
        rows: list[object] = []
        for index, value in enumerate(model.graph.input):
            tensor = onnx.TensorProto()
            if value.type.HasField("tensor_type"):
                tensor.ParseFromString((data_set / f"input_{index}.pb").read_bytes())
                rows.append(numpy_helper.to_array(tensor))
            else:
                rows.append(None)
        sets.append(rows)
    return sets


def one(model: onnx.ModelProto, sets: list[list[object]], target: str) -> tuple[str, str, list[str]]:
    """Verdict, detail and the rules that fired."""
    try:
        space, specs = model_space(model)
    except TrtconvError as error:
        return NOT_TAKEN, error.message, []
    setting = RewriteSetting(parse_target(target), space, specs, True)
    try:
        after, record = rewrite_graph(model, needed(target), setting, SilentProgress())
    except UnsupportedError as error:
        return REFUSED, error.message, []
    fired = [e.rule for e in record.entries]
    again, second = rewrite_graph(after, needed(target), setting, SilentProgress())
    if second.entries or again.SerializeToString(deterministic=True) != after.SerializeToString(deterministic=True):
        return UNSTABLE, f"a second run fires {[e.rule for e in second.entries]}", fired
    for inputs in sets:
        if not all(isinstance(i, (np.ndarray, np.generic)) for i in inputs):
            return NOT_RUN, "an input is no tensor", fired
        feed = {v.name: np.asarray(i) for v, i in zip(model.graph.input, inputs, strict=False)}
        expected, actual, problem = run(model, after, feed)
        if expected is None:
            return NOT_RUN, problem, fired
        if actual is None:
            return CHANGED, f"the rewritten model does not run: {problem}", fired
        difference = differs(expected, actual, drawn=any(n.op_type in RANDOM_OPS for n in nodes_of(model)))
        if difference:
            return CHANGED, difference, fired
    return (RANDOM if any(n.op_type in RANDOM_OPS for n in nodes_of(model)) else SAME), "", fired


def nodes_of(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The nodes of the main graph and of the functions that the tests of composed operators carry."""
    return [*model.graph.node, *(n for f in model.functions for n in f.node)]


def run(before: onnx.ModelProto, after: onnx.ModelProto, feed: Arrays) -> tuple[Arrays | None, Arrays | None, str]:
    """Outputs of both from one evaluator: ONNX Runtime, else the reference evaluator, else each from what runs it."""
    rows: list[list[Arrays | None]] = []
    problem = ""
    for kind in (lambda m: OnnxRuntimeRunner(m.SerializeToString(), threads=1), ReferenceRunner):
        row: list[Arrays | None] = []
        for model in (before, after):
            try:
                row.append(kind(model)(feed))
            except TrtconvError as error:
                row.append(None)
                problem = error.message
        if None not in row:
            return row[0], row[1], ""
        rows.append(row)
    return rows[0][0] or rows[1][0], rows[0][1] or rows[1][1], problem


def differs(expected: Arrays, actual: Arrays, drawn: bool) -> str:
    """What differs between the outputs, in words; of random numbers only names, types and shapes count."""
    if list(expected) != list(actual):
        return f"outputs {list(actual)}, before {list(expected)}"
    for name, want in expected.items():
        have = actual[name]
        if not isinstance(want, np.ndarray):
            if repr(want) != repr(have):
                return f"output '{name}' is another sequence"
            continue
        if (want.dtype, want.shape) != (have.dtype, have.shape):
            return f"output '{name}' is {have.dtype}{list(have.shape)}, before {want.dtype}{list(want.shape)}"
        if drawn:
            continue
        if want.dtype.kind in "OUS":
            if not np.array_equal(want, have):
                return f"output '{name}' has other strings"
        elif want.dtype.kind == "c":
            if not np.allclose(want, have, rtol=1e-4, atol=1e-4, equal_nan=True):
                return f"output '{name}' has other complex values"
        else:
            results = compare_outputs("test", {name: want}, {name: have})
            failure = first_failure(results)
            if failure:
                return describe_failure(failure)
    return ""


def needed(target: str) -> tuple:
    """The rules as `trtconv rewrite --target ...` chooses them."""
    return select_rules(RULES, RewriteRequest(Path("m.onnx"), Path("m.trt.onnx"), parse_target(target)))


def facts() -> dict[str, object]:
    """What a reader has to know to judge the counts."""
    from importlib.metadata import version

    return {
        "date": time.strftime("%Y-%m-%d"),
        "command": "python -m benchmarks rewrite.backend_node_tests " + " ".join(sys.argv[1:]),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("onnx", "onnxruntime", "numpy")},
        "cpus": os.cpu_count(),
    }


def judge(everything: list[tuple[str, onnx.ModelProto, list[list[object]]]], target: str) -> dict[str, object]:
    """Every test for one target: counts, rules, and the names of those that are not plainly unchanged."""
    begun, rules = time.perf_counter(), collections.Counter()
    rows: dict[str, dict[str, str]] = {verdict: {} for verdict in VERDICTS}
    for name, model, sets in everything:
        try:
            verdict, detail, fired = one(model, sets, target)
        except Exception as error:
            verdict, detail, fired = CRASHED, f"{type(error).__name__}: {error}", []
        rows[verdict][name] = detail[:200]
        rules.update(fired)
        if verdict in BAD:
            print(f"{verdict} {name}: {detail[:300]} {fired}", flush=True)
    counts = {verdict: len(names) for verdict, names in rows.items()}
    text = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    print(f"{target}: {len(everything)} node tests: {text}; {sum(rules.values())} rewrites", flush=True)
    print("   " + ", ".join(f"{n} x{c}" for n, c in rules.most_common()))
    seconds = round(time.perf_counter() - begun, 1)
    rest = {verdict: names for verdict, names in rows.items() if verdict != SAME and names}
    return {"tests": len(everything), "counts": counts, "seconds": seconds, "rules": dict(rules.most_common()), **rest}


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--target", action="append")
    words.add_argument("--only", default="")
    words.add_argument("--json", type=Path)
    args = words.parse_args()
    everything = list(cases(args.only))
    result: dict[str, object] = {}
    for target in args.target or KNOWN_TARGETS:
        result[target] = judge(everything, target)
    if args.json:
        write_result(args.json, {**facts(), "targets": result})
    return int(any(target["counts"][verdict] for target in result.values() for verdict in BAD))


if __name__ == "__main__":
    sys.exit(main())
