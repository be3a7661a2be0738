"""The shell that the action, the hook and the documented snippets run, and the files that it writes."""

import json
import os
import re
import stat
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.check.models import small_net, write_pair
from trtconv.check.gate.baseline import RATIOS, parse_ratios
from trtconv.check.gate.budgets import Budgets, parse_budgets
from trtconv.core.config import read_config

ROOT = Path(__file__).parents[1]
DOC = (ROOT / "docs" / "how-to" / "ci.md").read_text()
ACTION = (ROOT / "action.yml").read_text()


def fenced(language, heading):
    """The first code block of a language after a heading of the page."""
    return re.search(rf"## {heading}\n.*?```{language}\n(.*?)```", DOC, re.S)[1]


def run_blocks():
    """The `run: |` blocks of the action by the name of their step."""
    steps = re.split(r"\n    - name: ", ACTION)[1:]
    return {s.splitlines()[0]: re.sub(r"(?m)^ {8}", "", s.split("run: |\n")[1]) for s in steps if "run: |\n" in s}


@pytest.fixture
def checkout(tmp_path):
    """A checkout: `out/` with a model and its reference, a config, and `trtconv` and `pip` on the PATH."""
    (tmp_path / "out").mkdir()
    write_pair(tmp_path / "out")
    (tmp_path / "trtconv.toml").write_text("[check]\nrtol = 1e-4\n\n[check.budgets]\nplugin_nodes = 0\n")
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, body in (("trtconv", f'exec "{sys.executable}" -m trtconv "$@"'), ("pip", "exit 0")):
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(stat.S_IRWXU)
    return tmp_path


def shell(checkout, script, **environment):
    defaults = {"PATH": f"{checkout / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "PYTHON": sys.executable}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=checkout,
        capture_output=True,
        text=True,
        env={**defaults, **environment},
        check=False,
    )


def act(checkout, **inputs):
    """Run the action's check step as GitHub does; returns the process and the outputs."""
    names = ("SUBJECT", "CONFIG", "REFERENCE", "BASELINE", "BASELINE_ENGINE", "OPTIONS", "REPRO", "SOURCE_CHECK")
    switches = {"REPRO": "true", "SOURCE_CHECK": "true", "CHECKOUT": str(ROOT)}
    values = dict.fromkeys(names, "") | {"REPORTS": "reports dir"} | switches | inputs
    files = {n: str(checkout / n.lower()) for n in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    process = shell(checkout, run_blocks()["Check"], **values, **files)
    outputs = dict(line.split("=", 1) for line in (checkout / "github_output").read_text().splitlines())
    return process, outputs


def test_the_action_passes_and_writes_every_report(checkout):
    process, outputs = act(checkout, SUBJECT="out/model.trt.onnx", CONFIG="trtconv.toml", OPTIONS="--rtol 1e-3 -q")
    assert process.returncode == 0, process.stderr
    assert outputs == {"exit-code": "0", "passed": "true", "reports": "reports dir"}
    folder = checkout / "reports dir"
    names = {p.name for p in folder.iterdir()}
    assert names == {"report.json", "junit.xml", "report.sarif", "report.md", "report.html", "gl-code-quality.json"}
    assert json.loads((folder / "report.json").read_text())["passed"] is True
    assert json.loads((folder / "report.sarif").read_text())["version"] == "2.1.0"
    assert int(ET.parse(folder / "junit.xml").getroot()[0].get("failures")) == 0
    assert "✅" in (checkout / "github_step_summary").read_text()


def test_the_action_fails_with_the_code_the_annotation_and_a_repro(checkout):
    write_pair(checkout / "out", rewritten=small_net(eps=0.1, norm_rule="l2norm"))
    process, outputs = act(checkout, SUBJECT="out/model.trt.onnx")
    assert process.returncode == 3
    assert (outputs["exit-code"], outputs["passed"]) == ("3", "false")
    assert "::error file=net.py,line=13," in process.stdout
    assert (checkout / "reports dir" / "repro.zip").stat().st_size > 500
    assert "❌" in (checkout / "github_step_summary").read_text()


def test_a_repro_gets_those_options_of_the_check_that_it_takes(checkout):
    write_pair(checkout / "out", rewritten=small_net(eps=0.1, norm_rule="l2norm"))
    options = "--power 2 --processes 5 --seed 3 --dynamic N=1:2:4 --rtol 1e-3 --atol=1e-4"
    process, _ = act(checkout, SUBJECT="out/model.trt.onnx", OPTIONS=options, SOURCE_CHECK="false")
    assert process.returncode == 3, process.stderr
    assert "no repro was cut" not in process.stdout
    assert (checkout / "reports dir" / "repro.zip").stat().st_size > 500


def test_options_of_a_check_and_of_a_repro():
    words = ["--dynamic", "N=1:2:4", "H=3", "--layers", "--against", "x.py:f", "-q", "--html", "r", "--config", "a b"]
    program = [sys.executable, str(ROOT / "ci" / "repro_options.py"), *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    output = subprocess.run(program, capture_output=True, text=True, env=environment, check=True).stdout
    assert set(output.split("\0")) == {"--dynamic=N=1:2:4", "--dynamic=H=3", "--quiet", "--config=a b", ""}


def test_the_action_takes_a_baseline(checkout):
    trtconv = "trtconv check out/model.trt.onnx --baseline baseline.json --update-baseline -q"
    assert shell(checkout, trtconv).returncode == 0
    data = json.loads((checkout / "baseline.json").read_text())
    data["extras"]["measured"]["latency_ms at opt"] = {"value": 1e-6, "runs": [1e-6] * 7}
    (checkout / "baseline.json").write_text(json.dumps(data))
    process, outputs = act(checkout, SUBJECT="out/model.trt.onnx", BASELINE="baseline.json")
    assert (process.returncode, outputs["exit-code"]) == (6, "6")
    assert "trtconv%3A budget" in process.stdout


def test_inputs_of_the_action_are_no_shell(checkout):
    process, _ = act(checkout, SUBJECT="$(touch owned).onnx", OPTIONS="; touch owned")
    assert process.returncode == 2
    assert not (checkout / "owned").exists()
    assert "${{ inputs" not in "".join(run_blocks().values()), "inputs reach the shell by the environment only"


def test_every_input_of_the_action_is_used():
    declared = re.findall(r"(?m)^  (\w[\w-]*):\n    description", ACTION.split("outputs:")[0])
    assert set(declared) == set(re.findall(r"inputs\.([\w-]+)", ACTION))


def test_the_gitlab_script_runs(checkout):
    block = re.findall(r"```yaml\n(.*?)```", DOC.split("## GitLab\n")[1], re.S)[1]
    lines = re.findall(r"(?m)^    - (.*)$", block.split("script:")[1].split("artifacts:")[0])
    process = shell(checkout, "\n".join(lines), MODEL="out/model.trt.onnx")
    assert process.returncode == 0, process.stderr
    for name in ("junit.xml", "report.html", "quality.json"):
        assert (checkout / name).exists()
        assert name in block.split("artifacts:")[1]


def test_the_gitlab_component_runs(checkout):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    write_pair(checkout / "out", rewritten=small_net(eps=0.1, norm_rule="l2norm"))
    text = (ROOT / "templates" / "check.yml").read_text()
    inputs = yaml.safe_load(text.split("\n---\n")[0])["spec"]["inputs"]
    values = {name: facts.get("default") for name, facts in inputs.items()}
    assert {name for name, value in values.items() if value is None} == {"subject", "requirement"}
    values |= {"subject": "out/model.trt.onnx", "requirement": "none"}
    assert set(re.findall(r"\$\[\[ inputs\.([\w-]+) \]\]", text)) == set(inputs)
    filled = re.sub(r"\$\[\[ inputs\.([\w-]+) \]\]", lambda m: json.dumps(values[m[1]]).strip('"'), text)
    job = yaml.safe_load(filled.split("\n---\n")[1])["trtconv-check"]
    variables = {name: str(value) for name, value in job["variables"].items()}
    process = shell(checkout, "\n".join(job["script"]), **variables)
    assert process.returncode == 3, process.stderr
    for path in job["artifacts"]["reports"].values():
        assert (checkout / path).is_file()
    entries = json.loads((checkout / job["artifacts"]["reports"]["codequality"]).read_text())
    assert ("major", "net.py", 13) in [
        (e["severity"], e["location"]["path"], e["location"]["lines"]["begin"]) for e in entries
    ]


def test_the_gitlab_component_installs_what_is_pinned_alone():
    text = (ROOT / "templates" / "check.yml").read_text()
    pinned = re.compile(re.search(r"(?m)^      regex: (.*)$", text)[1])
    commit = "trtconv @ git+https://host/trtconv@" + "0" * 40
    for requirement in (
        "none",
        commit,
        "./trtconv",
        "https://host/trtconv-1.0-py3-none-any.whl",
        "trtconv[sign]==1.2.3",
    ):
        assert pinned.search(requirement), requirement
    for requirement in (
        "trtconv",
        "trtconv[cpu]",
        "trtconv>=1",
        "trtconv==1.*",
        "trtconv @ git+https://host/trtconv@main",
    ):
        assert not pinned.search(requirement), requirement


def test_nothing_installs_trtconv_by_its_name():
    """Whoever holds the name in an index could run code wherever it is installed so."""
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    written = [
        f
        for f in files
        if re.search(r"\.(md|yml|yaml|py|toml|html|sh)$|Dockerfile$", f) and f != "tests/test_ci_files.py"
    ]
    bare = re.compile(r"pip install [^\n`#]*[\s\"']trtconv(\[[\w,]*\])?[\"']?(\s|$|`)(?! *@)")
    for name in written:
        for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
            assert not bare.search(line), f"{name}: {line}"


def test_the_jenkins_script_runs(checkout):
    block = fenced("groovy", "Jenkins")
    process = shell(checkout, "\n".join(re.findall(r"sh '(.*)'", block)))
    assert process.returncode == 0, process.stderr
    assert (checkout / "junit.xml").exists()
    assert block.count("{") == block.count("}")


def test_the_hook_runs_with_the_documented_arguments(checkout):
    hook = (ROOT / ".pre-commit-hooks.yaml").read_text()
    entry = re.search(r"(?m)^  entry: (.*)$", hook)[1]
    arguments = re.search(r"args: \[(.*)\]", fenced("yaml", "pre-commit"))[1].replace(",", "")
    assert re.search(r"- id: ([\w-]+)", hook)[1] in DOC
    process = shell(checkout, f"{entry} {arguments}")
    assert process.returncode == 0, process.stderr
    files = re.compile(re.search(r"files: '(.*)'", hook)[1])
    assert files.search("out/model.trt.onnx")
    assert files.search("out/model.reference.safetensors")
    assert not files.search("net.py")


def test_the_documented_budgets_and_ratios_are_those_that_exist(tmp_path):
    (tmp_path / "a.toml").write_text(fenced("toml", "Budgets"))
    (tmp_path / "b.toml").write_text(fenced("toml", "A baseline"))
    budgets = read_config(tmp_path / "a.toml").check.budgets
    assert set(budgets) == set(Budgets.__dataclass_fields__)
    assert parse_budgets(budgets).engine_bytes == 64 << 20
    ratios = read_config(tmp_path / "b.toml").check.baseline
    assert parse_ratios(ratios) == dict(RATIOS) == ratios


@pytest.mark.parametrize("name", ["action.yml", ".pre-commit-hooks.yaml"])
def test_the_files_are_yaml(name):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    assert yaml.safe_load((ROOT / name).read_text())


def test_the_snippets_are_yaml():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    blocks = re.findall(r"```yaml\n(.*?)```", DOC, re.S)
    assert len(blocks) == 4
    assert all(isinstance(yaml.safe_load(b), dict) for b in blocks)


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / "action.yml"], ids=lambda p: p.name)
def test_foreign_actions_are_pinned_by_commit(path):
    uses = re.findall(r"uses: (\S+)(.*)", path.read_text())
    assert uses or path.name == "action.yml"
    for action, comment in uses:
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment), "the version stands beside the commit"
    pins = {tuple(a.split("@")) for a, _ in uses}
    assert len({name for name, _ in pins}) == len(pins)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_workflows_may_only_read_and_keep_no_credentials(path):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job.get("permissions", {}) in ({}, {"id-token": "write"} if name == "publish" else {})
        assert job["timeout-minutes"] <= 90
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


def test_the_documented_actions_are_those_that_ours_use():
    documented = set(re.findall(r"uses: (actions/\S+)", DOC))
    ours = {a for path in WORKFLOWS for a in re.findall(r"uses: (actions/\S+)", path.read_text())}
    assert documented <= ours


def test_the_images_are_pinned_by_digest():
    images = re.findall(r"(?m)^FROM (\S+)", (ROOT / "docker" / "Dockerfile").read_text())
    assert images
    assert all(re.fullmatch(r"[\w./:-]+@sha256:[0-9a-f]{64}", image) for image in images)


@pytest.mark.parametrize(
    ("inputs", "calls"),
    [
        ({}, ["--constraint CHECKOUT/constraints.txt CHECKOUT"]),
        ({"EXTRAS": "gpu"}, ["--constraint CHECKOUT/constraints.txt CHECKOUT[gpu]"]),
        (
            {"EXTRAS": "gpu,sign", "TORCH": "true"},
            [
                "--constraint CHECKOUT/constraints.txt --index-url https://download.pytorch.org/whl/cpu torch",
                "--constraint CHECKOUT/constraints.txt CHECKOUT[gpu,sign,export]",
            ],
        ),
    ],
)
def test_the_action_installs_its_own_checkout(checkout, inputs, calls):
    python = checkout / "bin" / "python"
    python.write_text('#!/bin/sh\necho "$@" >> calls\n')
    python.chmod(stat.S_IRWXU)
    values = {"PYTHON": str(python), "EXTRAS": "", "TORCH": "false", "CHECKOUT": "CHECKOUT"} | inputs
    process = shell(checkout, run_blocks()["Install trtconv"], **values)
    assert process.returncode == 0, process.stderr
    assert (checkout / "calls").read_text().splitlines() == [f"-m pip install --quiet {call}" for call in calls]


def test_extras_are_no_requirement(checkout):
    values = {"PYTHON": "false", "EXTRAS": "x] @ https://example.com/evil.whl", "TORCH": "false", "CHECKOUT": "."}
    assert shell(checkout, run_blocks()["Install trtconv"], **values).returncode == 2


def test_the_tag_that_is_released_is_the_version():
    import trtconv

    script = re.search(r"run: (test .*)", (ROOT / ".github" / "workflows" / "release.yml").read_text())[1]
    for tag, code in ((f"v{trtconv.__version__}", 0), ("v0.0.0", 1)):
        assert (
            subprocess.run(
                ["bash", "-c", script], cwd=ROOT, env={**os.environ, "GITHUB_REF_NAME": tag}, check=False
            ).returncode
            == code
        )


def test_the_citation_has_the_version():
    import trtconv

    assert f"version: {trtconv.__version__}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")), ids=lambda p: p.name)
def test_the_issue_templates_are_forms(path):
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    form = yaml.safe_load(path.read_text())
    if path.name == "config.yml":
        assert all(link["url"].startswith("https://") for link in form["contact_links"])
        return
    assert {"name", "description", "body"} <= set(form)
    assert all(field["type"] in ("markdown", "textarea", "input", "dropdown") for field in form["body"])
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
