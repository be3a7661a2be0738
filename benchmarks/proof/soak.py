"""Memory and descriptors of one process over 500 rewrites and 10,000 calls of a loaded model.

    python -m benchmarks proof.soak [--rewrites 500] [--calls 10000] [-o FILE]

Rewrites are those of `trtconv rewrite` with their proofs, on a small graph of convolutions, norms and activations, in
turn for two targets. Calls go through `trtconv.load`. Each sample is what the process has in memory (without mapped
files) and how many descriptors are open; growth is the difference of the medians of the third and the last quarter of
the samples, so that what a library allocates once does not count.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trtconv.core.artifacts import write_json
from trtconv.core.limits import own_bytes

SAMPLES = 100
# What may be left of growth: noise of the allocator, in bytes over half of a run.
MOST_GROWTH = 4 << 20
TARGETS = ("tensorrt==10", "tensorrt-rtx")


def write_model(path: Path) -> Path:
    """A graph in which rules fire: L2 norms as exporters write them, behind convolutions."""
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper

    generator = np.random.default_rng(0)
    nodes, weights, value = [], [], "x"
    for number in range(3):
        name = f"w{number}"
        array = generator.standard_normal((4, 3 if number == 0 else 4, 3, 3)).astype(np.float32)
        weights.append(numpy_helper.from_array(array, name))
        nodes += [
            helper.make_node("Conv", [value, name], [f"c{number}"], pads=[1, 1, 1, 1]),
            helper.make_node("ReduceL2", [f"c{number}", "axis"], [f"n{number}"], keepdims=1),
            helper.make_node("Add", [f"n{number}", "eps"], [f"e{number}"]),
            helper.make_node("Div", [f"c{number}", f"e{number}"], [f"d{number}"]),
            helper.make_node("HardSwish", [f"d{number}"], [f"h{number}"]),
        ]
        value = f"h{number}"
    weights += [numpy_helper.from_array(np.array([1]), "axis"), numpy_helper.from_array(np.float32(1e-6), "eps")]
    graph = helper.make_graph(
        nodes,
        "soak",
        [helper.make_tensor_value_info("x", 1, ["N", 3, 16, 16])],
        [helper.make_tensor_value_info(value, 1, ["N", 4, 16, 16])],
        weights,
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), path)
    return path


def soak(step: Callable[[int], object], count: int) -> dict[str, Any]:
    """Run `step` so often; what the process had, and by how much that grew."""
    every = max(1, count // SAMPLES)
    memory, descriptors = [], []
    started = time.monotonic()
    for number in range(count):
        step(number)
        if number % every == every - 1:
            memory.append(own_bytes())
            descriptors.append(len(os.listdir("/proc/self/fd")))
    quarter = len(memory) // 4
    last, third = (statistics.median(memory[a:b]) for a, b in ((-quarter, None), (-2 * quarter, -quarter)))
    return {
        "count": count,
        "seconds": round(time.monotonic() - started, 1),
        "bytes at first": memory[0],
        "bytes at the end": memory[-1],
        "growth of the last quarter in bytes": int(last - third),
        "descriptors at first": descriptors[0],
        "most descriptors": max(descriptors),
        "descriptors at the end": descriptors[-1],
    }


def is_flat(result: dict[str, Any]) -> bool:
    """No more descriptors at the end than at first, and memory that stopped growing."""
    flat = result["growth of the last quarter in bytes"] <= MOST_GROWTH
    return bool(flat and result["descriptors at the end"] <= result["descriptors at first"])


def main() -> int:
    """Run both and write the result; 1 when something grows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rewrites", type=int, default=500)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/soak.json"))
    options = parser.parse_args()
    import numpy as np

    import trtconv
    from trtconv.core.progress import SilentProgress
    from trtconv.core.requests import RewriteRequest
    from trtconv.core.targets import parse_target
    from trtconv.rewrite import rewrite_model

    results: dict[str, Any] = {"date": time.strftime("%Y-%m-%d")}
    with tempfile.TemporaryDirectory() as folder:
        model, output = write_model(Path(folder) / "soak.onnx"), Path(folder) / "out.onnx"

        def rewrite(number: int) -> None:
            result = rewrite_model(RewriteRequest(model, output, parse_target(TARGETS[number % 2])), SilentProgress())
            assert result.entries

        results["rewrites"] = soak(rewrite, options.rewrites)
        write_json(options.output, results)
        with trtconv.load(model) as session:
            array = np.ones((2, 3, 16, 16), np.float32)
            results["calls in ONNX Runtime"] = soak(lambda _: session(x=array), options.calls)
        leftovers = [p.name for p in Path(folder).iterdir() if p.name.startswith(".")]
    results["left over"] = leftovers
    write_json(options.output, results)
    print(results)
    return 0 if not leftovers and all(is_flat(r) for r in results.values() if isinstance(r, dict)) else 1


if __name__ == "__main__":
    sys.exit(main())
