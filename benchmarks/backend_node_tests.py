"""Rewrite every node test of the ONNX project (shipped in the onnx wheel) for every target, and compare the outputs.

    python benchmarks/backend_node_tests.py [--target tensorrt==8.6 ...] [--only SUBSTRING]

For each test: rewrite the model, run it before and after in ONNX Runtime (or the reference evaluator) with the
test's own inputs. Prints how many ran and are unchanged, how many could not be run by either evaluator, how many the
target refuses (each such node is one that the target would compute wrongly or cannot say), and which rules fired.
Exits with 1 when an output changed or anything crashed.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from trtconv.backends.onnxruntime_cpu import OnnxRuntimeRunner
from trtconv.core.comparison import DEFAULT_TOLERANCE, compare_outputs, describe_failure, first_failure
from trtconv.core.errors import TrtconvError, UnsupportedError
from trtconv.core.progress import SilentProgress
from trtconv.core.targets import KNOWN_TARGETS, parse_target
from trtconv.rewrite.engine import Setting
from trtconv.rewrite.points import model_space
from trtconv.rewrite.proof import ReferenceRunner, by_type
from trtconv.rewrite.room import rewrite_graph
from trtconv.rewrite.rules import RULES

SAME, CHANGED, NOT_RUN, REFUSED, CRASHED = "unchanged", "CHANGED", "not run", "refused", "CRASHED"


def cases(only: str) -> Iterator[tuple[str, onnx.ModelProto, list[object]]]:
    """Names, models and inputs of the node tests; older onnx keeps them in folders, newer in memory."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    for test in tests:
        if only in test.name:
            model = test.model or onnx.load(str(Path(test.model_dir) / "model.onnx"))
            inputs = list(test.data_sets[0][0]) if test.data_sets else stored(Path(test.model_dir), model)
            yield test.name, model, inputs


def stored(folder: Path, model: onnx.ModelProto) -> list[object]:
    """The inputs in a test's folder; None for one that is no tensor."""
    found: list[object] = []
    for index, value in enumerate(model.graph.input):
        tensor = onnx.TensorProto()
        if value.type.HasField("tensor_type"):
            tensor.ParseFromString((folder / "test_data_set_0" / f"input_{index}.pb").read_bytes())
            found.append(numpy_helper.to_array(tensor))
        else:
            found.append(None)
    return found


def feed_of(model: onnx.ModelProto, inputs: list[object]) -> dict[str, np.ndarray] | None:
    """The inputs by name; None when one is no tensor."""
    if not all(isinstance(i, (np.ndarray, np.generic)) for i in inputs):
        return None
    return {v.name: np.asarray(i) for v, i in zip(model.graph.input, inputs, strict=False)}


def run(models: list[onnx.ModelProto], feed: dict[str, np.ndarray]) -> list[dict[str, np.ndarray] | None]:
    """Outputs of both models from one evaluator: ONNX Runtime, else the reference evaluator, else each its own."""
    found: list[list[dict[str, np.ndarray] | None]] = []
    for kind in (lambda m: OnnxRuntimeRunner(m.SerializeToString(), threads=1), ReferenceRunner):
        found.append([attempt(kind, model, feed) for model in models])
        if None not in found[-1]:
            return found[-1]
    return [found[0][i] or found[1][i] for i in range(len(models))]


def attempt(kind: object, model: onnx.ModelProto, feed: dict[str, np.ndarray]) -> dict[str, np.ndarray] | None:
    try:
        return kind(model)(feed)
    except TrtconvError:
        return None


def one(model: onnx.ModelProto, inputs: list[object], target: str) -> tuple[str, str, list[str]]:
    """Verdict, detail and the rules that fired."""
    try:
        space, specs = model_space(model)
    except TrtconvError as error:
        return NOT_RUN, error.message, []
    try:
        after, record = rewrite_graph(
            model, needed(target), Setting(parse_target(target), space, specs, True), SilentProgress()
        )
    except UnsupportedError as error:
        return REFUSED, error.message, []
    fired = [e.rule for e in record.entries]
    feed = feed_of(model, inputs)
    expected, got = (None, None) if feed is None else run([model, after], feed)
    if feed is None or expected is None or not all(isinstance(v, np.ndarray) for v in expected.values()):
        return NOT_RUN, "", fired
    if got is None:
        return CHANGED, "the rewritten model does not run", fired
    random = any(
        n.op_type in ("Bernoulli", "RandomNormalLike", "RandomUniformLike", "Multinomial") for n in model.graph.node
    )
    numeric = {k: v for k, v in expected.items() if v.dtype.kind in "fiub" and not random}
    failure = first_failure(compare_outputs("test", numeric, got, DEFAULT_TOLERANCE, by_type(numeric)))
    return (CHANGED, describe_failure(failure), fired) if failure else (SAME, "", fired)


def needed(target: str) -> tuple:
    return tuple(r for r in RULES if r.needed(parse_target(target)))


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--target", action="append")
    words.add_argument("--only", default="")
    args = words.parse_args()
    bad = 0
    everything = list(cases(args.only))
    for target in args.target or KNOWN_TARGETS:
        begun, counts, rules = time.perf_counter(), collections.Counter(), collections.Counter()
        for name, model, inputs in everything:
            try:
                verdict, detail, fired = one(model, inputs, target)
            except Exception as error:
                verdict, detail, fired = CRASHED, f"{type(error).__name__}: {error}", []
            counts[verdict] += 1
            rules.update(fired)
            if verdict in (CHANGED, CRASHED):
                bad += 1
                print(f"{verdict} {name}: {detail[:300]} {fired}")
        seconds = time.perf_counter() - begun
        shown = ", ".join(f"{counts[v]} {v}" for v in (SAME, CHANGED, CRASHED, NOT_RUN, REFUSED))
        print(f"{target}: {len(everything)} node tests: {shown}; {sum(rules.values())} rewrites in {seconds:.0f} s")
        print("   " + ", ".join(f"{n} x{c}" for n, c in rules.most_common()))
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
