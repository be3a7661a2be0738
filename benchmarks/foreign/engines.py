"""Attacking graphs of a round to engines of the installed TensorRT, each checked: `--round r57_ [NAME...]`, on a GPU.

Every graph is given to `trtconv convert` with its dims and the ranges of its inputs, `--at-once` at a time. An engine
counts as equal where the check passes (exit code 0); 3 is an engine that differs, which the check says, 4 a graph that
the target does not take, 1 an error of the builder or of ONNX Runtime, 124 the end of the time. A graph in an opset
that the installed onnx does not read is left out. Graphs of an earlier run stay in the record, so that a round can be
run in parts.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from benchmarks.record import machine, write_result
from tests.adversary.attack import GraphAttack
from tests.adversary.graph_files import read_graphs
from tests.adversary.rewriting import input_texts, parse

RESULTS = Path(__file__).parents[1] / "results" / "gpu_foreign_graphs.json"
LIMIT = 240.0
# The folder of packages of the machine that runs it, in a place that an error names.
INSTALLED = re.compile(r"/\S*/(?:site|site-packages)/")


def convert(attack: GraphAttack, target: str, folder: Path) -> dict[str, Any]:
    """The exit code of `trtconv convert` for one graph, and its last words where it is not 0."""
    try:
        model = parse(attack)
    except (onnx.parser.ParseError, onnx.checker.ValidationError, IndexError) as error:
        return {"name": attack.name, "code": "unread", "error": [str(error).splitlines()[0]]}
    path = folder / f"{attack.name}.onnx"
    onnx.save(model, path)
    command = [sys.executable, "-m", "trtconv", "convert", str(path), "-o", str(folder / attack.name)]
    command += ["--target", target, "--quiet"]
    for text in input_texts(model, attack):
        command += ["--input", text]
    for dim in attack.dims.split():
        command += ["--dynamic", dim]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {"name": attack.name, "code": 124}
    errors = (line.strip().replace(f"{folder}/", "") for line in run.stderr.splitlines() if "->" not in line)
    lines = [INSTALLED.sub("", line) for line in errors]
    return {"name": attack.name, "code": run.returncode, **({"error": lines[-2:]} if run.returncode else {})}


def main() -> None:
    """Convert all graphs of a round, or those named, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--round", default="r57_")
    parser.add_argument("--target", default="tensorrt==8.6")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    graphs = [g for g in read_graphs() if g.name.startswith(options.round) and g.name in (options.names or [g.name])]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.at_once) as pool:
        rows = list(pool.map(partial(convert, target=options.target, folder=Path(folder)), graphs))
    if options.output.exists():
        names = {row["name"] for row in rows}
        rows += [row for row in json.loads(options.output.read_text())["graphs"] if row["name"] not in names]
    counts = Counter(str(row["code"]) for row in rows)
    write_result(options.output, {**machine("tensorrt", "onnx", "onnxruntime"), "counts": counts, "graphs": rows})
    for row in rows:
        print(row["code"], row["name"], *row.get("error", [])[-1:])
    print(dict(counts))


if __name__ == "__main__":
    main()
