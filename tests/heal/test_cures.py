"""The order of the cures, what each of them changes, and where the search ends."""

import json

import jsonschema
import pytest

from trtconv.core.errors import AccuracyError, InvalidRequestError
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import CheckRequest
from trtconv.frontend.documents import SCHEMAS, document
from trtconv.heal import HealRequest, heal_engine
from trtconv.heal.cures import LEVELS, try_cures
from trtconv.heal.trial import KINDS, CureTrial, Diagnosis

GROUPS = {f"layers.{i}": (f"a{i}", f"b{i}") for i in range(8)}
HALF = Diagnosis("b5", "t5", True, "gelu", ("sin-cos", "erf"), "net.py:5", "fp16", groups=GROUPS,
                 sources=("EDGE_MASK_CONVOLUTIONS", "JIT_CONVOLUTIONS"), words="a fusion is wrong",
                 generation=8)  # fmt: skip


class Bench:
    """A builder that gets a variant right when `cures` says so."""

    def __init__(self, cures, diagnosis=HALF, folder=None):
        self.cures, self.diagnosis, self.folder, self.variants = cures, diagnosis, folder, []

    def diagnose(self):
        return self.diagnosis

    def try_variant(self, variant):
        self.variants.append(variant)
        holds = self.cures(variant)
        return CureTrial(variant, holds, "" if holds else "y differs", 0.003 if holds else None, self.folder)

    def baseline_seconds(self):
        return 0.002


def kinds(bench):
    return list(dict.fromkeys(v.kind for v in bench.variants))


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_cure_that_holds_ends_the_search(kind):
    bench = Bench(lambda v: v.kind == kind)
    trials = try_cures(bench, HALF, SilentProgress())
    assert kinds(bench) == list(KINDS[: KINDS.index(kind) + 1])
    assert trials[-1].holds
    assert trials[-1].variant.kind == kind


def test_each_cure_changes_what_it_says():
    bench = Bench(lambda v: False)
    assert not any(t.holds for t in try_cures(bench, HALF, SilentProgress()))
    by_kind = {}
    for variant in bench.variants:
        by_kind.setdefault(variant.kind, []).append(variant)
    assert by_kind["fusion"][0].options == (("debug_outputs", "t5"),)
    assert [(v.skip, v.also) for v in by_kind["form"]] == [(("gelu",), ()), ((), ("sin-cos",)), ((), ("erf",))]
    assert by_kind["fp32"][0].keep_fp32 == ("b5",)
    assert [v.opt_level for v in by_kind["opt level"]] == list(LEVELS)
    assert [v.options for v in by_kind["moving sizes"]] == [(("faster_dynamic_shapes", "false"),)]
    assert [v.options for v in by_kind["tactics"]] == [
        (("tactic_sources", "JIT_CONVOLUTIONS"),),
        (("tactic_sources", "EDGE_MASK_CONVOLUTIONS"),),
    ]
    assert by_kind["all fp32"][0].precision == "fp32"


@pytest.mark.parametrize("guilty", ["layers.0", "layers.3", "layers.7"])
def test_a_module_that_has_to_be_fp32_is_found_by_halving(guilty):
    needed = set(GROUPS[guilty])
    bench = Bench(lambda v: needed <= set(v.keep_fp32))
    trials = try_cures(bench, HALF, SilentProgress())
    assert set(trials[-1].variant.keep_fp32) == needed
    assert len([v for v in bench.variants if v.kind == "fp32"]) <= 8


def test_an_fp32_engine_loses_its_tf32_and_rewrites_nothing():
    diagnosis = Diagnosis("n", "t", precision="fp32", tf32=True)
    bench = Bench(lambda v: v.opt_level == 4)
    trials = try_cures(bench, diagnosis, SilentProgress())
    assert kinds(bench) == ["fp32", "opt level"]
    assert bench.variants[0].options == (("tf32", "false"),)
    assert trials[-1].variant.opt_level == 4
    assert not any(v.rewrites for v in bench.variants)


def request(tmp_path, name="healed"):
    (tmp_path / "set").mkdir(exist_ok=True)
    return HealRequest(CheckRequest(tmp_path / "set" / "model.engine"), tmp_path / name)


def test_what_holds_is_published_with_its_price(tmp_path):
    trial = tmp_path / "trial"
    trial.mkdir()
    (trial / "model.engine").write_bytes(b"plan")
    result = heal_engine(request(tmp_path), workbench=Bench(lambda v: v.kind == "form", folder=trial))
    assert result.price == pytest.approx(1.5)
    assert (tmp_path / "healed" / "model.engine").read_bytes() == b"plan"
    facts = json.loads((tmp_path / "healed" / "heal.json").read_text())
    schema = json.loads((SCHEMAS / "heal.schema.json").read_text())
    jsonschema.validate(document("heal", result.as_dict()), schema)
    assert [t["holds"] for t in facts["trials"]] == [False, True]
    assert facts["chosen"]["variant"]["skip"] == ["gelu"]
    assert result.repro is None


def test_nothing_is_written_when_no_cure_holds(tmp_path):
    with pytest.raises(AccuracyError, match="no cure holds") as error:
        heal_engine(request(tmp_path), workbench=Bench(lambda v: False))
    assert "optimization level 2: y differs" in error.value.details
    assert not (tmp_path / "healed").exists()


def test_the_wrong_engine_is_never_written_over(tmp_path):
    with pytest.raises(InvalidRequestError, match="holds the engine that is wrong"):
        heal_engine(request(tmp_path, "set"), workbench=Bench(lambda v: True))
