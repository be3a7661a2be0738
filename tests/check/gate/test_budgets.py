import json

import numpy as np
import pytest

from tests.check.models import node, small_net, write_engine, write_pair
from tests.check.reporters.cases import GOOD, comparison, report
from trtconv.backends.tensorrt.layers import LayerInfo, LayerTensor
from trtconv.check.gate.baseline import compare_with_baseline, is_regression, parse_ratios, read_baseline
from trtconv.check.gate.budgets import Budgets, judge_budgets, parse_budgets
from trtconv.check.gate.judge import Gate, apply_gate, read_gate
from trtconv.check.gate.measure import measure_subject
from trtconv.check.gate.measured import Measurement, measurement
from trtconv.core.errors import InvalidRequestError
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import CheckRequest
from trtconv.pipeline import check, exit_code


def timings(median, spread, seed, runs=7):
    """Medians in ms as a machine with that relative noise gives them."""
    return measurement(list(np.random.default_rng(seed).normal(median, spread * median, runs)))


def test_budgets_are_read_with_units_and_points():
    budgets = parse_budgets({"latency_ms": {"opt": 3, "max": 20.5}, "engine_bytes": "64MiB", "plugin_nodes": 0})
    assert budgets == Budgets((("opt", 3.0), ("max", 20.5)), engine_bytes=64 << 20, plugin_nodes=0)
    assert parse_budgets({"latency_ms": 2}).latency_ms == (("opt", 2.0),)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"latncy_ms": 1}, "no budget 'latncy_ms'. Did you mean 'latency_ms'"),
        ({"engine_bytes": "64 parsecs"}, "cannot read the size"),
        ({"build_seconds": "fast"}, "must be a finite number"),
        ({"build_seconds": -1}, "must be a finite number"),
        ({"precision_share": 90}, "between 0 and 1"),
    ],
)
def test_a_wrong_budget_is_named(data, words):
    with pytest.raises(InvalidRequestError, match=words):
        parse_budgets(data)


def test_each_limit_is_judged_in_its_direction():
    budgets = Budgets((("opt", 2.0),), engine_bytes=1000, precision_share=0.9)
    names = ("latency_ms at opt", "engine_bytes", "precision_share")
    good = dict(zip(names, map(Measurement, (2.0, 1000, 0.9)), strict=True))
    findings, rows = judge_budgets(budgets, good, {})
    assert findings == ()
    assert all(r["passed"] for r in rows)
    bad = dict(zip(names, map(Measurement, (2.1, 1001, 0.8)), strict=True))
    findings, rows = judge_budgets(budgets, bad, {})
    assert [f.kind for f in findings] == ["budget"] * 3
    assert "2.1 ms, allowed is at most 2 ms" in findings[0].message
    assert "80.0 %, allowed is at least 90.0 %" in findings[2].message


def test_a_budget_that_cannot_be_judged_is_not_met_in_silence():
    (finding,), (row,) = judge_budgets(Budgets(engine_bytes=1), {}, {"engine_bytes": "there is no GPU"})
    assert (finding.level, finding.kind, row["passed"]) == ("error", "environment", False)
    assert "there is no GPU" in finding.message


def test_twice_as_slow_is_worse_and_the_same_is_not():
    then = timings(2.0, 0.02, 1)
    assert is_regression(timings(4.0, 0.02, 2), then, 1.1)
    assert not is_regression(timings(2.0, 0.02, 3), then, 1.1)
    assert is_regression(Measurement(1001.0), Measurement(1000.0), 1.0), "what has no noise needs no margin"


def test_a_noisy_machine_stays_green_over_many_runs_and_still_sees_a_factor_of_two():
    for spread in (0.01, 0.05, 0.2):
        then = timings(2.0, spread, 100)
        assert not [s for s in range(200) if is_regression(timings(2.0, spread, s), then, 1.1)], spread
        verdicts = [is_regression(timings(4.0, spread, s), then, 1.1) for s in range(200)]
        assert np.mean(verdicts) > (0.99 if spread < 0.2 else 0.5), spread


def test_a_single_disturbed_run_does_not_count():
    then = measurement([2.0, 2.01, 1.99, 2.0, 2.02, 1.98, 2.0])
    assert not is_regression(measurement([2.0, 2.01, 9.0, 2.0, 2.02, 1.98, 30.0]), then, 1.1)


def test_a_machine_with_wild_runs_neither_hides_nor_makes_a_regression():
    wild = measurement([1.0, 9.0, 1.1, 7.0, 1.2, 30.0, 8.0])
    assert is_regression(wild, measurement([1e-6] * 7), 1.1), "every run is slower, whatever their spread is"
    assert not is_regression(wild, measurement([1.0, 1.1, 1.0, 12.0, 0.9, 25.0, 1.3]), 1.1)


def baseline_file(folder, base, **measured):
    from trtconv.check.reporters.json_report import report_dict

    data = report_dict(base)
    data["extras"] = {"measured": {n: m.as_dict() for n, m in measured.items()}}
    path = folder / "baseline.json"
    path.write_text(json.dumps(data))
    return path


def test_the_baseline_finds_slower_and_bigger_and_fewer_in_the_precision(tmp_path):
    names = {
        "latency_ms at opt": timings(2.0, 0.02, 1),
        "engine_bytes": Measurement(1e6),
        "precision_share": Measurement(0.95),
    }
    baseline = read_baseline(baseline_file(tmp_path, GOOD, **names))
    assert compare_with_baseline(GOOD, names, baseline)[0] == ()
    worse = {
        "latency_ms at opt": timings(4.0, 0.02, 2),
        "engine_bytes": Measurement(1.2e6),
        "precision_share": Measurement(0.5),
    }
    findings, rows = compare_with_baseline(GOOD, worse, baseline)
    assert [f.kind for f in findings] == ["budget"] * 3
    assert exit_code(report(comparison(), findings=findings)) == 6
    assert sum(not r["passed"] for r in rows) == 3


def test_an_output_that_got_less_exact_is_over_budget_before_it_is_wrong(tmp_path):
    then = read_baseline(baseline_file(tmp_path, report(comparison(max_scaled=1e-6))))
    assert compare_with_baseline(report(comparison(max_scaled=1.9e-5)), {}, then)[0] == ()
    (finding,) = compare_with_baseline(report(comparison(max_scaled=9e-5)), {}, then)[0]
    assert "error of output 'y'" in finding.message


def test_times_of_another_machine_are_not_compared(tmp_path):
    base = report(comparison(), environment={"gpu": "GPU A"})
    baseline = read_baseline(baseline_file(tmp_path, base, **{"latency_ms at opt": Measurement(1.0)}))
    here = report(comparison(), environment={"gpu": "GPU B"})
    (finding,) = compare_with_baseline(here, {"latency_ms at opt": Measurement(9.0)}, baseline)[0]
    assert finding.level == "warning"
    assert "GPU A, this is GPU B" in finding.message


def test_ratios_are_checked():
    assert parse_ratios({"latency_ms": 1.5})["latency_ms"] == 1.5
    with pytest.raises(InvalidRequestError, match="no ratio 'latency'"):
        parse_ratios({"latency": 1.5})
    with pytest.raises(InvalidRequestError, match="must be a finite number"):
        parse_ratios({"latency_ms": 0.5})


def test_a_file_that_is_no_report_is_refused(tmp_path):
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(InvalidRequestError, match="is not a report of `trtconv check`"):
        read_baseline(tmp_path / "b.json")


def test_update_then_compare_is_green_and_a_slower_model_red(tmp_path):
    path = write_pair(tmp_path)
    file = tmp_path / "baseline.json"
    first = check(CheckRequest(path), gate=Gate(baseline=file, update=True))
    assert first.passed
    assert json.loads(file.read_text())["extras"]["measured"]["latency_ms at opt"]["value"] > 0
    again = check(CheckRequest(path), gate=read_gate({}, {"latency_ms": 3.0}, file))
    assert again.passed, again.errors
    # The baseline of a machine that was a hundred times faster.
    data = json.loads(file.read_text())
    entry = data["extras"]["measured"]["latency_ms at opt"]
    entry |= {"value": entry["value"] / 100, "runs": [r / 100 for r in entry["runs"]]}
    file.write_text(json.dumps(data))
    slow = check(CheckRequest(path), gate=read_gate({}, {}, file))
    assert exit_code(slow) == 6
    assert "latency_ms at opt" in slow.errors[0].message


def test_a_failing_report_never_becomes_the_baseline(tmp_path):
    path = write_pair(tmp_path, rewritten=small_net(scale=3.0))
    file = tmp_path / "baseline.json"
    result = check(CheckRequest(path), gate=Gate(baseline=file, update=True))
    assert not file.exists()
    assert any("is unchanged: the new report fails" in f.message for f in result.findings)


def test_plugin_nodes_are_counted_at_their_lines(tmp_path):
    path = write_pair(tmp_path)
    model = small_net()
    model.graph.node.append(node("L2Norm", ["x"], ["unused"], 33, "extra", domain="trtconv"))
    from trtconv.core.model.file import save_model

    save_model(model, path)
    base = report(comparison())
    judged = apply_gate(base, CheckRequest(path), Gate(Budgets(plugin_nodes=0)), SilentProgress())
    (finding,) = judged.errors
    assert (finding.kind, finding.source, finding.node) == ("budget", "net.py:33", "/extra/L2Norm")
    assert exit_code(judged) == 6


@pytest.mark.parametrize(("slow", "code"), [(1, 0), (2, 0), (9, 6)])
def test_a_slow_run_counts_only_when_it_stays_slow(tmp_path, monkeypatch, slow, code):
    """Other work on the machine slows a measurement; what is slow by itself is slow each time."""
    from trtconv.check.gate import judge as gate
    from trtconv.check.gate import measure

    path = write_pair(tmp_path)
    samples = []

    def runs(request, point, repeats=7):
        samples.append(point)
        return [50.0 if len(samples) <= slow else 1.0] * repeats

    monkeypatch.setattr(measure, "latency_runs", runs)
    monkeypatch.setattr(gate, "PAUSES", (0.0, 0.0))
    names = {"latency_ms at opt": timings(1.0, 0.01, 1)}
    against = baseline_file(tmp_path, report(comparison()), **names)
    for limits in (Gate(Budgets((("opt", 2.0),))), Gate(baseline=against)):
        samples.clear()
        judged = apply_gate(report(comparison()), CheckRequest(path), limits, SilentProgress())
        assert exit_code(judged) == code
        assert len(samples) == min(slow + 1, 3)
        assert judged.extras["measured"]["latency_ms at opt"]["value"] == (50.0 if code else 1.0)


# The layers of an FP16 engine of TensorRT 8.6 on an H200, as its inspector tells them (kind, name, type of the output).
HALF_LAYERS = [
    ("Reformat", "images/to_fp16", "float16"),
    ("Convolution", "node_conv2d + node_relu", "float16"),
    ("Convolution", "node_conv2d_1 + node_relu_1", "float16"),
    ("Convolution", "node_conv2d_2 + node_relu_2", "float16"),
    ("Convolution", "node_conv2d_3 + node_relu_3", "float16"),
    ("MyelinReformat", "relu_3/to_fp32", "float32"),
    ("Reduce", "div/l2norm/Mul + div/l2norm/ReduceSum + div/l2norm/Sqrt", "float32"),
    ("PointWise", "PWN(val_3 + div/l2norm/Add, div/l2norm/Div)", "float32"),
    ("MyelinReformat", "div/to_fp16", "float16"),
    ("Pooling", "node_max_pool2d", "float16"),
    ("NoOp", "node_view", "float16"),
    ("MyelinReformat", "output_fp16/to_fp32", "float32"),
    ("Gather", "sizes", "int32"),
]


class Opened:
    """A session that has only layers."""

    def load(self, path, **options):
        return self

    def layers(self, runs):
        assert runs
        return tuple(LayerInfo(n, k, (), (LayerTensor(n, (1,), d),)) for k, n, d in HALF_LAYERS)

    def close(self):
        pass


def test_the_share_of_the_precision_is_that_of_the_engines_layers(tmp_path, monkeypatch):
    write_pair(tmp_path)
    engine = write_engine(tmp_path, precision="fp16", types={"float16": 8})
    elsewhere = measure_subject(CheckRequest(engine), ["precision_share"], SilentProgress())
    assert elsewhere.values["precision_share"].value == 1.0, "what the manifest says, where the engine cannot run"
    monkeypatch.setattr("trtconv.backends.select.backend_of", lambda path: Opened())
    limits = Gate(Budgets(precision_share=0.9))
    judged = apply_gate(report(comparison()), CheckRequest(engine), limits, SilentProgress())
    assert judged.extras["measured"]["precision_share"]["value"] == pytest.approx(5 / 7)
    (finding,) = judged.errors
    assert "71.4 %, allowed is at least 90.0 %" in finding.message
    assert finding.node == "div/l2norm/Sqrt"
    assert exit_code(judged) == 6
