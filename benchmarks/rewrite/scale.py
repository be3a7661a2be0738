"""How the rewriter scales: seconds and memory beside a bare onnx-graphsurgeon import and export, in one run.

    python -m benchmarks rewrite.scale [--nodes 5000,20000,80000] [--external-gb 2.4] [--repeat 3] [--json FILE]

Prints ratios: 20,000 nodes against graphsurgeon, cost per node at three sizes, and the peak memory over the graph of
a model with external weights. Each measurement is a process of its own, since peak memory never goes down; the kinds
take turns, and the fastest of the repeats counts, since other work on the machine only ever adds. Seconds are those
of the call, without the imports of either side; `process` is the whole process, imports included.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.record import write_result


def chain(path: Path, nodes: int, repeats: bool) -> None:
    """A chain of element-wise nodes; with `repeats` a hand-written norm after every 100 nodes."""
    import onnx
    from onnx import helper, numpy_helper

    graph_nodes, value = [], "x"
    while len(graph_nodes) < nodes:
        index = len(graph_nodes)
        if repeats and index % 100 == 0:
            steps = [
                ("Pow", [value, "two"], {}),
                ("ReduceSum", ["", "axis"], {}),
                ("Sqrt", [""], {}),
                ("Add", ["", "eps"], {}),
            ]
            last = value
            for op, inputs, attributes in steps:
                last_in = [i or last for i in inputs]
                last = f"{op}_{len(graph_nodes)}"
                graph_nodes.append(helper.make_node(op, last_in, [last], name=last, **attributes))
            graph_nodes.append(helper.make_node("Div", [value, last], [f"v{index}"], name=f"Div_{index}"))
        else:
            op, inputs = (("Relu", [value]), ("Add", [value, "k"]), ("Mul", [value, "k"]), ("Sigmoid", [value]))[
                index % 4
            ]
            graph_nodes.append(helper.make_node(op, inputs, [f"v{index}"], name=f"{op}_{index}"))
        value = f"v{index}"
    graph_nodes.append(helper.make_node("Identity", [value], ["y"], name="last"))
    constants = [
        ("two", np.float32(2)),
        ("eps", np.float32(1e-10)),
        ("axis", np.array([1])),
        ("k", np.full((1, 8, 1, 1), 0.5, np.float32)),
    ]
    graph = helper.make_graph(
        graph_nodes,
        "chain",
        [helper.make_tensor_value_info("x", 1, ["N", 8, "H", "W"])],
        [helper.make_tensor_value_info("y", 1, ["N", 8, "H", "W"])],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in constants],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))


def external(path: Path, gigabytes: float) -> None:
    """A stack of MatMul and norms whose weights lie in a file beside; the file is sparse on disk."""
    import onnx
    from onnx import helper

    size, layers = 4096, max(1, round(gigabytes * 1e9 / (4096 * 4096 * 4)))
    nodes, weights, value = [], [], "x"
    data = path.with_name("weights.bin")
    with open(data, "wb") as stream:
        stream.truncate(layers * size * size * 4)
    for layer in range(layers):
        tensor = onnx.TensorProto(
            name=f"w{layer}", data_type=1, dims=[size, size], data_location=onnx.TensorProto.EXTERNAL
        )
        for key, text in (
            ("location", data.name),
            ("offset", str(layer * size * size * 4)),
            ("length", str(size * size * 4)),
        ):
            tensor.external_data.add(key=key, value=text)
        weights.append(tensor)
        nodes.append(helper.make_node("MatMul", [value, tensor.name], [f"m{layer}"], name=f"MatMul_{layer}"))
        nodes.append(helper.make_node("ReduceL2", [f"m{layer}"], [f"n{layer}"], name=f"ReduceL2_{layer}", axes=[-1]))
        nodes.append(helper.make_node("Div", [f"m{layer}", f"n{layer}"], [f"d{layer}"], name=f"Div_{layer}"))
        value = f"d{layer}"
    graph = helper.make_graph(
        nodes,
        "big",
        [helper.make_tensor_value_info("x", 1, ["N", size])],
        [helper.make_tensor_value_info(value, 1, ["N", size])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())


MEASURE = """
import json, resource, sys, time
from pathlib import Path
what, source, target = sys.argv[1:4]
import onnx, onnx_graphsurgeon as gs, onnxruntime
if what == "graphsurgeon":
    begin = time.perf_counter()
    onnx.save(gs.export_onnx(gs.import_onnx(onnx.load(source))), target)
    fired = 0
elif what == "load":
    begin = time.perf_counter()
    onnx.load(source, load_external_data=False)
    fired = 0
else:
    from trtconv.core.progress import SilentProgress
    from trtconv.core.requests import RewriteRequest
    from trtconv.core.targets import parse_target
    from trtconv.rewrite import rewrite_model
    import trtconv.rewrite.room
    begin = time.perf_counter()
    request = RewriteRequest(Path(source), Path(target), parse_target("tensorrt-rtx"), proof=what != "no-proof")
    fired = len(rewrite_model(request, SilentProgress()).entries)
seconds = time.perf_counter() - begin
print(json.dumps({"seconds": seconds, "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "fired": fired}))
"""


def measure(what: str, source: Path, target: Path) -> dict[str, float]:
    """Seconds of the call and of the process, peak memory in MB and number of rewrites."""
    begin = time.perf_counter()
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, what, str(source), str(target)], capture_output=True, text=True
    )
    if run.returncode:
        raise SystemExit(run.stderr)
    return {**json.loads(run.stdout.splitlines()[-1]), "process": time.perf_counter() - begin}


def best(kinds: list[tuple[str, str, Path]], target: Path, repeat: int) -> dict[str, dict[str, float]]:
    """The fastest run of each kind; the kinds take turns."""
    rows: dict[str, dict[str, float]] = {}
    for _ in range(repeat):
        for name, what, source in kinds:
            measured = measure(what, source, target)
            if name not in rows or measured["seconds"] < rows[name]["seconds"]:
                rows[name] = measured
    return rows


def show(name: str, measured: dict[str, float], nodes: int, base: dict[str, float] | None = None) -> None:
    ratio = f"{measured['seconds'] / base['seconds']:6.2f}x" if base else "       "
    per_node = f"{1e6 * measured['seconds'] / nodes:8.1f} us/node" if nodes else " " * 16
    times = f"{measured['seconds']:8.2f} s {ratio} {per_node}  process {measured['process']:6.2f} s"
    print(f"{name:40} {times} {measured['mb']:7.0f} MB  {measured['fired']:.0f} rewrites", flush=True)


def chains(folder: Path, nodes: int, repeat: int) -> dict[str, object]:
    """One size: graphsurgeon and the rewriter on a plain chain and on one with a norm after every 100 nodes."""
    plain, busy, out = folder / "plain.onnx", folder / "busy.onnx", folder / "out" / "o.trt.onnx"
    out.parent.mkdir(exist_ok=True)
    chain(plain, nodes, repeats=False)
    chain(busy, nodes, repeats=True)
    kinds = [
        ("graphsurgeon", "graphsurgeon", plain),
        ("graphsurgeon, norms", "graphsurgeon", busy),
        ("rewrite, nothing to do", "rewrite", plain),
        ("rewrite, norms", "rewrite", busy),
        ("rewrite, norms, no proof", "no-proof", busy),
    ]
    bests = best(kinds, out, repeat)
    ratios = {}
    for name, measured in bests.items():
        base = bests["graphsurgeon, norms" if "norms" in name else "graphsurgeon"]
        show(f"{nodes} {name}", measured, nodes, base)
        ratios[name] = round(measured["seconds"] / base["seconds"], 2)
    return {"nodes": nodes, "measured": bests, "ratio_to_graphsurgeon": ratios}


def on_disk(folder: Path, gigabytes: float) -> dict[str, object]:
    """A model whose weights lie on disk: time and peak memory over those of loading the graph alone."""
    source, out = folder / "big" / "big.onnx", folder / "bigout" / "big.trt.onnx"
    source.parent.mkdir()
    out.parent.mkdir()
    external(source, gigabytes)
    base, measured = measure("load", source, out), measure("rewrite", source, out)
    linked = os.path.samefile(source.with_name("weights.bin"), out.with_name("weights.bin"))
    show(f"{gigabytes} GB external, load only", base, 0)
    show(f"{gigabytes} GB external, rewrite", measured, 0)
    print(f"memory over the graph: {measured['mb'] - base['mb']:.0f} MB; weights linked, not copied: {linked}")
    return {
        "gigabytes": gigabytes,
        "load": base,
        "rewrite": measured,
        "mb_over_load": measured["mb"] - base["mb"],
        "linked": linked,
    }


def machine() -> dict[str, object]:
    """What a reader has to know to judge the numbers."""
    from importlib.metadata import version

    names = ("onnx", "onnx-graphsurgeon", "onnxruntime", "numpy", "protobuf")
    return {
        "date": time.strftime("%Y-%m-%d"),
        "command": "python -m benchmarks rewrite.scale " + " ".join(sys.argv[1:]),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in names},
        "cpus": os.cpu_count(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
    }


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--nodes", default="5000,20000,80000")
    words.add_argument("--external-gb", type=float, default=2.4)
    words.add_argument("--repeat", type=int, default=3)
    words.add_argument("--json", type=Path)
    args = words.parse_args()
    result: dict[str, object] = machine()
    with tempfile.TemporaryDirectory() as folder:
        sizes = [int(n) for n in args.nodes.split(",") if n]
        result["chains"] = [chains(Path(folder), nodes, args.repeat) for nodes in sizes]
        if args.external_gb:
            result["external_weights"] = on_disk(Path(folder), args.external_gb)
    if args.json:
        write_result(args.json, result)


if __name__ == "__main__":
    begun = time.perf_counter()
    main()
    print(f"in {time.perf_counter() - begun:.0f} s")
