"""Every model of the rules' own tests through the whole rule pack.

A rule's own test runs that rule alone. Together they could leave work for each other: one whose result another one
takes apart again, or that sees a pattern only after the leftovers are gone. So a second run has to change nothing, to
the byte. And the same rules have to fire when operands stand the other way round and nodes in another order; and none
may take a value for a constant that merely has the shape of one.
"""

import importlib
import pkgutil
import random
from collections import Counter
from collections.abc import Iterator

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import tests.rewrite.rules
from tests.rewrite.harness import Case, model_of, runner
from trtconv.core.errors import TrtconvError
from trtconv.core.model.bodies import bodies_of
from trtconv.core.progress import SilentProgress
from trtconv.core.targets import KNOWN_TARGETS, parse_target
from trtconv.core.tolerance import Tolerance
from trtconv.proof.allowance import allowances_without_floor
from trtconv.proof.comparison import compare_outputs, describe_failure, first_failure
from trtconv.proof.points import SamplePoint, sample_inputs
from trtconv.rewrite.engine.points import model_space
from trtconv.rewrite.engine.rounds import RewriteSetting
from trtconv.rewrite.rules import RULES
from trtconv.rewrite.whole_graph import rewrite_graph

pytestmark = pytest.mark.slow
FILES = [
    m.name for m in pkgutil.walk_packages(tests.rewrite.rules.__path__, "tests.rewrite.rules.") if ".test_" in m.name
]


def cases_in(value: object, depth: int = 2) -> Iterator[Case]:
    """The cases in a module's value: itself, or in lists and tuples."""
    if isinstance(value, Case):
        yield value
    elif isinstance(value, list | tuple) and depth:
        for item in value:
            yield from cases_in(item, depth - 1)


def models(file: str) -> Iterator[tuple[str, onnx.ModelProto]]:
    for value in vars(importlib.import_module(file)).values():
        for case in cases_in(value):
            if case.opset <= onnx.defs.onnx_opset_version():
                yield case.name, model_of(case)


def rewritten(model: onnx.ModelProto, target: str, plugins: bool) -> tuple[onnx.ModelProto, list[str]]:
    chosen = parse_target(target)
    space, specs = model_space(model)
    rules = [r for r in RULES if r.needed(chosen) and (not r.plugin or plugins) and not (plugins and r.native_of)]
    # Without proof each rule fires wherever it matches: more chances to undo each other.
    after, record = rewrite_graph(model, rules, RewriteSetting(chosen, space, specs, False), SilentProgress())
    return after, [e.rule for e in record.entries]


@pytest.mark.parametrize("file", FILES)
def test_a_second_run_changes_nothing(file):
    unstable = []
    for name, model in models(file):
        for target in KNOWN_TARGETS:
            for plugins in (False, True) if parse_target(target).has_plugins else (False,):
                try:
                    after, _ = rewritten(model, target, plugins)
                    again, fired = rewritten(after, target, plugins)
                except TrtconvError:
                    continue
                if fired or again.SerializeToString(deterministic=True) != after.SerializeToString(deterministic=True):
                    unstable.append((name, target, plugins, fired))
    assert not unstable


COMMUTATIVE = {"Add", "Mul", "Max", "Min", "And", "Or", "Xor", "Equal", "Sum", "Mean", "BitwiseAnd", "BitwiseOr"}


def used(nodes: list[onnx.NodeProto]) -> set[str]:
    """What nodes use, their bodies included."""
    names = {i for n in nodes for i in n.input}
    for body in (b for n in nodes for b in bodies_of(n)):
        names |= used(list(body.node)) | {o.name for o in body.output}
    return names


def turned(graph: onnx.GraphProto, rng: random.Random) -> None:
    """Swap the operands of commutative nodes, and put nodes and constants in another valid order, in place."""
    nodes, held = list(graph.node), list(graph.initializer)
    for node in nodes:
        if node.op_type in COMMUTATIVE and len(node.input) == 2 and rng.random() < 0.6:
            node.input[:] = [node.input[1], node.input[0]]
        for body in bodies_of(node):
            turned(body, rng)
    makers = {o: i for i, n in enumerate(nodes) for o in n.output if o}
    before = [{makers[name] for name in used([n]) if name in makers} for n in nodes]
    order: list[int] = []
    while len(order) < len(nodes):
        order.append(rng.choice([i for i in range(len(nodes)) if i not in order and before[i] <= set(order)]))
    rng.shuffle(held)
    del graph.node[:]
    del graph.initializer[:]
    graph.node.extend(nodes[i] for i in order)
    graph.initializer.extend(held)


@pytest.mark.parametrize("file", FILES)
def test_the_order_of_operands_and_nodes_says_nothing(file):
    different = []
    for name, model in models(file):
        other = onnx.ModelProto()
        other.CopyFrom(model)
        turned(other.graph, random.Random(name))
        for target in ("tensorrt==8.6", "tensorrt-rtx"):
            try:
                fired = [Counter(rewritten(m, target, False)[1]) for m in (model, other)]
            except TrtconvError:
                continue
            if fired[0] != fired[1]:
                different.append((name, target, fired))
    assert not different


@pytest.mark.parametrize("file", FILES)
def test_a_value_with_the_shape_of_a_constant_is_none(file):
    """Each float constant in turn becomes an input of the model, and gets other values than it had."""
    wrong = []
    for name, model in models(file):
        for index, tensor in enumerate(model.graph.initializer):
            array = numpy_helper.to_array(tensor)
            if array.dtype.kind != "f":
                continue
            before = onnx.ModelProto()
            before.CopyFrom(model)
            del before.graph.initializer[index]
            before.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(array.shape)))
            space, specs = model_space(before)
            feed = sample_inputs(specs, SamplePoint("opt", tuple(space.pick("opt").items())))
            feed[tensor.name] = np.asarray(np.abs(array) * 1.7 + 0.3).astype(array.dtype)
            try:
                after, fired = rewritten(before, "tensorrt-rtx", False)
                expected = runner(before)(feed) if fired else {}
            except TrtconvError:
                continue
            actual = runner(after)(feed) if fired else {}
            allowed = allowances_without_floor(expected, Tolerance(3e-3, 3e-3))
            failure = first_failure(compare_outputs("opt", expected, actual, allowed))
            if failure:
                wrong.append((name, tensor.name, fired, describe_failure(failure)))
    assert not wrong


def test_there_are_many():
    assert sum(1 for file in FILES for _ in models(file)) > 300
