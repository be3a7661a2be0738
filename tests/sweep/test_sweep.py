"""A sweep from its file to its atlas, with a stand-in for the four rooms."""

import json
import zipfile

import pytest

from tests.sweep.conftest import TARGETS, Recorder
from trtconv.core.errors import InvalidRequestError
from trtconv.sweep import SweepRequest, plan_sweep
from trtconv.sweep.engine.verdicts import exit_code
from trtconv.sweep.store.storage import FolderStorage
from trtconv.sweep.store.timings import fetch_timings


def states(result):
    return {v.cell.id: v.state for v in result.verdicts}


def test_work_is_shared_and_nothing_is_done_twice(bench):
    bench.write(["a", "b"], precisions=("fp32", "fp16"))
    result = bench.run()
    assert {v.state for v in result.verdicts} == {"amber"}
    assert len(result.verdicts) == 8
    runs = bench.runs()
    assert set(runs.values()) == {1}
    kinds = [job.split("/")[0] for job in runs]
    assert [kinds.count(k) for k in ("export", "rewrite", "type", "check", "build")] == [2, 4, 4, 8, 4]
    again = bench.run()
    assert bench.runs() == runs
    assert states(again) == states(result)
    assert all(cached for *_, cached in bench.view.events)
    assert bench.pool.closed


def test_a_precision_is_typed_from_the_one_rewrite_of_its_target(bench):
    bench.write(["a"], targets=TARGETS[:1], precisions=("fp16",))
    bench.run()
    typed = next(r for r in bench.pool.tasks if r.kind == "type")
    assert [w for w in typed.steps[0]["words"] if "onnx" in w] == [
        "rewrite/model.onnx", "model.trt.onnx", "rewrite/model.trt.onnx"
    ]  # fmt: skip
    assert bench.content("build/a/own/tensorrt-rtx/fp16") == "net.py:a export rewrite typed build"
    before = bench.runs()
    bench.write(["a"], targets=TARGETS[:1], precisions=("fp32", "fp16", "bf16"))
    bench.run()
    assert bench.content("build/a/own/tensorrt-rtx/fp32") == "net.py:a export rewrite build"
    later = {job.split("/")[0] + "/" + job.rpartition("/")[2] for job in bench.runs() - before}
    assert later == {"check/fp32", "build/fp32", "type/bf16", "check/bf16", "build/bf16"}


def test_every_kind_of_trouble_ends_in_its_verdict(bench):
    bench.write(["good", "wrong", "refused", "broken", "crashes", "full", "flaky"], targets=TARGETS[:1])
    result = bench.run()
    reasons = {v.cell.model: (v.state, v.reason) for v in result.verdicts}
    assert reasons == {
        "good": ("amber", "the graph is equal; built, not run (no GPU)"),
        "wrong": ("red", "check: accuracy"),
        "refused": ("red", "rewrite: unsupported"),
        "broken": ("red", "export: failed"),
        "crashes": ("red", "rewrite: the process died"),
        "full": ("red", "rewrite: the disk is full"),
        "flaky": ("amber", "the graph is equal; built, not run (no GPU)"),
    }
    runs = bench.runs()
    own = {m: sum(n for job, n in runs.items() if f"/{m}/" in job and job.startswith("rewrite")) for m in reasons}
    # A verdict is final; a fault has two further attempts.
    assert own == {"good": 1, "wrong": 1, "refused": 1, "broken": 0, "crashes": 3, "full": 3, "flaky": 2}
    # A check that differs is followed by the search for the smallest failing part, and by no build.
    assert runs["check/wrong/own/tensorrt-rtx/fp32"] == 2
    assert "build/wrong/own/tensorrt-rtx/fp32" not in runs
    retried = [p.avoid for p, t in zip(bench.pool.placements, bench.pool.tasks, strict=True) if "crashes" in t.job]
    assert retried[0] == ""
    assert all(retried[2:]), "further attempts avoid the node"


def test_what_hangs_is_ended_and_tried_again(bench):
    bench.write(["hangs"], targets=TARGETS[:1], seconds=0.2)
    verdict = bench.run().verdicts[0]
    assert (verdict.state, verdict.kind) == ("red", "hung")
    outcomes = [(outcome, final) for job, outcome, final, _ in bench.view.events if job.startswith("rewrite")]
    assert outcomes == [("hung", False), ("hung", False), ("hung", True)]


def test_an_interrupt_leaves_an_atlas_and_a_resumed_sweep_does_nothing_twice(bench):
    bench.write(["a", "b", "c"])
    result = bench.run(view=Recorder(raise_after=4))
    assert result.interrupted
    assert result.atlas.index.exists()
    assert "open" in states(result).values()
    resumed = bench.run(resume=True)
    assert set(states(resumed).values()) == {"amber"}
    assert json.loads(resumed.atlas.data.read_text())["number"] == 1


def test_retry_runs_what_failed_and_nothing_else(bench):
    bench.write(["good", "refused", "crashes"], targets=TARGETS[:1])
    bench.run()
    before = bench.runs()
    bench.run(retry="faults")
    later = bench.runs() - before
    assert set(later) == {"rewrite/crashes/own/tensorrt-rtx/fp32"}
    before = bench.runs()
    bench.run(resume=True)
    assert set(bench.runs() - before) == {"rewrite/crashes/own/tensorrt-rtx/fp32"}
    before = bench.runs()
    bench.run(retry="failed")
    assert set(bench.runs() - before) == {f"rewrite/{m}/own/tensorrt-rtx/fp32" for m in ("crashes", "refused")}


def test_a_change_of_the_source_runs_what_depends_on_it(bench):
    bench.write(["a"], targets=TARGETS[:1])
    bench.run()
    (bench.folder / "net.py").write_text("# changed\n")
    bench.run()
    assert set(bench.runs().values()) == {2}


def test_cells_with_a_gpu_are_built_checked_and_measured_there(bench):
    bench.write(["a", "wrong"], gpus=("H100", "none"))
    result = bench.run()
    assert states(result)["a/own/tensorrt==10/fp32/H100"] == "green"
    assert states(result)["a/own/tensorrt==10/fp32/none"] == "amber"
    verdict = next(v for v in result.verdicts if v.cell.id == "a/own/tensorrt-rtx/fp32/H100")
    assert verdict.latency_s == {"opt": 0.001}
    where = {t.job: p.accelerator for p, t in zip(bench.pool.placements, bench.pool.tasks, strict=True)}
    assert where["build/a/own/tensorrt==10/fp32/H100"] == "H100"
    # TensorRT-RTX builds on the CPU, once for all GPUs.
    assert where["build/a/own/tensorrt-rtx/fp32"] == ""
    assert where["engine/a/own/tensorrt-rtx/fp32/H100"] == "H100"
    # Jobs without a GPU see none, in whatever order they ran.
    hidden = {t.job: "CUDA_VISIBLE_DEVICES" in t.variables for t in bench.pool.tasks}
    assert hidden == {job: not accelerator for job, accelerator in where.items()}


def test_only_and_the_plan(bench):
    bench.write(["a", "b"], precisions=("fp32", "fp16"))
    request = SweepRequest(bench.folder / "sweep.toml", bench.atlas, only=("model=a,precision=fp16",))
    plan = plan_sweep(request)
    assert [c.id for c in plan.matrix.cells] == ["a/own/tensorrt-rtx/fp16/none", "a/own/tensorrt==10/fp16/none"]
    assert {e.hours for e in plan.estimates} == {None}
    assert [(e.kind, e.jobs) for e in plan.estimates] == [
        ("export", 1), ("rewrite", 2), ("type", 2), ("check", 2), ("build", 1)
    ]  # fmt: skip
    assert not bench.atlas.exists(), "a plan writes nothing"
    bench.run(only=("model=a,precision=fp16",))
    timed = plan_sweep(SweepRequest(bench.folder / "sweep.toml", bench.atlas))
    assert all(e.hours is not None and e.timed == e.jobs for e in timed.estimates)
    with pytest.raises(InvalidRequestError, match="matches no cell"):
        plan_sweep(SweepRequest(bench.folder / "sweep.toml", bench.atlas, only=("model=z",)))


def test_a_damaged_store_costs_work_but_no_verdict(bench):
    bench.write(["a"], targets=TARGETS[:1])
    bench.run()
    for path in (bench.atlas / "store" / "content").rglob("*"):
        if path.is_file():
            path.write_bytes(b"rotten")
    # A job that needs a rotten file finds it out; the one that made it runs again with the next sweep.
    bench.write(["a"], targets=TARGETS)
    assert {v.kind for v in bench.run().verdicts} == {"ok", "store"}
    assert {v.state for v in bench.run(resume=True).verdicts} == {"amber"}
    # What is made again replaces what is rotten.
    for path in (bench.atlas / "store" / "content").rglob("*"):
        if path.is_file():
            path.write_bytes(b"rotten")
    (bench.atlas / "store" / "results").rename(bench.folder / "gone")
    assert {v.state for v in bench.run().verdicts} == {"amber"}


def test_two_drivers_do_not_share_an_atlas(bench):
    from trtconv.sweep.ledger.ledger import Ledger

    bench.write(["a"])
    with Ledger(bench.atlas), pytest.raises(InvalidRequestError, match="another sweep is writing"):
        bench.run()


CONTRACT = """[contracts.half-a-point]
precisions = ["fp16", "int8"]
data = "data.npz"
"""


def test_a_contract_s_verdict_is_that_of_the_search(bench):
    (bench.folder / "data.npz").write_bytes(b"samples")
    bench.write(
        ["judged", "emulated", "drops", "slow"], targets=TARGETS[1:], precisions=("half-a-point",), extra=CONTRACT
    )
    result = bench.run()
    assert {v.cell.model: (v.state, v.reason, v.kind) for v in result.verdicts} == {
        "judged": ("green", "contract kept: int8 of all, top1 0.9800, fp32 0.9901; 2.00 times as fast", "ok"),
        "emulated": ("amber", "contract kept: int8 of all, top1 0.9877, fp32 0.9901; by emulation (no GPU)", "ok"),
        "drops": ("red", "contract: it cannot be kept", "accuracy"),
        "slow": ("red", "contract: nothing that keeps it is faster", "budget"),
    }
    assert exit_code(result.verdicts) == 3
    assert {job.split("/")[0] for job in bench.runs()} == {"export", "tune"}
    folder = result.atlas.index.parent
    page = result.atlas.index.read_text()
    assert "nothing that keeps it is faster" in page
    cells = {c["model"]: c for c in json.loads(result.atlas.data.read_text())["cells"]}
    assert set(cells["judged"]["links"]) >= {"report", "search"}
    assert "tuned model.tune.json" in (folder / cells["judged"]["links"]["search"]).read_text()

    bench.run()
    assert {n for job, n in bench.runs().items() if "/judged/" in job} == {1}
    (bench.folder / "data.npz").write_bytes(b"other samples")
    bench.run()
    runs = {job.split("/")[0]: n for job, n in bench.runs().items() if "/judged/" in job}
    assert runs == {"export": 1, "tune": 2}, "judged anew on other data"


def test_a_contract_on_a_gpu_is_searched_there_with_the_timing_caches(bench):
    (bench.folder / "data.npz").write_bytes(b"samples")
    bench.write(["judged"], targets=TARGETS[1:], precisions=("half-a-point",), gpus=("H100",), extra=CONTRACT)
    assert [v.state for v in bench.run().verdicts] == ["green"]
    tasks = {t.kind: (t, p) for t, p in zip(bench.pool.tasks, bench.pool.placements, strict=True)}
    assert {kind: p.accelerator for kind, (_, p) in tasks.items()} == {"export": "", "tune": "H100", "bench": "H100"}
    assert {kind: bool(t.timings) for kind, (t, _) in tasks.items()} == {"export": False, "tune": True, "bench": False}


def test_a_build_starts_from_the_timing_caches_of_the_builds_before(bench):
    bench.write(["a", "b"], targets=TARGETS, gpus=("H100",))
    bench.run()
    scopes = {t.job: t.timings for t in bench.pool.tasks if t.kind == "build"}
    on_gpu = {scope for job, scope in scopes.items() if TARGETS[1] in job}
    assert len(on_gpu) == 1
    assert on_gpu != {""}
    assert {scope for job, scope in scopes.items() if TARGETS[0] in job} == {""}, "TensorRT-RTX builds without a GPU"
    store = FolderStorage(bench.atlas / "store")
    fetch_timings(store, next(iter(on_gpu)), bench.folder / "timing.cache")
    with zipfile.ZipFile(bench.folder / "timing.cache") as archive:
        assert {archive.read(n) for n in archive.namelist()} == {b"a", b"b"}


def test_a_variable_of_an_environment_decides_results(bench):
    bench.write(["a"], targets=TARGETS[:1])
    bench.run()
    path = bench.folder / "sweep.toml"
    path.write_text(path.read_text().replace("variables = {", 'variables = { CHECKPOINT = "two",'))
    bench.run()
    assert set(bench.runs().values()) == {2}
