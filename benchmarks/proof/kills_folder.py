"""What a kill left in an output folder: whole files, and a set of one version or one that is told to be mixed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from trtconv.core.errors import TrtconvError

TENSORRT_HEADER = b"trtf" + bytes(20) + bytes((8, 6, 0, 0))
PLAN_BYTES = 8 << 20


def write_engine(folder: Path, width: int) -> None:
    """What `package` takes: a file with TensorRT's header and its manifest. It never reads what follows the header."""
    from trtconv.backends.tensorrt.manifest import EngineManifest, write_manifest
    from trtconv.core.files.digest import sha256_file
    from trtconv.core.shape_space.space import parse_space
    from trtconv.core.tensors import parse_tensor

    folder.mkdir()
    engine = folder / "net.engine"
    engine.write_bytes(TENSORRT_HEADER + bytes([width]) * PLAN_BYTES)
    manifest = EngineManifest(
        engine_sha256=sha256_file(engine), engine_bytes=engine.stat().st_size, model_files={"m.onnx": "00"},
        backend="tensorrt", version="8.6.0", trtconv="0", inputs=(parse_tensor("x:float32[N,3,8,8]"),),
        outputs=(parse_tensor(f"y:float32[N,{width},8,8]"),), space=parse_space(["N=1:1:2"]),
        profiles=({"x": ((1, 3, 8, 8), (1, 3, 8, 8), (2, 3, 8, 8))},), precision="fp32",
    )  # fmt: skip
    write_manifest(engine, manifest)


def state_of_set(out: Path) -> str:
    """`consistent`, `named as mixed: ...`, or what must not be: `damaged: ...`, `unseen mixture of ...`."""
    from trtconv.check.compare.engine_files import engine_problems
    from trtconv.check.compare.reference_fit import reference_binding
    from trtconv.core.trust.signed_set import read_set, require_consistent

    damage = _damage(out)
    if damage:
        return f"damaged: {damage}"
    engine, rewritten = out / "model.engine", out / "model.trt.onnx"
    widths = _widths(out)
    try:
        findings = [f for f in engine_problems(engine, None) if f.level == "error"] if engine.exists() else []
        findings += [f for f in reference_binding(rewritten, None) if f.level == "error"]
        require_consistent(read_set(rewritten))
    except TrtconvError as error:
        return f"named as mixed: {error.message}"
    if findings:
        return f"named as mixed: {findings[0].message}"
    return f"unseen mixture of {widths}" if len(set(widths.values())) > 1 else "consistent"


def state_of_repository(repository: Path) -> str:
    """The same for a Triton repository, of which the plan and the config have to be of one version."""
    from trtconv.build.inspection import engine_facts

    plan, config = repository / "net" / "1" / "model.plan", repository / "net" / "config.pbtxt"
    if not plan.exists():
        return "consistent" if not config.exists() else "damaged: a config without its plan"
    content = plan.read_bytes()
    if len(content) != len(TENSORRT_HEADER) + PLAN_BYTES or len(set(content[len(TENSORRT_HEADER) :])) != 1:
        return "damaged: model.plan"
    try:
        engine_facts(plan)
    except TrtconvError as error:
        return f"named as mixed: {error.message}"
    text = config.read_text() if config.exists() else ""
    if config.exists() and not text.endswith("}\n"):
        return "damaged: config.pbtxt"
    fits = not text or f"dims: [ {content[-1]}, 8, 8 ]" in text
    return "consistent" if fits else f"unseen mixture of a plan of {content[-1]} channels and another config"


def leftovers(*folders: Path) -> list[str]:
    """Hidden and temporary names of trtconv in these folders."""
    paths = [p for folder in folders if folder.exists() for p in folder.rglob("*")]
    return [p.name for p in paths if "trtconv-" in p.name and (p.name.startswith((".", "trtconv-")))]


def builders(temporary: Path) -> list[int]:
    """Processes of a campaign with this folder for temporary files that build, or run a command."""
    mine = f"TMPDIR={temporary}".encode()
    pids = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            builds = b"builder.isolated" in (folder / "cmdline").read_bytes()
            if builds and mine in (folder / "environ").read_bytes():
                pids.append(int(folder.name))
        except OSError:
            continue
    return pids


def children_of(pid: int) -> list[int]:
    """The children of a process's main thread."""
    try:
        return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def runs(pid: int) -> bool:
    """True while a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def newest_change(*folders: Path) -> int:
    """The latest time of change of the folders, in ns: it moves with each file that appears, is renamed or goes."""
    times = [0]
    for folder in folders:
        for path in (folder, *folder.rglob("*")) if folder.exists() else ():
            try:
                times.append(os.stat(path).st_mtime_ns)
            except OSError:
                continue
    return max(times)


def _damage(out: Path) -> str:
    """The first file that is not whole."""
    from trtconv.core.artifacts import read_json
    from trtconv.core.model.file import load_model
    from trtconv.proof.reference import read_reference_info

    readers = {".onnx": load_model, ".json": read_json, ".safetensors": read_reference_info}
    for path in sorted(out.iterdir()) if out.exists() else []:
        if path.name.startswith("."):
            continue
        try:
            readers.get(path.suffix, Path.read_bytes)(path)
        except TrtconvError as error:
            return error.message
    return ""


def _widths(out: Path) -> dict[str, Any]:
    """Channels of the output by file, from which version it is."""
    from safetensors import safe_open

    from trtconv.core.artifacts import read_json
    from trtconv.core.model.file import load_model

    widths: dict[str, Any] = {}
    for name in ("model.onnx", "model.trt.onnx"):
        if (out / name).exists():
            widths[name] = load_model(out / name).graph.output[0].type.tensor_type.shape.dim[1].dim_value
    if (out / "model.engine.json").exists():
        widths["model.engine.json"] = read_json(out / "model.engine.json")["outputs"][0]["dims"][1]
    if (out / "model.reference.safetensors").exists():
        with safe_open(str(out / "model.reference.safetensors"), framework="numpy") as stream:
            name = next(n for n in stream.keys() if n.startswith("p0/output/"))  # noqa: SIM118
            widths["reference"] = stream.get_slice(name).get_shape()[1]
    return widths
