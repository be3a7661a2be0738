"""The list of rules is made from the files."""

from pathlib import Path

import pytest

import trtconv.rewrite.rules
from trtconv.rewrite.engine.rule import NOT_THIS, Rule
from trtconv.rewrite.rules import GROUPS, RULES, ordered, rules_in

FOLDER = Path(trtconv.rewrite.rules.__file__).parent


def rule(name, *after):
    return Rule(name, "A test.", ("Relu",), lambda graph, node: NOT_THIS, after_rules=after)


def test_every_file_is_a_rule_and_every_folder_a_group():
    files = [f for f in FOLDER.rglob("*.py") if f.stem != "__init__"]
    assert len(RULES) == len(files)
    assert {".".join(f.parent.relative_to(FOLDER).parts) for f in files} == set(GROUPS)


def test_names_are_unique_and_groups_stand_in_their_order():
    names = [r.name for r in RULES]
    assert len(set(names)) == len(names)
    assert names == [r.name for group in GROUPS for r in ordered(rules_in(group))]


def test_a_group_is_in_the_order_of_names_but_for_what_a_rule_says():
    assert [r.name for r in ordered([rule("c"), rule("a", "c"), rule("b", "elsewhere")])] == ["b", "c", "a"]


def test_rules_that_wait_for_each_other():
    with pytest.raises(ValueError, match="a, b"):
        ordered([rule("a", "b"), rule("b", "a"), rule("c")])


def test_rules_of_one_group_that_name_another_name_one_of_it():
    for group in GROUPS:
        rules = list(rules_in(group))
        assert {n for r in rules for n in r.after_rules} <= {r.name for r in rules}
