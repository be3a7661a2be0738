"""Every model of the rules' own tests through the whole rule pack: a second run changes nothing, to the byte.

A rule's own test runs that rule alone. Together they could leave work for each other: one whose result another one
takes apart again, or that sees a pattern only after the leftovers are gone.
"""

import importlib
import pkgutil
from collections.abc import Iterator

import onnx
import pytest

import tests.rewrite.rules
from tests.rewrite.harness import Case, model_of
from trtconv.core.errors import TrtconvError
from trtconv.core.progress import SilentProgress
from trtconv.core.targets import KNOWN_TARGETS, parse_target
from trtconv.rewrite.engine import Setting
from trtconv.rewrite.points import model_space
from trtconv.rewrite.room import rewrite_graph
from trtconv.rewrite.rules import RULES

FILES = [m.name for m in pkgutil.iter_modules(tests.rewrite.rules.__path__) if m.name.startswith("test_")]


def cases_in(value: object, depth: int = 2) -> Iterator[Case]:
    """The cases in a module's value: itself, or in lists and tuples."""
    if isinstance(value, Case):
        yield value
    elif isinstance(value, list | tuple) and depth:
        for item in value:
            yield from cases_in(item, depth - 1)


def models(file: str) -> Iterator[tuple[str, onnx.ModelProto]]:
    for value in vars(importlib.import_module(f"tests.rewrite.rules.{file}")).values():
        for case in cases_in(value):
            if case.opset <= onnx.defs.onnx_opset_version():
                yield case.name, model_of(case)


def rewritten(model: onnx.ModelProto, target: str, plugins: bool) -> tuple[onnx.ModelProto, list[str]]:
    chosen = parse_target(target)
    space, specs = model_space(model)
    rules = [r for r in RULES if r.needed(chosen) and (not r.plugin or plugins) and not (plugins and r.native_of)]
    # Without proof each rule fires wherever it matches: more chances to undo each other.
    after, record = rewrite_graph(model, rules, Setting(chosen, space, specs, False), SilentProgress())
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


def test_there_are_many():
    assert sum(1 for file in FILES for _ in models(file)) > 300
