"""Engines beside torch eager, torch.compile and its CUDA graphs, on the examples: one table of ratios.

    gpu_speed.py engines FOLDER JSON    with TensorRT; FOLDER/NAME/model.trt.onnx from gpu_prepare.py
    gpu_speed.py torch JSON             with torch
    gpu_speed.py table ENGINES TORCH OUT

TensorRT 8.6 and a current torch need different Pythons, so the two halves run one after the other on one machine.
TF32 is on in both. Batches 1 and 8 at the example's opt height and width; inputs are random.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMES = ("refinedet", "hrnet", "text_attention", "style_transfer")
BATCHES = (1, 8)
MODES = ("eager", "compile + CUDA graph")


def engines(root: Path, output: Path) -> None:
    from trtconv.backends.latency import clock_state, measure_engine
    from trtconv.backends.select import backend_of
    from trtconv.build import build_engine
    from trtconv.core.errors import TrtconvError
    from trtconv.core.onnx_file import load_model, signature
    from trtconv.core.requests import BuildRequest
    from trtconv.core.sampling import SamplePoint, sample_inputs
    from trtconv.core.shapes import parse_space

    found = []
    for name in NAMES:
        folder = root / name
        model = folder / "model.trt.onnx"
        known = signature(load_model(model))
        for batch in BATCHES:
            engine = folder / f"speed{batch}.engine"
            request = BuildRequest(
                model, engine, dynamic=None, profiles=(parse_space([f"N={batch}"]),), backend="tensorrt",
                timing_cache=root / "speed.cache", options=(("tf32", True),),
            )  # fmt: skip
            start = time.monotonic()
            try:
                build_engine(request)
            except TrtconvError as error:
                found.append({"name": name, "batch": batch, "error": [error.message, *error.details[:4]]})
                print(found[-1], flush=True)
                continue
            built, session = time.monotonic() - start, backend_of(engine).load(engine)
            dims = tuple({**known.space.pick("opt"), "N": batch}.items())
            inputs = sample_inputs(known.inputs, SamplePoint("bench", dims))
            both = [measure_engine(session, inputs, point="opt", cuda_graph=g, seconds=0.7) for g in (False, True)]
            session.close()
            rows = {r.subject: r.as_dict() for r in both}
            found.append({"name": name, "batch": batch, "rows": rows, "build_s": round(built, 1),
                          "clocks": clock_state()})  # fmt: skip
            print(name, batch, {k: round(v["device"]["median"] * 1e3, 4) for k, v in rows.items()}, flush=True)
            output.write_text(json.dumps(found, indent=1))


def torch_side(output: Path) -> None:
    from trtconv.backends.torch_latency import measure_torch
    from trtconv.cli.assemble import load_config, module_source, shape_space, tensor_specs
    from trtconv.core.sampling import SamplePoint, sample_inputs
    from trtconv.export.module_source import load_module

    found = []
    for name in NAMES:
        config = load_config(ROOT / "examples" / f"{name}.toml")
        space = shape_space(config, ())
        for batch in BATCHES:
            module = load_module(module_source(config, None, {}))
            dims = tuple(({**space.pick("opt"), "N": batch}).items())
            inputs = sample_inputs(tensor_specs(config, ()), SamplePoint("bench", dims))
            rows, failed = measure_torch(module, inputs, point="opt", batch=batch, tf32=True, seconds=0.7, modes=MODES)
            shown = {r.subject: r.as_dict() for r in rows}
            found.append({"name": name, "batch": batch, "rows": shown, "failures": failed,
                          "shapes": {n: list(a.shape) for n, a in inputs.items()}})  # fmt: skip
            print(name, batch, {k: round(v["device"]["median"] * 1e3, 4) for k, v in shown.items()}, failed, flush=True)
            output.write_text(json.dumps(found, indent=1))


def table(engine_file: Path, torch_file: Path, output: Path) -> None:
    halves = [json.loads(p.read_text()) for p in (engine_file, torch_file)]
    rows = []
    for one in halves[0]:
        other = next((o for o in halves[1] if (o["name"], o["batch"]) == (one["name"], one["batch"])), {})
        both = {**one.get("rows", {}), **other.get("rows", {})}
        medians = {k: round(v["device"]["median"] * 1e3, 4) for k, v in both.items()}
        best = min((v for k, v in medians.items() if k.startswith("engine")), default=None)
        ratios = {k: round(v / best, 2) for k, v in medians.items()} if best else {}
        rows.append(
            {
                "name": one["name"],
                "batch": one["batch"],
                "shapes": other.get("shapes"),
                "device_ms": medians,
                "ratio_to_best_engine": ratios,
                "error": one.get("error"),
                "failures": other.get("failures"),
            }
        )
        print(one["name"], one["batch"], medians)
    output.write_text(
        json.dumps({"tf32": True, "rows": rows, "engines": halves[0], "torch": halves[1]}, indent=1) + "\n"
    )


if __name__ == "__main__":
    if sys.argv[1] == "engines":
        engines(Path(sys.argv[2]), Path(sys.argv[3]))
    elif sys.argv[1] == "torch":
        torch_side(Path(sys.argv[2]))
    else:
        table(*(Path(a) for a in sys.argv[2:5]))
