"""What the rules make is parsed and built by TensorRT-RTX, which needs no GPU for that."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import tests.rewrite.rules
from tests.rewrite.harness import Case, apply, model_of, skip_newer
from trtconv.core.model.file import tensor_spec
from trtconv.core.progress import SilentProgress
from trtconv.core.targets import parse_target
from trtconv.rewrite.rules import RULES

pytest.importorskip("tensorrt_rtx")
pytestmark = pytest.mark.slow

RTX = parse_target("tensorrt-rtx")
MODULES = [
    m.name for m in pkgutil.walk_packages(tests.rewrite.rules.__path__, "tests.rewrite.rules.") if ".test_" in m.name
]
CASES = [
    case if isinstance(case, tuple) else (module.RULE, case)
    for module in (importlib.import_module(name) for name in MODULES)
    for case in getattr(module, "CASES", ())
    if not getattr(getattr(module, "RULE", None), "unproved", "")
]


def test_every_rule_has_a_test_module():
    tested = {rule.name for rule, _ in CASES}
    assert {r.name for r in RULES if not r.unproved} <= tested


@pytest.mark.parametrize(("rule", "case"), CASES, ids=lambda v: getattr(v, "name", str(v)))
def test_the_result_builds(rule, case: Case, tmp_path):
    from trtconv.backends.protocol import EngineSettings
    from trtconv.backends.select import choose_backend

    skip_newer(case)
    if rule.plugin:
        pytest.skip("TensorRT-RTX has no plugins")
    model = model_of(case)
    # Each case is proved by its rule's own test.
    record = apply(model, (rule,), case.target, proof=False)
    assert record.entries
    if not rule.needed(RTX) and any(n.op_type == "NonZero" for n in model.graph.node):
        pytest.skip("TensorRT-RTX refuses NonZero, and the rule is not for it")
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    profile = {}
    for value in model.graph.input:
        shapes = [tensor_spec(value).shape(sizes) for sizes in case.sizes]
        low, high = (tuple(pick(axis) for axis in zip(*shapes, strict=True)) for pick in (min, max))
        if low != high:
            profile[value.name] = (low, low, high)
    settings = EngineSettings(path, (profile,) if profile else ())
    build_result = choose_backend("tensorrt-rtx").build(settings, SilentProgress())
    assert len(build_result.plan) > 0
