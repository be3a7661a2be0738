"""The search leaves out what harms, keeps what does not, goes on where it was interrupted, and judges elsewhere."""

from time import perf_counter

import onnx
import pytest

from tests.tune.networks import examiner
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import AccuracyError, InvalidRequestError, OverBudgetError
from trtconv.core.progress import SilentProgress
from trtconv.tune.candidates import Candidate
from trtconv.tune.contract import Contract, Drop, parse_drop
from trtconv.tune.evidence import layer_shares
from trtconv.tune.finalists import judge
from trtconv.tune.metrics.registry import METRICS
from trtconv.tune.search import PrecisionSearch
from trtconv.tune.speed import Timed

PROGRESS = SilentProgress()


def contract(drop="3%"):
    return Contract(METRICS["top1"], parse_drop(drop, METRICS["top1"]))


def search(subject, drop="3%", base=None):
    return PrecisionSearch(subject, contract(drop), base or Candidate("int8"), PROGRESS).run()


@pytest.fixture(scope="module")
def subject(tmp_path_factory):
    return examiner(tmp_path_factory.mktemp("search"))


@pytest.fixture(scope="module")
def result(subject):
    return search(subject)


def test_the_layer_that_int8_cannot_take_is_found_and_left_out(result):
    assert min(result.sensitivities, key=lambda s: s.decibels).group == "c"
    assert result.best.groups == ("a", "b", "head")
    assert result.complete


def test_all_groups_were_tried_and_missed_the_contract(subject, result):
    everything = next(t for t in result.trials if len(t.candidate.groups) == 4)
    assert not everything.holds
    assert everything.value < 0.9 < subject.baseline("search").value


def test_fp16_takes_everything_in_one_trial(subject):
    best = search(subject, base=Candidate("fp16"))
    assert len(best.trials) == 1
    assert set(best.best.groups) == {g.name for g in subject.models.groups("fp16")}


def test_int8_beside_fp16_has_layers_in_both(subject, result):
    candidate = Candidate("int8", result.best.groups, "fp16")
    assert layer_shares(subject.models, candidate) == {"fp16": 0.25, "int8": 0.75}
    costs = [subject.models.cost(c) for c in (candidate, result.best, Candidate("fp32"))]
    assert costs == sorted(costs)
    assert costs[0] < costs[1] < costs[2]


def test_the_parts_share_no_sample(subject):
    parts = [{s.digest() for s in part} for part in subject._parts.values()]
    assert not parts[0] & parts[1]


def test_an_interrupted_search_goes_on_where_it_was(tmp_path):
    class Interrupt(SilentProgress):
        def phase(self, name, completed=0, total=0):
            if "all groups" in name:
                raise KeyboardInterrupt

    first = examiner(tmp_path)
    with pytest.raises(KeyboardInterrupt), first.state:
        PrecisionSearch(first, contract(), Candidate("int8"), Interrupt()).run()
    again = examiner(tmp_path)
    assert again.state.resumed == 5, "fp32 and four groups"
    assert search(again).best.groups == ("a", "b", "head")
    assert again.passes < 10


def test_a_budget_that_is_spent_ends_the_search(tmp_path):
    best = search(examiner(tmp_path, minutes=0.0))
    assert (best.best, best.complete) == (None, False)
    with pytest.raises(OverBudgetError, match="budget ended"):
        judge(examiner(tmp_path, minutes=0.0), contract(), [best], PROGRESS, None)


def test_without_a_gpu_the_fewest_bytes_ship(subject, result):
    half = search(subject, base=Candidate("fp16"))
    verdict = judge(subject, contract(), [half, result], PROGRESS, None)
    assert verdict.chosen.candidate == min(verdict.judged, key=lambda f: f.cost).candidate
    assert verdict.chosen.seconds is None


def test_a_contract_that_nothing_keeps_names_the_best(subject):
    better = Contract(METRICS["top1"], Drop("better than fp32", -0.1))
    result = PrecisionSearch(subject, better, Candidate("int8"), PROGRESS).run()
    assert result.best is None
    with pytest.raises(AccuracyError, match="the best, int8 in") as error:
        judge(subject, better, [result], PROGRESS, None)
    assert error.value.exit_code == 3


def test_a_group_is_given_back_where_the_judging_part_says_so(subject, result):
    too_many = Candidate("int8", ("a", "b", "c", "head"))
    verdict = judge(subject, contract(), [type(result)("int8", too_many, result.sensitivities, ())], PROGRESS, None)
    assert verdict.chosen.candidate.groups == ("a", "b", "head")
    assert [f.holds for f in verdict.judged] == [False, True]


class OnnxRuntimeStopwatch:
    """Real times of real graphs on the CPU, where pairs cost and give nothing back."""

    name = "ONNX Runtime"

    def open(self, model, precision, inputs):
        runner = OnnxRuntimeRunner(model, threads=1)
        times = []
        for _ in range(200):
            start = perf_counter()
            runner(inputs)
            times.append(perf_counter() - start)
        return Timed(sorted(times)[20], runner, runner.close)


def test_a_set_that_does_not_pay_never_ships(subject, result):
    with pytest.raises(OverBudgetError, match="is faster than fp32") as error:
        judge(subject, contract(), [result], PROGRESS, OnnxRuntimeStopwatch())
    assert error.value.exit_code == 6
    assert "int8 in 3 groups" in error.value.message


def test_an_engine_that_cannot_be_built_is_a_candidate_less(subject, result):
    class Refusing(OnnxRuntimeStopwatch):
        def open(self, model, precision, inputs):
            if precision == "int8":
                raise InvalidRequestError("no kernel")
            return super().open(model, precision, inputs)

    with pytest.raises(AccuracyError) as error:
        judge(subject, contract(), [result], PROGRESS, Refusing())
    assert "no kernel" in error.value.details[0]


def test_what_the_builder_gets_wrong_is_left_out(subject, result):
    """A builder that has no INT8 for one layer, and is faster with each of the others."""

    class Partial(OnnxRuntimeStopwatch):
        def open(self, model, precision, inputs):
            makers = {o: n.op_type for n in onnx.load(model).graph.node for o in n.output}
            layer = next(n for n in onnx.load(model).graph.node if n.name == "b")
            if makers.get(layer.input[1]) == "DequantizeLinear":
                raise InvalidRequestError("no kernel")
            runner = OnnxRuntimeRunner(model, threads=1)
            return Timed(1 / (1 + list(makers.values()).count("DequantizeLinear")), runner, runner.close)

    verdict = judge(subject, contract(), [result], PROGRESS, Partial())
    assert verdict.chosen.candidate.groups == ("a", "head")
    assert "no kernel" in verdict.judged[0].failure
