"""The tables of `--target` are what their sources in benchmarks/ give, and the parser's own answers hold in them."""

import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

ROOT = Path(__file__).parents[2]
RTX = json.loads((ROOT / "benchmarks/results/parser_tensorrt_rtx.json").read_text())


def test_the_tables_are_what_the_sources_give():
    command = [sys.executable, "-m", "benchmarks", "tables.support_tables", "--check"]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr


def test_the_table_of_rtx_agrees_with_its_parser_on_every_operator():
    """Where they differ the table says why: the builder fails on what the parser takes, or a plugin is not there."""
    table = json.loads((ROOT / "trtconv/core/targets/tables/tensorrt-rtx.json").read_text())["ops"]
    differs = {op for op, said in RTX["importers"].items() if table[op]["supported"] != said}
    assert differs <= {"NonMaxSuppression", "NonZero", "RoiAlign", "CausalConvWithState", "LinearAttention"}
    assert all("measured" in table[op]["evidence"] for op in differs)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", ["as_is", "fixed"])
def test_what_the_parser_refuses_of_a_single_operator_is_refused_by_the_table(form):
    if onnx.__version__ != RTX["onnx"]:
        pytest.skip(f"the parser was asked with the node tests of onnx {RTX['onnx']}")
    sys.path.insert(0, str(ROOT))
    from benchmarks.tables.parser_support import frozen, node_tests
    from trtconv.check.target.node_facts import read_facts
    from trtconv.check.target.verdicts import judge_by_table
    from trtconv.core.targets import parse_target
    from trtconv.core.targets.table import load_table

    target = parse_target("tensorrt-rtx")
    table = load_table(target)
    lenient = []
    for name, model, inputs in node_tests():
        test = RTX["tests"].get(name, {})
        parsed_model = model if form == "as_is" else frozen(model, inputs)
        if len(test.get("ops", ())) != 1 or test.get(form, {}).get("taken", True) or parsed_model is None:
            continue
        facts = read_facts(parsed_model)
        if not [n for n in facts.nodes if judge_by_table(n, facts, target, table).status == "refused"]:
            lenient.append(name)
    # Odd numbers of 4-bit weights, sequences and optionals at the border, one mask of Attention in BF16.
    names = {
        "test_dequantizelinear_int4",
        "test_dequantizelinear_float4e2m1",
        "test_identity_sequence",
        "test_identity_opt",
        "test_attention_4d_attn_mask_causal_bf16",
    }
    assert set(lenient) <= names


def test_the_table_of_8_6_has_what_its_parser_took_on_a_gpu():
    measured = json.loads((ROOT / "benchmarks/results/parser_tensorrt_8.6.json").read_text())
    table = json.loads((ROOT / "trtconv/core/targets/tables/tensorrt-8.6.json").read_text())["ops"]
    for name, test in measured["tests"].items():
        accepted = any(test.get(k, {}).get("taken") for k in ("as_is", "fixed"))
        if len(test["ops"]) == 1 and test["opset"] <= 17 and accepted:
            assert table[test["ops"][0]]["supported"], name
    cited = [op for op, entry in table.items() if "zoo cases built and equal on an H200" in entry["evidence"]]
    assert len(cited) > 90
    assert all(table[op]["supported"] for op in cited)
