"""The files in docs/how-to/sweep.md are what they claim to be."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from trtconv.sweep.plan.file import validate_sweep
from trtconv.sweep.plan.sections import KINDS

ROOT = Path(__file__).parents[2]
DOC = (ROOT / "docs" / "how-to" / "sweep.md").read_text()
QUANTITY = re.compile(r"\d+(\.\d+)?(m|Ki|Mi|Gi|Ti)?")

# Fields of KubeRay's ray.io/v1 RayJob and of the pod parts that are used (ray-project.github.io/kuberay/reference/api,
# kubernetes.io/docs/reference/kubernetes-api): field -> its type, a table of fields, or [a table] for a list of them.
_VOLUMES = [{"name": str, "persistentVolumeClaim": {"claimName": str, "readOnly": bool}}]
_RESOURCES = {"cpu": QUANTITY, "memory": QUANTITY, "nvidia.com/gpu": QUANTITY}
_CONTAINERS = [
    {
        "name": str,
        "image": str,
        "env": [{"name": str, "value": str}],
        "resources": {"requests": _RESOURCES, "limits": _RESOURCES},
        "volumeMounts": [{"name": str, "mountPath": str, "readOnly": bool}],
    }
]
_POD = {"spec": {"containers": _CONTAINERS, "volumes": _VOLUMES}}
RAY_JOB = {
    "apiVersion": re.compile(r"ray\.io/v1"), "kind": re.compile("RayJob"), "metadata": {"name": str},
    "spec": {
        "entrypoint": str, "submissionMode": re.compile("K8sJobMode|HTTPMode|InteractiveMode|SidecarMode"),
        "shutdownAfterJobFinishes": bool, "ttlSecondsAfterFinished": int, "backoffLimit": int,
        "activeDeadlineSeconds": int, "runtimeEnvYAML": str, "suspend": bool,
        "rayClusterSpec": {
            "rayVersion": str, "enableInTreeAutoscaling": bool,
            "headGroupSpec": {"rayStartParams": {"num-cpus": str}, "template": _POD, "serviceType": str},
            "workerGroupSpecs": [{"groupName": str, "replicas": int, "minReplicas": int, "maxReplicas": int,
                                  "rayStartParams": {}, "template": _POD}],
        },
    },
}  # fmt: skip


def fenced(language):
    return re.findall(rf"```{language}\n(.*?)```", DOC, re.S)


def mistakes(data, schema, path=""):
    """What does not fit the schema, as `path: reason`."""
    if isinstance(schema, list):
        if not isinstance(data, list):
            return [f"{path}: no list"]
        return [m for i, item in enumerate(data) for m in mistakes(item, schema[0], f"{path}[{i}]")]
    if isinstance(schema, dict):
        if not isinstance(data, dict):
            return [f"{path}: no object"]
        unknown = [f"{path}.{key}: unknown" for key in data if key not in schema]
        return unknown + [m for k, v in data.items() if k in schema for m in mistakes(v, schema[k], f"{path}.{k}")]
    if isinstance(schema, re.Pattern):
        return [] if schema.fullmatch(str(data)) else [f"{path}: {data!r}"]
    return [] if type(data) is schema else [f"{path}: {data!r} instead of {schema.__name__}"]


def manifest():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    (data,) = [d for d in map(yaml.safe_load, fenced("yaml")) if d.get("kind") == "RayJob"]
    return data


def test_the_manifest_fits_kuberay_s_fields():
    data = manifest()
    assert mistakes(data, RAY_JOB) == []
    cluster = data["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        volumes = {v["name"] for v in pod["volumes"]}
        for container in pod["containers"]:
            assert {m["name"] for m in container["volumeMounts"]} <= volumes
            assert container["resources"]["requests"] == container["resources"]["limits"]
        replicas = [group.get(k, 0) for k in ("minReplicas", "replicas", "maxReplicas")]
        assert replicas == sorted(replicas)
    pins = re.search(r"ray==(\S+)", (Path(__file__).parents[2] / "constraints.txt").read_text())
    assert cluster["rayVersion"] == pins[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["spec"].update(entryPoint="x"), ".spec.entryPoint: unknown"),
        (lambda d: d["spec"].update(backoffLimit="1"), ".spec.backoffLimit: '1' instead of int"),
        (
            lambda d: d["spec"]["rayClusterSpec"]["workerGroupSpecs"][0].update(groupName=3),
            "groupName: 3 instead of str",
        ),
        (lambda d: d.update(kind="RayJobs"), ".kind: 'RayJobs'"),
    ],
)
def test_a_wrong_manifest_does_not(change, message):
    data = manifest()
    change(data)
    assert any(message in m for m in mistakes(data, RAY_JOB))


def test_the_commands_exist():
    """Entry points and examples use options that the command has."""
    from trtconv.cli.commands.sweep import command

    flags = {flag for p in command.params for flag in p.opts}
    lines = re.findall(r"(?:^|: |^- run: )trtconv sweep ([^\n#&]*)", DOC, re.M)
    assert len(lines) >= 5
    for line in lines:
        assert {w for w in line.split() if w.startswith("-")} <= flags, line


def test_the_slurm_script_is_bash(tmp_path):
    (script,) = fenced("bash")
    path = tmp_path / "sweep.sbatch"
    path.write_text(script)
    ended = subprocess.run(["bash", "-n", str(path)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", str(path)], check=True)
    options = re.findall(r"^#SBATCH --([\w-]+)", script, re.M)
    # slurm.schedmd.com/sbatch.html
    assert set(options) <= {"job-name", "nodes", "ntasks-per-node", "cpus-per-task", "gpus-per-node", "exclusive",
                            "time", "signal"}  # fmt: skip


def test_the_documented_file_is_valid_and_every_kind_is_told():
    from trtconv.core.config import toml_reader

    text = fenced("toml")[0]
    sweep = validate_sweep(toml_reader().loads(text), "docs")
    assert sweep.include[0].gpu == "T4"
    assert all(re.search(rf"^\| {kind} \|", DOC, re.M) for kind in KINDS)


def test_the_documented_contract_is_the_example_and_a_search():
    from trtconv.core.config import toml_reader
    from trtconv.sweep.plan.cells import make_matrix
    from trtconv.sweep.plan.commands import steps_of
    from trtconv.sweep.plan.jobs import make_jobs

    folder = ROOT / "examples" / "digits"
    text = fenced("toml")[1]
    assert text == (folder / "sweep.toml").read_text()
    for gpu, where in (("none", ""), ("H100", "H100")):
        sweep = validate_sweep(toml_reader().loads(text.replace('gpus = ["none"]', f'gpus = ["{gpu}"]')), "docs")
        matrix = make_matrix(sweep, folder)
        graph = make_jobs(sweep, matrix)
        tune = next(job for job in graph.jobs.values() if job.kind == "tune")
        assert (tune.accelerator, tune.needs) == (where, ("export/cnn/own",))
        (step,) = steps_of(tune, matrix.models["cnn"])
        assert " ".join(step.words) == (
            "tune model.onnx -o tuned --target tensorrt-rtx --dynamic N=1:16:32 --metric top1 --max-drop 0.5% "
            "--data data.py:digits --precisions fp16,int8 --json"
        )
        assert (folder / "data.py").is_file()
