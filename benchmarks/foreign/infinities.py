# ruff: noqa: E501 - the text of a graph stands on one line
"""Infinite constants in engines of 8.6: `foreign.infinities JSON`, on a GPU.

Each graph is built twice, as it is written and with its infinities gathered, and both are run beside ONNX Runtime on
rows that are masked throughout and on infinities. Then an attention with a mask is timed both ways, in turn, at 8.6's
defaults: the median ratio of the time with a constant to the time with a computed infinity.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.record import machine, write_result
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.select import backend_of
from trtconv.rewrite.lowering.spelling import gather_infinities

HEADER = '<ir_version: 8, opset_import: ["" : 17]>'
MASKED = "(float[N,6] x, bool[N,6] m) => (float[a,b] y)"
COMPARED = "(float[N,6] x) => (bool[a,b] y)"
NINF = "<float ninf = {-inf}>"
GRAPHS = {
    "Where": f"g {MASKED} {NINF} {{ y = Where(m, x, ninf) }}",
    "Where, constant [1,1]": f"g {MASKED} <float[1,1] ninf = {{-inf}}> {{ y = Where(m, x, ninf) }}",
    "Where, constant [6]": f"g {MASKED} <float[6] ninf = {{-inf, -inf, -inf, -inf, -inf, -inf}}> {{ y = Where(m, x, ninf) }}",
    "Where, +inf first": f"g {MASKED} <float inf = {{inf}}> {{ y = Where(m, inf, x) }}",
    "Where, -3.4e38": f"g {MASKED} <float low = {{-3.4e38}}> {{ y = Where(m, x, low) }}",
    "Where, NaN": f"g {MASKED} <float nan = {{nan}}> {{ y = Where(m, x, nan) }}",
    "Where, ConstantOfShape": f"g {MASKED} {{ s = Shape(x) k = ConstantOfShape<value = float[1] {{-inf}}>(s) y = Where(m, x, k) }}",
    "Where, Expand": f"g {MASKED} {NINF} {{ s = Shape(x) k = Expand(ninf, s) y = Where(m, x, k) }}",
    "Where, Softmax": f"g {MASKED} {NINF} {{ w = Where(m, x, ninf) y = Softmax<axis=1>(w) }}",
    "Where, Softmax, IsNaN": f"g {MASKED} <float ninf = {{-inf}}, float zero = {{0.0}}> {{ w = Where(m, x, ninf) p = Softmax<axis=1>(w) n = IsNaN(p) y = Where(n, zero, p) }}",
    "Where, Add, Softmax": f"g {MASKED} <float ninf = {{-inf}}, float zero = {{0.0}}> {{ k = Where(m, zero, ninf) w = Add(x, k) y = Softmax<axis=1>(w) }}",
    "Where, LogSoftmax": f"g {MASKED} {NINF} {{ w = Where(m, x, ninf) y = LogSoftmax<axis=1>(w) }}",
    "Where, ReduceMax": f"g {MASKED} {NINF} {{ w = Where(m, x, ninf) y = ReduceMax<axes=[1]>(w) }}",
    "Where, IsInf": f"g (float[N,6] x, bool[N,6] m) => (bool[a,b] y) {NINF} {{ w = Where(m, x, ninf) y = IsInf(w) }}",
    "ScatterElements": "g (float[N,6] x) => (float[a,b] y) <float[1,1] u = {-inf}, int64[1,1] i = {2}> { y = ScatterElements<axis=1>(x, i, u) }",
    "ScatterND": "g (float[N,6] x) => (float[a,b] y) <float[1] u = {-inf}, int64[1,2] i = {0, 2}> { y = ScatterND(x, i, u) }",
    "Equal": f"g {COMPARED} {NINF} {{ e = Equal(x, ninf) y = Not(e) }}",
    "Less": f"g {COMPARED} <float inf = {{inf}}> {{ l = Less(x, inf) y = Not(l) }}",
    "Greater": f"g {COMPARED} <float inf = {{inf}}> {{ l = Greater(inf, x) y = Not(l) }}",
    "Add": f"g (float[N,6] x) => (float[a,b] y) {NINF} {{ y = Add(x, ninf) }}",
    "Div": f"g (float[N,6] x) => (float[a,b] y) {NINF} {{ y = Div(x, ninf) }}",
    "Max": f"g (float[N,6] x) => (float[a,b] y) {NINF} {{ y = Max(x, ninf) }}",
    "Pad": "g (float[N,6] x) => (float[a,b] y) <float ninf = {-inf}, int64[4] pads = {0, 1, 0, 1}> { y = Pad(x, pads, ninf) }",
}
ALIBI = """g (float[N,T,4] x, bool[N,T] mask) => (float[a,b,c,d] y) <float[1,2,1,1] slope = {0.25, 0.0625}, int64 i0 = {0}, int64 i1 = {1}, int64[1] a1 = {1}, int64[2] a12 = {1, 2}, float ninf = {-inf}, float zero = {0.0}> {
 s = Shape(x) t = Gather(s, i1) r = Range(i0, t, i1) rc = Unsqueeze(r, a1) d = Sub(r, rc) df = Cast<to=1>(d) bias = Mul(df, slope) xt = Transpose<perm=[0, 2, 1]>(x) s0 = MatMul(x, xt) su = Unsqueeze(s0, a1) sb = Add(su, bias)
 cz = LessOrEqual(d, i0) mu = Unsqueeze(mask, a12) ok = And(cz, mu) sm = Where(ok, sb, ninf) p = Softmax<axis=-1>(sm) nn = IsNaN(p) w = Where(nn, zero, p) xu = Unsqueeze(x, a1) y = MatMul(w, xu) }"""
GRAPHS["attention with a causal mask, lengths and ALiBi"] = ALIBI
ATTENTION = """g (float[8,12,577,64] x, float[8,12,577,64] k, float[8,12,577,64] v, bool[8,1,1,577] m) => (float[8,12,577,64] y) <float ninf = {-inf}, float scale = {0.125}> {
 kt = Transpose<perm=[0, 1, 3, 2]>(k) s0 = MatMul(x, kt) s1 = Mul(s0, scale) s = Where(m, s1, ninf) p = Softmax<axis=3>(s) y = MatMul(p, v) }"""
TURNS, RUNS = 21, 50
PRECISIONS = {"auto": (), "fp32": ("--precision", "fp32")}
SIDES = {"constant": False, "computed": True}
RANGES = {"N": "N=1:2:4", "T": "T=1:4:8"}
AT_ONCE = 12


def parse(text: str, *, computed: bool) -> onnx.ModelProto:
    """The graph as it is written, or with its infinities gathered."""
    model = onnx.parser.parse_model(HEADER + text)
    if computed:
        gather_infinities(model)
    return model


def build(model: onnx.ModelProto, path: Path, *options: str) -> str:
    """The engine of a model beside its file, as TensorRT's parser reads it; what stderr says where there is none."""
    onnx.save(model, path)
    command = [sys.executable, "-m", "trtconv", "build", str(path), "-o", str(path.with_suffix(".engine")), *options]
    run = subprocess.run(command, capture_output=True, text=True)
    return run.stderr.replace(f"{path.parent}/", "") if run.returncode else ""


def load(path: Path) -> Any:
    """The engine beside a model's file."""
    engine = path.with_suffix(".engine")
    return backend_of(engine).load(engine)


def feed_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Numbers, and both infinities without a mask; of a mask the first row is false and the second one true."""
    rng = np.random.default_rng(0)
    feed = {}
    for value in model.graph.input:
        shape = [d.dim_value or 4 for d in value.type.tensor_type.shape.dim]
        numbers = rng.standard_normal(shape).astype(np.float32)
        if value.type.tensor_type.elem_type == onnx.TensorProto.BOOL:
            feed[value.name] = numbers > 0
            feed[value.name][0], feed[value.name][1] = False, True
        else:
            feed[value.name] = numbers
    if len(feed) == 1:
        feed["x"][2, :4] = np.inf, -np.inf, 0.0, 3.4e38
    return feed


def compare(text: str, path: Path, error: str) -> dict[str, Any]:
    """Whether the engine's output is that of ONNX Runtime, and where not, what both have first."""
    if error:
        return {"equal": False, "error": error.splitlines()[0]}
    model = parse(text, computed=False)
    feed = feed_of(model)
    expected = OnnxRuntimeRunner(model.SerializeToString())(feed)["y"]
    output = np.asarray(load(path)(**feed)["y"])
    differs = ~np.isclose(output.astype(float), expected.astype(float), 1e-5, 1e-5, equal_nan=True)
    if not differs.any():
        return {"equal": True}
    return {"equal": False, "engine": str(output[differs][0]), "onnxruntime": str(expected[differs][0])}


def seconds(session: Any, feed: dict[str, Any]) -> float:
    """Seconds of `RUNS` runs on arrays that lie on the GPU."""
    start = time.perf_counter()
    for _ in range(RUNS):
        output = session(**feed)["y"]
    output.gpuarray().get()
    return time.perf_counter() - start


def ratio(sides: list[Path]) -> float:
    """The median of constant / computed over the turns."""
    from pycuda import gpuarray

    sessions = [load(p) for p in sides]
    feed = {n: gpuarray.to_gpu(v) for n, v in feed_of(parse(ATTENTION, computed=False)).items()}
    for session in sessions:
        seconds(session, feed)
    ratios = [seconds(sessions[0], feed) / seconds(sessions[1], feed) for _ in range(TURNS)]
    return round(statistics.median(ratios), 3)


def main() -> None:
    """Build all engines side by side, run them and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    import pycuda.driver as cuda

    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(AT_ONCE) as pool:
        folder = Path(name)
        builds = {}
        for number, (title, text) in enumerate([*GRAPHS.items(), *((p, ATTENTION) for p in PRECISIONS)]):
            ranges = [r for dim, r in RANGES.items() if f"[{dim}," in text or f",{dim}" in text]
            arguments = [*(word for r in ranges for word in ("--dynamic", r)), *PRECISIONS.get(title, ())]
            for computed in SIDES.values():
                path = folder / f"{number}{computed}.onnx"
                built = pool.submit(build, parse(text, computed=computed), path, *arguments)
                builds[title, computed] = (path, built)
        os.environ["TRTCONV_CUDA"] = "pycuda"
        cuda.init()
        context = cuda.Device(0).retain_primary_context()
        rows = {}
        for title, text in GRAPHS.items():
            sides = {side: builds[title, computed] for side, computed in SIDES.items()}
            rows[title] = {side: compare(text, path, built.result()) for side, (path, built) in sides.items()}
            print(title, rows[title], flush=True)
        context.push()
        ratios = {}
        for precision in PRECISIONS:
            errors = [builds[precision, computed][1].result() for computed in SIDES.values()]
            ratios[precision] = errors if any(errors) else ratio([builds[precision, c][0] for c in SIDES.values()])
        print(ratios)
    record = machine("tensorrt", "onnx", "onnxruntime")
    write_result(options.output, {**record, "graphs": rows, "constant_over_computed": ratios})
    # pycuda's context outlives what the sessions free at exit.
    os._exit(0)


if __name__ == "__main__":
    main()
