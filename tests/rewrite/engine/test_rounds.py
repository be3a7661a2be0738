"""The engine around the rules: rounds, rejections, shared proofs, leftovers, and the same bytes in every process."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from tests.core.ledger.ledgers import make_ledger
from tests.rewrite.harness import Case, apply, model_of
from trtconv.core.errors import TrtconvError, UnsupportedError
from trtconv.core.ledger.writing import ledger_data
from trtconv.core.progress import SilentProgress
from trtconv.core.targets import KNOWN_TARGETS, parse_target
from trtconv.core.tolerance import Tolerance
from trtconv.proof.sizes import shape_points
from trtconv.rewrite.engine.explain import explain_lines
from trtconv.rewrite.engine.points import model_space
from trtconv.rewrite.engine.result import RewriteResult
from trtconv.rewrite.engine.rounds import RewriteRecord, RewriteSetting, apply_rules
from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.engine.whole import InitialGraph
from trtconv.rewrite.graph.concrete import ConcreteShapes, NamedShapes
from trtconv.rewrite.graph.facts import inferred
from trtconv.rewrite.rules import RULES
from trtconv.rewrite.whole_graph import rewrite_graph

ROOT = Path(__file__).parents[3]


class Heard(SilentProgress):
    """Keeps the warnings."""

    def __init__(self):
        super().__init__()
        self.warnings = []

    def warn(self, text):
        self.warnings.append(text)


def norms(count):
    """That many norms in a row, each of the result of the one before."""
    body, value = [], "x"
    for i in range(count):
        body.append(f"s{i} = ReduceL2<axes=[1]>({value}) a{i} = Add(s{i}, eps) v{i} = Div({value}, a{i})")
        value = f"v{i}"
    return model_of(Case("norms", " ".join(body) + f" y = Identity({value})", constants="float eps = {0.5}"))


def run(model, *rules, proof=True, target="tensorrt-rtx"):
    space, specs = model_space(model)
    record, heard = RewriteRecord(), Heard()
    apply_rules(model, rules, RewriteSetting(parse_target(target), space, specs, proof), heard, record)
    return record, heard


def packed(model, target="tensorrt-rtx", proof=True):
    space, specs = model_space(model)
    setting = RewriteSetting(parse_target(target), space, specs, proof)
    rules = [r for r in RULES if r.needed(parse_target(target)) and not r.plugin]
    return rewrite_graph(model, rules, setting, SilentProgress())


def renaming(name, old, new, **options):
    """A rule that puts one op type for another."""

    def find(graph, node):
        return Found((node,), lambda g: g.op(new, *node.inputs))

    return Rule(name, "For the test.", (old,), find, **options)


def test_blocks_in_a_row_are_all_rewritten_without_a_warning():
    model = norms(40)
    rule = next(r for r in RULES if r.name == "l2norm")
    record, heard = run(model, rule)
    assert len(record.entries) == 40
    assert not heard.warnings
    assert not run(model, rule)[0].entries


def test_rules_that_undo_each_other_are_stopped_and_named():
    model = model_of(Case("r", "a = Relu(x) y = Neg(a)"))
    record, heard = run(model, renaming("there", "Relu", "Abs"), renaming("back", "Abs", "Relu"), proof=False)
    assert record.entries
    assert len(heard.warnings) == 1
    assert "there" in heard.warnings[0]
    assert "back" in heard.warnings[0]


def test_a_rule_that_feeds_itself_is_stopped_before_the_graph_is_huge():
    def find(graph, node):
        return Found((node,), lambda g: g.op("Relu", g.op("Relu", node.inputs[0])))

    model = model_of(Case("r", "y = Relu(x)"))
    _, heard = run(model, Rule("twice", "For the test.", ("Relu",), find), proof=False)
    assert heard.warnings
    assert len(model.graph.node) < 10_000


def test_a_rewrite_that_was_rejected_is_tried_again_when_the_graph_says_more():
    """In the first round the type of the value is not known; the second rule makes it known."""

    def eager(graph, node):
        return Found((node,), lambda g: g.op("Max", node.inputs[0], g.scalar(0.0, dtype=1)))

    def telling(graph, node):
        return Found((node,), lambda g: g.op("Neg", node.inputs[0]))

    model = model_of(Case("unknown", "a = local.F(x) y = Relu(a)", functions=LOCAL))
    del model.functions[:]
    model.functions.extend([])
    first = Rule("eager", "For the test.", ("Relu",), eager)
    second = Rule("telling", "For the test.", ("local::F",), telling, unproved="nothing runs it")
    record, _ = run(model, first, second)
    assert [e.rule for e in record.entries] == ["telling", "eager"]
    assert not record.rejected
    alone, _ = run(model_without_function(), first)
    assert [r.rule for r in alone.rejected] == ["eager"]


LOCAL = '<domain: "local", opset_import: ["" : 17]> F (x) => (y) { y = Neg(x) }'


def model_without_function():
    model = model_of(Case("unknown", "a = local.F(x) y = Relu(a)", functions=LOCAL))
    del model.functions[:]
    return model


def test_a_rule_that_returns_too_few_values_is_named():
    def find(graph, node):
        return Found((node,), lambda g: g.op("Slice", node.inputs[0], g.ints(0), g.ints(4), g.ints(1)))

    model = model_of(Case("s", "a, c = Split<axis=1>(x) y = Add(a, c)"))
    with pytest.raises(TrtconvError, match=r"the rule 'half' fails at Split .*1 values for 2 outputs"):
        run(model, Rule("half", "For the test.", ("Split",), find))


@pytest.mark.parametrize("answer", [None, 3, ()])
def test_a_rule_that_returns_something_else_is_named(answer):
    model = model_of(Case("r", "y = Relu(x)"))
    with pytest.raises(TrtconvError, match=r"the rule 'odd' fails at Relu .*not Found, Skip or NOT_THIS"):
        run(model, Rule("odd", "For the test.", ("Relu",), lambda _graph, _node: answer))


def test_a_rewrite_that_changes_the_element_type_is_rejected():
    def find(graph, node):
        return Found((node,), lambda g: g.cast(g.op("Relu", node.inputs[0]), onnx.TensorProto.DOUBLE))

    model = model_of(Case("r", "a = Relu(x) y = Cast<to=1>(a)"))
    original_bytes = model.SerializeToString()
    record, _ = run(model, Rule("wide", "For the test.", ("Relu",), find))
    assert "has dtype float64, in the graph it is float" in record.rejected[0].reason
    assert model.SerializeToString() == original_bytes


def test_equal_blocks_share_a_proof_and_say_so():
    case = Case(
        "blocks",
        """s = ReduceL2<axes=[1]>(x) a = Add(s, eps) v = Div(x, a) r = Relu(v)
           t = ReduceL2<axes=[1]>(r) b = Add(t, eps) w = Div(r, b)
           u = ReduceL2<axes=[1]>(w) c = Add(u, other) y = Div(w, c)""",
        constants="float eps = {0.5}, float other = {0.25}",
    )
    record, _ = run(model_of(case), next(r for r in RULES if r.name == "l2norm"))
    assert [e.node for e in record.entries] == ["v", "w", "y"]
    assert [e.shared_with for e in record.entries] == ["", "v", ""]
    first, second, third = (e.proof for e in record.entries)
    assert first is second
    assert third is not first, "another epsilon is another part"
    result = RewriteResult(Path("m"), Path("l"), tuple(record.entries), (), (), 0.0)
    data = ledger_data(make_ledger(*record.entries))
    assert [e["proof_shared_with"] for e in data["entries"]] == ["", "v", ""]
    assert [data["proofs"][e["proof"]]["node"] for e in data["entries"]] == ["v", "v", "y"]
    assert sum("the same part as at v, proved there" in line for line in explain_lines(result)) == 1
    assert first.passed
    assert third.passed


def test_bfloat16_parts_are_proved():
    model = model_of(
        Case("bf16", "a = Identity(x) y = Relu(a)", inputs="bfloat16[N,8,H,W] x", outputs="bfloat16[a,b,c,d] y")
    )
    record, _ = run(model, next(r for r in RULES if r.name == "drop-identity"))
    assert [e.proof.passed for e in record.entries] == [True]


def test_what_onnx_runtime_takes_but_cannot_run_is_proved_in_the_reference_evaluator():
    """Its Resize has no antialiased cubic over the batch, which it says when it runs."""
    case = Case(
        "antialias",
        'h = Shape(x) s = Div(h, parts) a = Resize<mode="cubic", antialias=1>(x, , , s) b = Identity(a) y = Relu(b)',
        inputs="float[2,2,8,8] x",
        constants="int64[4] parts = {2, 1, 2, 1}",
        opset=18,
    )

    def find(graph, node):
        resize = graph.maker(node.inputs[0], "Resize")
        if resize is None:
            return Skip()
        return Found((resize, node), lambda g: g.op("Resize", *resize.inputs, mode="cubic", antialias=1))

    record, _ = run(model_of(case), Rule("mine", "For the test.", ("Identity",), find))
    assert [(e.proof.passed, e.proof.runner) for e in record.entries] == [(True, "onnx.reference")]


def test_a_proof_is_not_shared_with_a_stricter_rule():
    """Both rules make the same part; what passes the loose tolerance must not pass for the strict one."""

    def find(graph, node):
        return Found((node,), lambda g: g.op("Mul", node.inputs[0], g.scalar(1.001, dtype=1)))

    loose = Rule("loose", "For the test.", ("Identity",), find, tolerance=Tolerance(1e-2, 1e-2))
    strict = Rule("strict", "For the test.", ("Identity",), find)
    model = model_of(Case("i", "a = Identity(x) b = Relu(a) c = Identity(b) y = Relu(c)"))

    def only(name, rule):
        return Rule(
            rule.name,
            rule.why,
            rule.ops,
            lambda g, n: rule.find(g, n) if n.name == name else Skip(),
            tolerance=rule.tolerance,
        )

    record, _ = run(model, only("a", loose), only("c", strict))
    assert [e.rule for e in record.entries] == ["loose"]
    assert [r.rule for r in record.rejected] == ["strict"]


def test_leftovers_that_hide_a_pattern_do_not_leave_work_for_a_second_run():
    """A dead node in a body keeps one outside alive, which is the second user of what a rule wants to be alone with."""
    model = model_of(
        Case(
            "if",
            """d = Neg(x) h = Shape(x) g = Gather(h, zero) p = Greater(g, two) q = Squeeze(p)
               y = If(q) <then_branch = t () => (float[a,b,c,e] i) { k = Abs(d) i = Relu(x) },
                          else_branch = f () => (float[a,b,c,e] j) { j = Sigmoid(x) }>""",
            constants="int64[1] zero = {0}, int64[1] two = {2}",
        )
    )
    after, _ = packed(model)
    assert "Neg" not in {n.op_type for n in after.graph.node}
    again, second = packed(after)
    assert again.SerializeToString(deterministic=True) == after.SerializeToString(deterministic=True)
    assert not second.notes


def test_a_graph_that_draws_random_numbers_is_rewritten_all_the_same():
    model = model_of(Case("random", "r = RandomNormalLike(x) s = Add(x, r) t = Pow(s, two) y = Identity(t)",
                          constants="float two = {2.0}"))  # fmt: skip
    space, specs = model_space(model)
    with InitialGraph(model, space, specs) as before:
        proof = before.compare(model)
    assert proof.passed is None
    assert "random numbers" in proof.note


@pytest.mark.parametrize(
    ("body", "opset"),
    [
        ("y = Relu(x)", 17),
        ("a = Transpose<perm=[0,2,3,1]>(x) y = ReduceMax<axes=[1], keepdims=0>(a)", 17),
        ("a = Concat<axis=1>(x, x) b, y = Split<axis=1>(a) ", 17),
        ("h = Shape(x) y = Reshape(x, h)", 17),
        ("a = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x) y = Relu(a)", 17),
    ],
)
def test_shapes_by_name_are_those_that_inference_finds_at_the_sizes(body, opset):
    model = model_of(Case("shapes", body, opset=opset, inputs="float[N,8,H,W] x"))
    space, specs = model_space(model)
    names = inferred(model)
    named = NamedShapes(names, specs)
    count = 0
    for point in shape_points(space, specs):
        concrete = ConcreteShapes(names.light, specs, point.sizes)
        for node in model.graph.node:
            for name in node.output:
                shape = named.shape(name, point.sizes)
                count += shape is not None
                assert shape in (None, concrete.shape(name))
    assert count or "MaxPool" in body


def test_names_of_dims_that_the_specs_call_otherwise():
    """The recorded inputs name a dim that the graph leaves open."""
    model = model_of(Case("open", "y = Relu(x)", inputs="float[?,8,?,W] x"))
    space, specs = model_space(model)
    named = NamedShapes(inferred(model), specs)
    sizes = space.pick("opt")
    assert named.shape("y", sizes) == specs[0].shape(sizes)


PROGRAM = """
import hashlib
from tests.rewrite.engine.test_rounds import all_bytes
print(hashlib.sha256(all_bytes()).hexdigest())
"""


def all_bytes():
    """Models and ledgers of random graphs for every target, as one row of bytes."""
    from tests.rewrite.random_model import random_model

    parts = []
    for seed in range(5):
        for target in KNOWN_TARGETS:
            try:
                after, record = packed(random_model(seed), target)
            except UnsupportedError as error:
                parts.append(error.message.encode())
                continue
            parts.append(after.SerializeToString(deterministic=True))
            parts += [repr(entry).encode() for entry in record.entries]
    return b"".join(parts)


def test_the_same_bytes_in_every_process():
    digests = {hashlib.sha256(all_bytes()).hexdigest()}
    for seed in ("1", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        process = subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=environment, cwd=ROOT, check=True
        )
        digests.add(process.stdout.split()[-1])
    assert len(digests) == 1


def test_apply_of_the_harness_is_the_engine():
    """The harness proves rules with the engine that users get."""
    assert not apply(model_of(Case("r", "y = Relu(x)")), (), "tensorrt-rtx").entries


LOOP = """t = Constant<value = int64 {3}>() k = Constant<value = bool {1}>()
  z = Loop(t, k, x) <body = turn (int64 i, bool c, float[p,q,r,s] state) => (bool d, float[p,q,r,s] next) {
        d = Identity(c)
        n = ReduceL2<axes=[1]>(state) e = Max(n, eps) u = Div(state, e) next = Conv(u, w) }>
  f = Identity(z) y = Relu(f)"""


SCAN = """z, a = Scan<num_scan_inputs=1, scan_input_axes=[1],
    body = turn (float[p,q,r] state, float[p,q,r] slice) => (float[p,q,r] next, float[p,q,r] out) {
        n = ReduceL2<axes=[1]>(slice) e = Max(n, eps) u = Div(slice, e) next = Add(state, u) out = Tanh(u) }>(s, x)
  y = Relu(a)"""
