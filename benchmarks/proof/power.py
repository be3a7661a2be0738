"""The power of `trtconv check` on the five heads of the tests, on every example and on networks of the zoo.

    python -m benchmarks proof.power [--faults 60] [--only refinedet --only vision/aspp] [-o FILE]

Each network is exported, small faults are put into its graph one at a time, and those that the check reports are
counted. The result has every fault that was missed, with its size. The goal is a share of 0.99 on each network.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.proof.power.heads import HEADS, SPACE, SPEC, head_model, samples_of
from tests.zoo.registry import all_cases
from trtconv.check import check_model
from trtconv.core.artifacts import write_json
from trtconv.core.errors import TrtconvError
from trtconv.core.model.file import save_model
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import CheckRequest, ExportRequest, ModuleSource
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.export import export_model
from trtconv.frontend.assemble import export_request, load_config, output_tolerances, tolerance_of
from trtconv.frontend.command_line import CommandLine
from trtconv.proof.reference import ReferenceInfo, write_reference

ROOT = Path(__file__).parents[2]
EXAMPLES = tuple(sorted(p.stem for p in (ROOT / "examples").glob("*.toml")))
ZOO = (
    "vision/deep_unet", "vision/aspp", "vision/carafe", "vision/convex_upsample", "vision/yolo_decode",
    "vision/distribution_boxes", "vision/disparity", "vision/coord_conv", "transformers/axial_attention",
    "transformers/swin_bias_and_mask", "transformers/detr_queries", "transformers/grouped_query_rotary",
    "transformers/time_embedding", "recurrent/crnn", "recurrent/residual_block", "recurrent/lstm_two_layers_both_ways",
    "mixed/transformer_decoder", "mixed/hypercolumn", "layers/modulated_conv", "layers/conv_lstm",
)  # fmt: skip
GOAL = 0.99


def make_head(name: str, folder: Path) -> Path:
    """One of the five heads with what ONNX Runtime gives for it as its reference."""
    model = head_model(name)
    samples = samples_of(model)
    info = ReferenceInfo(tuple(s.point for s in samples), (SPEC,), ("y",), SPACE)
    write_reference(folder / "model.reference.safetensors", info, samples)
    save_model(model, folder / "model.onnx")
    return folder / "model.onnx"


def make_example(name: str, folder: Path) -> Path:
    """An example, exported as its config says."""
    config = load_config(ROOT / "examples" / f"{name}.toml")
    request = export_request(config, None, folder / "model.onnx", CommandLine())
    return export_model(request, SilentProgress()).model


def make_zoo(name: str, folder: Path) -> Path:
    """A case of the zoo, exported."""
    case = all_cases()[name]
    source = ModuleSource("tests.zoo.registry:make", args=(("case", name),), base=ROOT)
    specs = tuple(parse_tensor(t) for t in case.inputs)
    request = ExportRequest(source, specs, parse_space([case.space]), folder / "model.onnx")
    return export_model(request, SilentProgress()).model


def _request(group: str, name: str, model: Path) -> CheckRequest:
    """The check as its user would run it: an example with the limits of its config."""
    if group != "example":
        return CheckRequest(model)
    config = load_config(ROOT / "examples" / f"{name}.toml")
    limits = tolerance_of(config, CommandLine())
    return CheckRequest(model, tolerance=limits, outputs=output_tolerances(config.check, limits))


def measure(group: str, name: str, faults: int, folder: Path) -> dict[str, Any]:
    """One network: the counts, the missed faults, and the seconds of the export and the faults."""
    makers = {"head": make_head, "example": make_example, "zoo": make_zoo}
    started = time.monotonic()
    try:
        # A folder that is kept saves the export when the comparison alone changed.
        model = folder / "model.onnx"
        exported = model if model.exists() else makers[group](name, folder)
        export_seconds = time.monotonic() - started
        report = check_model(replace(_request(group, name, exported), power=faults, source_check=False))
    except TrtconvError as error:
        return {"group": group, "name": name, "error": error.message}
    limits = {"rtol": report.tolerance.rtol, "atol": report.tolerance.atol}
    entry: dict[str, Any] = {"group": group, "name": name, "passed": report.passed, "limits": limits}
    power = report.extras.get("power")
    if not power:
        return {**entry, "error": "; ".join(f.message for f in report.errors) or "the check fails"}
    counts = {k: power[k] for k in ("tried", "changed", "reported", "no_effect", "under_noise", "missed", "note")}
    share = power["reported"] / power["changed"] if power["changed"] else None
    idle = [f.message for f in report.findings if f.kind == "power" and f.message.startswith(("output", "a constant"))]
    seconds = {"export": round(export_seconds, 1), "check": round(report.seconds, 1), "power": power["seconds"]}
    return {**entry, "share": share, **counts, "idle": idle, "seconds": seconds}


def totals(entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums by group, and the names that miss the goal."""
    sums = {}
    for group in dict.fromkeys(e["group"] for e in entries):
        own = [e for e in entries if e["group"] == group and "changed" in e]
        changed, reported = sum(e["changed"] for e in own), sum(e["reported"] for e in own)
        sums[group] = {
            "networks": len(own),
            "changed": changed,
            "reported": reported,
            "share": reported / changed if changed else None,
        }
    return {
        "by_group": sums,
        "under_goal": [e["name"] for e in entries if (e.get("share") or 1.0) < GOAL],
        "not_measured": [e["name"] for e in entries if "error" in e],
        "goal": GOAL,
    }


def main() -> int:
    """Measure, print a line for each network, write the result; 1 when one misses the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", type=int, default=60)
    parser.add_argument("--only", action="append", default=[], help="a name, as often as you like")
    parser.add_argument("--folder", type=Path, help="keep the exported networks there, and take those that are there")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "benchmarks/results/power_fp32.json")
    arguments = parser.parse_args()
    jobs = [("head", n) for n in HEADS] + [("example", n) for n in EXAMPLES] + [("zoo", n) for n in ZOO]
    packages = ("torch", "onnx", "onnxruntime", "numpy")
    head = {
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "trtconv": version("trtconv"),
        **{p: version(p) for p in packages},
        "faults": arguments.faults,
        # Folders say only where it was measured.
        "command": " ".join(["python -m benchmarks proof.power", *(Path(w).name for w in sys.argv[1:])]),
    }
    entries: list[dict[str, Any]] = []
    for group, name in [j for j in jobs if not arguments.only or j[1] in arguments.only]:
        with tempfile.TemporaryDirectory() as temporary:
            folder = (arguments.folder or Path(temporary)) / group / name
            folder.mkdir(parents=True, exist_ok=True)
            entries.append(measure(group, name, arguments.faults, folder))
        last = entries[-1]
        text = last.get("error") or f"{last['reported']} of {last['changed']} reported, {last['seconds']}"
        print(f"{group:<8} {name:<40} {text}", flush=True)
        write_json(arguments.output, {**head, **totals(entries), "networks": entries})
    return 1 if totals(entries)["under_goal"] else 0


if __name__ == "__main__":
    sys.exit(main())
