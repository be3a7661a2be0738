"""Export and quantise what `precision.gpu_run` measures, on a machine with torch: OUT [digits|speed|variants|KIND ...]

Each network ends in a folder with one ONNX file per precision for TensorRT 8.6. The trained ones carry the samples on
which they are judged; the weights of the large ones are random and are drawn again by `gpu_run` (`recipes.py`).
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.precision.cases import CASES, DIGITS, DYNAMIC, SPEED, SPEED_INPUT, TARGET, VARIANTS, Case
from benchmarks.precision.engines import quantised_layers
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import ExportRequest, ModuleSource, RewriteRequest
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import parse_target
from trtconv.core.tensors import parse_tensor

# Random images for the scales of the large networks; what they compute is of no use anyway.
SYNTHETIC = 40


def export(source: ModuleSource, tensor: str, dynamic: str, output: Path) -> None:
    from trtconv.export import export_model

    request = ExportRequest(source, (parse_tensor(tensor),), parse_space([dynamic]), output)
    export_model(request, SilentProgress())


def rewrite(
    folder: Path, name: str, precision: str, data: str = "", proof: bool = True, target: str = TARGET, **values: Any
) -> Path:
    """`folder/name.onnx` in a precision; what is not quantised may compute in fp16."""
    from trtconv.rewrite import rewrite_model

    values.setdefault("rest", "fp16" if precision == "int8" else "fp32")
    request = RewriteRequest(
        folder / "model.onnx",
        folder / f"{name}.onnx",
        parse_target(target),
        precision=precision,
        data=data,
        proof=proof,
        **values,
    )
    rewrite_model(request, SilentProgress())
    return request.output


def prepare_digits(case: Case, folder: Path) -> None:
    from trtconv.core.data.source import DataSource, read_data
    from trtconv.core.data.split import split
    from trtconv.core.model.file import load_model, signature

    source = ModuleSource(f"{DIGITS / 'networks.py'}:make", args=(("kind", case.kind),))
    export(source, case.input, DYNAMIC, folder / "model.onnx")
    for precision in ("fp32", "fp16", "int8"):
        rewrite(folder, precision, precision, case.source if precision == "int8" else "")
    described = signature(load_model(folder / "model.onnx"))
    judging = split(read_data(DataSource(case.source), described.inputs)).judging
    rows, labels = np.stack([s.inputs["x"] for s in judging]), [s.label for s in judging]
    np.savez_compressed(folder / "judging.npz", x=rows, **label_columns(labels))
    if case.kind == "cnn":
        write_exact(folder)


def write_exact(folder: Path) -> None:
    """What the FP32 network itself gives as labels: a contract on these that no INT8 keeps."""
    from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

    with np.load(folder / "judging.npz", allow_pickle=False) as data:
        x = data["x"]
    runner = OnnxRuntimeRunner(folder / "model.onnx")
    scores = [next(iter(runner({"x": x[i : i + 32]}).values())) for i in range(0, len(x), 32)]
    np.savez_compressed(folder / "exact.npz", x=x, labels=np.concatenate(scores))


def label_columns(labels: list) -> dict[str, np.ndarray]:
    """Labels as columns of an npz: one array, or one for each key of a dict."""
    if isinstance(labels[0], dict):
        return {f"label_{key}": np.stack([label[key] for label in labels]) for key in labels[0]}
    return {"label": np.stack([np.asarray(label) for label in labels])}


def prepare_speed(kind: str, folder: Path) -> None:
    from benchmarks.precision.networks import drawn_weights, make
    from benchmarks.precision.recipes import strip

    source = ModuleSource(str(Path(__file__).with_name("networks.py")) + ":make", args=(("kind", kind),))
    export(source, SPEED_INPUT, "N=1:1:2", folder / "model.onnx")
    images = np.random.default_rng(0).standard_normal((SYNTHETIC, 3, 224, 224), dtype=np.float32)
    np.savez(folder / "synthetic.npz", x=np.clip(images, -2, 2))
    weights = drawn_weights(make(kind))
    for precision in ("fp16", "int8"):
        path = rewrite(folder, precision, precision, str(folder / "synthetic.npz") * (precision == "int8"), proof=False)
        print(f"  {kind} {precision}: {strip(path, weights)} bytes without its weights", flush=True)


def prepare_variants(case: Case, folder: Path) -> None:
    """The network quantised in other ways, beside the usual one."""
    for name, how in VARIANTS[case.kind].items():
        values: dict[str, Any] = {"rest": how.get("rest", "fp16")}
        if "without" in how:
            values["quantise_only"] = layers_without(folder / "int8.onnx", how["without"])
        rewrite(folder, name, "int8", case.source, **values)


def layers_without(model: Path, kind: str) -> tuple[str, ...]:
    """The quantised layers of a model but for those of one kind."""
    graph = onnx.load(str(model)).graph
    groups = {n.name: next((a.i for a in n.attribute if a.name == "group"), 1) for n in graph.node}
    operators = {n.name: n.op_type for n in graph.node}
    is_left_out = {
        name: groups[name] > 1 if kind == "depthwise" else operators[name] == kind for name in quantised_layers(model)
    }
    return tuple(name for name, left_out in is_left_out.items() if not left_out)


def main(out: Path, names: list[str]) -> None:
    kinds = dict.fromkeys(kind for kind, _ in SPEED)
    if names[:1] == ["variants"]:
        for kind in names[1:] or VARIANTS:
            prepare_variants(CASES[kind], out / kind)
        return
    groups = {"digits": list(CASES), "speed": list(kinds)}
    chosen = [kind for name in names or groups for kind in groups.get(name, [name])]
    for kind in chosen:
        start, folder = time.monotonic(), out / kind
        folder.mkdir(parents=True, exist_ok=True)
        if kind in CASES:
            prepare_digits(CASES[kind], folder)
        else:
            prepare_speed(kind, folder)
            for surplus in ("model.onnx", "synthetic.npz"):
                (folder / surplus).unlink()
        for surplus in folder.glob("*.data.safetensors" if kind in CASES else "*.safetensors"):
            surplus.unlink()
        (folder / "prepared.json").write_text(json.dumps({"kind": kind, "trained": kind in CASES}))
        size = sum(p.stat().st_size for p in folder.iterdir() if p.is_file())
        print(f"{kind}: {size / 2**20:.2f} MiB after {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
