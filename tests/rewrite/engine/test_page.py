# ruff: noqa: E501 - the text of a model stands on one line
"""The docs of the rules are those that the rules make, and the example of the how-to works."""

import re
from pathlib import Path

import onnx
import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of
from trtconv.rewrite.engine.page import page
from trtconv.rewrite.engine.user_rules import load_rules
from trtconv.rewrite.rules import RULES

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_of_rules_is_up_to_date():
    assert (DOCS / "reference" / "rules.md").read_text() == page(), (
        "run `python -m trtconv.rewrite.engine.page docs/reference/rules.md`"
    )


def test_the_example_of_the_how_to_works(tmp_path):
    text = (DOCS / "how-to" / "write-a-rule.md").read_text()
    source, _, by_hand = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(source.splitlines()) <= 6
    file = tmp_path / "my_rules.py"
    file.write_text(source)
    (rule,) = load_rules([file])
    other = tmp_path / "two_means.py"
    other.write_text(by_hand)
    check_case(load_rules([other])[0], Case("two means", "y = ReduceMean<axes=[2,3]>(x)"))
    constants = "float three = {3.0}, float low = {0.0}, float six = {6.0}, float five = {5.0}"
    body = "a = Add(x, three) c = Clip(a, low, six) m = Mul(x, c) y = Div(m, six)"
    check_case(rule, Case("as written", body, constants=constants, present=("HardSwish",), absent=("Clip",)))
    check_case(rule, Case("the other order", body.replace("Mul(x, c)", "Mul(c, x)").replace("Add(x, three)", "Add(three, x)"),
                          constants=constants, present=("HardSwish",)))  # fmt: skip
    check_near_miss(rule, Case("another bound", body.replace("low, six", "low, five"), constants=constants))
    check_near_miss(
        rule, Case("another value", "z = Neg(x) " + body.replace("Mul(x, c)", "Mul(z, c)"), constants=constants)
    )
    old = model_of(Case("opset 13", body, constants=constants, opset=13))
    record = apply(old, (rule,), "tensorrt-rtx")
    assert "opset 14" in record.skipped[0].reason
    assert onnx.checker.check_model(old) is None


@pytest.mark.parametrize("name", ["reference/tensorrt-8.6.md", "how-to/data-dependent-sizes.md"])
def test_the_rules_that_a_table_names_exist(name):
    text = (DOCS / name).read_text()
    cells = [cell for line in text.splitlines() if line.startswith("|") for cell in line.split("|")[2:]]
    named = {name for cell in cells for name in re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`", cell)}
    assert len(named) >= 3
    assert named <= {r.name for r in RULES}
