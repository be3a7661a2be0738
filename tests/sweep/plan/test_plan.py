"""From sweep.toml to jobs."""

import pytest

from trtconv.cli.main import command_module
from trtconv.core.errors import InvalidRequestError
from trtconv.sweep.plan.cells import make_matrix, select_cells
from trtconv.sweep.plan.commands import steps_of
from trtconv.sweep.plan.estimate import estimate_jobs
from trtconv.sweep.plan.file import read_sweep
from trtconv.sweep.plan.jobs import make_jobs

MODEL = '[[model]]\nmodule = "package.module:net"\n'
MATRIX = """
[sweep]
targets = ["tensorrt-rtx", "tensorrt==8.6"]
precisions = ["fp32", "fp16"]
gpus = ["none", "H100"]
[[model]]
config = "models/*.toml"
[[model]]
name = "mlp"
module = "net.py:mlp"
inputs = ["x:float32[N,8]"]
weights = "w.safetensors"
spaces = ["N=1:2:4", "N=1"]
targets = ["tensorrt==10"]
gpus = ["none"]
[[exclude]]
model = "b*"
precision = "fp16"
[[include]]
model = "beta"
target = "tensorrt==11"
precision = "fp16"
gpu = "T4"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "models" / "gamma").mkdir(parents=True)
    for name in ("alpha", "beta"):
        (tmp_path / "models" / f"{name}.toml").write_text("")
    (tmp_path / "net.py").write_text("")
    return tmp_path


def read(folder, text):
    path = folder / "sweep.toml"
    path.write_text(text)
    return read_sweep(path)


def matrix(folder, text=MATRIX):
    sweep = read(folder, text)
    return sweep, make_matrix(sweep, folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no model"),
        ("[sweep", "is not valid TOML"),
        (MODEL + "nam = 'x'\n", r"unknown key 'model\.0\.nam'\. Did you mean 'name'"),
        ("[sweep]\ntarget = []\n" + MODEL, r"unknown key 'sweep\.target'\. Did you mean 'targets'"),
        (MODEL + "[resources.build]\ncpu = 1\n", r"unknown key 'resources\.build\.cpu'\. Did you mean 'cpus'"),
        ("[sweep]\ntargets = ['tensorrt==9']\n" + MODEL, "unknown target 'tensorrt==9'"),
        ("[sweep]\nprecisions = ['fp23']\n" + MODEL, "unknown precision 'fp23'"),
        ("[sweep]\nprecisions = ['int8']\n" + MODEL, "cannot be typed as 'int8'"),
        ("[sweep]\nspaces = ['N=4:2:1']\n" + MODEL, "is not ordered"),
        ("[sweep]\nretries = -1\n" + MODEL, "retries must be non-negative, got -1"),
        ("[sweep]\ntargets = 'x'\n" + MODEL, r"'sweep\.targets'"),
        ("[[model]]\nname = 'x'\n", "needs one of 'config', 'module' and 'registry'"),
        (MODEL + "config = 'a.toml'\n", "needs one of 'config', 'module' and 'registry'"),
        (MODEL + "[resources.biuld]\ncpus = 1\n", "unknown kind of job 'resources.biuld'. Did you mean 'build'"),
        (MODEL + "[resources.build]\nseconds = 0\n", "must be positive"),
        (MODEL + "[environments.'tensorrt==7']\ncommand = ['x']\n", "unknown target"),
        (MODEL + "[[include]]\ntarget = 'tensorrt-rtx'\n", r"'include\.0\.model' is missing"),
    ],
)
def test_a_wrong_file_is_one_clear_error(tmp_path, text, message):
    with pytest.raises(InvalidRequestError, match=message) as caught:
        read(tmp_path, text)
    assert "sweep.toml" in caught.value.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MODEL + MODEL, "two models are called 'net'"),
        ("[[model]]\nconfig = 'none/*.toml'\n", "no config matches 'none/"),
        ("[[model]]\nmodule = 'gone.py:x'\n", "there is no model file"),
        ("[[model]]\nname = 'x'\nconfig = 'models/*.toml'\n", "would stand for 2 models"),
        (MODEL + "[[exclude]]\nmodel = 'nets'\n", "exclude names no model 'nets'. Did you mean 'net'"),
        (MODEL + "[[include]]\nmodel = 'nets'\ntarget = 'tensorrt-rtx'\n", "include names no model 'nets'"),
        (MODEL + "[[exclude]]\nmodel = 'net'\n", "the sweep has no cells"),
    ],
)
def test_a_matrix_that_cannot_be_is_one_clear_error(folder, text, message):
    with pytest.raises(InvalidRequestError, match=message):
        matrix(folder, text)


def test_the_matrix(folder):
    _, cells = matrix(folder)
    ids = [c.id for c in cells.cells]
    assert ids == [
        "alpha/own/tensorrt-rtx/fp32/none", "alpha/own/tensorrt-rtx/fp32/H100",
        "alpha/own/tensorrt-rtx/fp16/none", "alpha/own/tensorrt-rtx/fp16/H100",
        "alpha/own/tensorrt==8.6/fp32/none", "alpha/own/tensorrt==8.6/fp32/H100",
        "alpha/own/tensorrt==8.6/fp16/none", "alpha/own/tensorrt==8.6/fp16/H100",
        "beta/own/tensorrt-rtx/fp32/none", "beta/own/tensorrt-rtx/fp32/H100",
        "beta/own/tensorrt==8.6/fp32/none", "beta/own/tensorrt==8.6/fp32/H100",
        "mlp/N=1:2:4/tensorrt==10/fp32/none", "mlp/N=1:2:4/tensorrt==10/fp16/none",
        "mlp/N=1/tensorrt==10/fp32/none", "mlp/N=1/tensorrt==10/fp16/none",
        "beta/own/tensorrt==11/fp16/T4",
    ]  # fmt: skip
    assert cells.models["mlp"].spec == f"{folder / 'net.py'}:mlp"
    assert cells.models["alpha"].config == folder / "models" / "alpha.toml"


def test_a_precision_that_a_target_lacks_is_left_out_with_a_note(folder):
    _, cells = matrix(folder, MATRIX.replace('"fp16"]', '"bf16"]'))
    assert {c.precision for c in cells.cells if c.target == "tensorrt==8.6"} == {"fp32"}
    assert cells.notes == ("tensorrt==8.6 does not compute in bf16: 4 cells left out",)


def test_the_jobs_of_a_matrix(folder):
    sweep, cells = matrix(folder)
    graph = make_jobs(sweep, cells)
    kinds = [job.kind for job in graph.jobs.values()]
    assert {k: kinds.count(k) for k in kinds} == {
        "export": 4,
        "rewrite": 7,
        "type": 5,
        "check": 11,
        "build": 3 + 3 + 1,
        "engine": 7,
        "bench": 7,
    }
    visits = set()
    for job in graph.jobs.values():
        assert set(job.needs) <= visits, "a job stands behind what it needs"
        visits.add(job.id)
    build = graph.jobs["build/alpha/own/tensorrt==8.6/fp32/H100"]
    assert build.accelerator == "H100"
    assert build.needs[-1] == "check/alpha/own/tensorrt==8.6/fp32", "a graph that differs is not built"
    assert build.reads == ("export/alpha/own", "rewrite/alpha/own/tensorrt==8.6/fp32")
    assert graph.jobs["build/alpha/own/tensorrt-rtx/fp32"].accelerator == ""
    behind = [cell for cell, chain in graph.of_cell.items() if "build/alpha/own/tensorrt-rtx/fp32" in chain]
    assert [c.gpu for c in behind] == ["none", "H100"]


@pytest.mark.parametrize(
    ("config", "precision", "chain"),
    [
        ("", "fp16", ["rewrite/fp32", "type/fp16"]),
        ('[rewrite]\nplugins = "auto"', "fp16", ["rewrite/fp16"]),
        ('[rewrite]\nplugins = "L2Norm"', "fp16", ["rewrite/fp32", "type/fp16"]),
    ],
)
def test_a_rewrite_is_shared_where_the_precision_decides_no_rule(folder, config, precision, chain):
    (folder / "models" / "alpha.toml").write_text(config)
    text = '[sweep]\ntargets = ["tensorrt==8.6"]\nprecisions = ["{}"]\n[[model]]\nconfig = "models/alpha.toml"\n'
    sweep, cells = matrix(folder, text.format(precision))
    (jobs,) = make_jobs(sweep, cells).of_cell.values()
    ends = [(job.split("/")[0], job.split("/")[-1]) for job in jobs]
    assert [f"{kind}/{last}" for kind, last in ends if kind in ("rewrite", "type")] == chain


def test_what_reads_a_typed_graph_does_not_read_the_rewrite_behind_it(folder):
    graph = make_jobs(*matrix(folder))
    assert graph.jobs["type/alpha/own/tensorrt==8.6/fp16"].reads == (
        "export/alpha/own",
        "rewrite/alpha/own/tensorrt==8.6/fp32",
    )
    check = graph.jobs["check/alpha/own/tensorrt==8.6/fp16"]
    assert check.reads == ("export/alpha/own", "type/alpha/own/tensorrt==8.6/fp16")


def words(graph, cells, id):
    job = graph.jobs[id]
    return [step.words for step in steps_of(job, cells.models[job.cell.model])]


def test_the_commands_are_trtconv_s_own(folder):
    """Every command and option is one that the command line has."""
    import importlib

    from trtconv.cli.options import spread_lists

    sweep, cells = matrix(folder)
    graph = make_jobs(sweep, cells)
    for job in graph.jobs.values():
        for step in steps_of(job, cells.models[job.cell.model]):
            command = importlib.import_module(command_module(step.words[0])).command
            flags = {flag for p in command.params for flag in p.opts}
            arguments = [w.split("=")[0] for w in spread_lists(list(step.words[1:])) if w.startswith("-")]
            assert set(arguments) <= flags, (step.words, set(arguments) - flags)
    assert words(graph, cells, "export/mlp/N=1:2:4") == [(
        "export", f"{folder / 'net.py'}:mlp", "-o", "model.onnx", "--input", "x:float32[N,8]", "--dynamic", "N=1:2:4",
        "--weights", str(folder / "w.safetensors"), "--json",
    )]  # fmt: skip


def test_a_cell_s_precision_stands_for_that_of_its_config(folder):
    (folder / "models" / "alpha.toml").write_text('[build]\nprecision = "fp32"\n')
    sweep, cells = matrix(folder)
    graph = make_jobs(sweep, cells)
    for kind in ("type", "build"):
        ((*command,),) = words(graph, cells, f"{kind}/alpha/own/tensorrt-rtx/fp16")
        assert command[command.index("--precision") + 1] == "fp16"


def test_only(folder):
    _, matrix_ = matrix(folder)
    cells = matrix_.cells
    assert {c.model for c in select_cells(cells, ["mlp"])} == {"mlp"}
    assert {c.gpu for c in select_cells(cells, ["gpu=T4"])} == {"T4"}
    assert len(select_cells(cells, ["model=alpha,precision=fp16", "beta/own/tensorrt==11/*"])) == 5
    assert select_cells(cells, []) == cells
    with pytest.raises(InvalidRequestError, match="matches no cell"):
        select_cells(cells, ["alpah"])


def test_hours_are_scaled_and_priced(folder):
    sweep, cells = matrix(folder)
    graph = make_jobs(sweep, cells)
    seconds = {"build/alpha/own/tensorrt==8.6/fp32/H100": 3600.0, "build/beta/own/tensorrt==8.6/fp32/H100": 7200.0}
    estimates = {(e.kind, e.resource_class): e for e in estimate_jobs(graph.jobs.values(), seconds, {"H100": 2.0})}
    on_gpu = estimates["build", "H100"]
    # Two of three are known; the third is of the same model as the first.
    assert (on_gpu.jobs, on_gpu.timed) == (3, 3)
    assert on_gpu.hours == pytest.approx(4.0)
    assert on_gpu.price == pytest.approx(8.0)
    assert estimates["export", "cpu"].hours is None


REGISTRY = """
def models():
    return {
        "a/one": {"module": "net.py:one", "dynamic": "N=1:2:4", "inputs": ["x:float32[N]"], "variables": {"HOME": "x"}},
        "a/two": {"module": "net.py:two", "spaces": ["N=1"], "precisions": ["bf16"]},
        "b/three": {"config": "models/alpha.toml"},
    }
def nothing():
    return []
def odd():
    return {"x": {"modul": "net.py:x"}}
def both():
    return {"x": {"module": "net.py:x", "config": "models/alpha.toml"}}
def fails():
    raise KeyError("x")
"""
TAKEN = "[[model]]\nregistry = 'registry.py:models'\n"


@pytest.fixture
def registry(folder):
    (folder / "registry.py").write_text(REGISTRY)
    return folder


def test_the_models_of_a_registry(registry):
    sweep, cells = matrix(registry, TAKEN + "names = ['a/*']\n[[exclude]]\nmodel = 'a/two'\n")
    assert [c.id for c in cells.cells] == ["a/one/own/tensorrt-rtx/fp32/none"]
    graph = make_jobs(sweep, cells)
    assert words(graph, cells, "export/a/one/own") == [(
        "export", f"{registry / 'net.py'}:one", "-o", "model.onnx", "--input", "x:float32[N]", "--dynamic", "N=1:2:4",
        "--json",
    )]  # fmt: skip
    assert cells.models["a/one"].variables == (("HOME", "x"),)
    _, cells = matrix(registry, TAKEN + "targets = ['tensorrt==11']\n")
    assert [c.id for c in cells.cells] == [
        "a/one/own/tensorrt==11/fp32/none",
        "a/two/N=1/tensorrt==11/bf16/none",
        "b/three/own/tensorrt==11/fp32/none",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TAKEN + "names = ['c/*']\n", r"has no model 'c/\*'"),
        (TAKEN.replace("models", "nothing"), "did not return models by name"),
        (TAKEN.replace("models", "odd"), r"odd: x: unknown key 'modul'\. Did you mean 'module'"),
        (TAKEN.replace("models", "both"), "both: x: needs one of 'module' and 'config'"),
        (TAKEN.replace("models", "fails"), r"registry\.py:fails' raised KeyError"),
        (TAKEN.replace("models", "model"), r"has no function 'model'\. Did you mean 'models'"),
        (TAKEN.replace("registry.py", "gone.py"), "gone.py"),
        (TAKEN.replace("registry.py", "registry"), r"is not FILE\.py:function"),
        (MODEL + "names = ['x']\n", "has 'names', which choose from a 'registry'"),
        (MODEL + "dynamic = 'N=4:2:1'\n", "is not ordered"),
    ],
)
def test_a_registry_that_cannot_be_is_one_clear_error(registry, text, message):
    with pytest.raises(InvalidRequestError, match=message):
        matrix(registry, text)


def test_the_networks_of_the_checkout_are_such_a_registry(tmp_path):
    from pathlib import Path

    root = Path(__file__).parents[3]
    text = f"[[model]]\nregistry = '{root}/networks/models.py:models'\nnames = ['timm/test_*']\n"
    sweep, cells = matrix(tmp_path, text)
    model = cells.models["timm/test_vit"]
    assert (root / "networks" / "registry.py").samefile(model.spec.rpartition(":")[0])
    (export,) = words(make_jobs(sweep, cells), cells, "export/timm/test_vit/own")
    assert export[export.index("--arg") + 1] == "network=timm/test_vit"
    assert dict(model.variables)["PYTHONPATH"].startswith(str(root))


CONTRACTS = MODEL + "precisions = ['fp32', 'exact']\ntargets = ['tensorrt==8.6']\n[contracts.exact]\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CONTRACTS.replace("contracts.exact", "contracts.exakt"), "'exact' is neither a precision nor a contract"),
        (CONTRACTS + "precisions = ['fp23']\n", "'fp23' is not a precision to search in"),
        (CONTRACTS + "minutes = -1\n", "minutes must be positive, got -1"),
        (CONTRACTS + "metrik = 'top1'\n", r"unknown key 'contracts\.exact\.metrik'\. Did you mean 'metric'"),
        (CONTRACTS + "[contracts.fp16]\n", "a contract cannot be called 'fp16'"),
        (CONTRACTS + "[contracts.'a b']\n", "a contract cannot be called 'a b'"),
    ],
)
def test_a_contract_that_cannot_be_is_one_clear_error(tmp_path, text, message):
    with pytest.raises(InvalidRequestError, match=message):
        read(tmp_path, text)


def test_a_target_searches_only_in_what_it_has(folder):
    _, cells = matrix(folder, CONTRACTS + "precisions = ['bf16']\n")
    assert [c.precision for c in cells.cells] == ["fp32"]
    assert cells.notes == ("tensorrt==8.6 does not compute in exact: 1 cell left out",)
    sweep, cells = matrix(folder, CONTRACTS + "precisions = ['bf16', 'fp16']\ndata = 'd.npz'\n")
    graph = make_jobs(sweep, cells)
    (tune,) = words(graph, cells, "tune/net/own/tensorrt==8.6/exact")
    assert tune == ("tune", "model.onnx", "-o", "tuned", "--target", "tensorrt==8.6", "--data", "d.npz",
                    "--precisions", "fp16", "--json")  # fmt: skip
