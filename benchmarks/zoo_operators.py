"""Which operators each case of the GPU zoo has after the rewrite for TensorRT 8.6: zoo_operators.py JSON [CASE ...]

With `gpu_zoo.json`, which says what became of each case's engine, this tells what was measured of an operator;
`support_tables.py` joins the two. Needs torch and no GPU.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def operators(name: str) -> list[str]:
    """Operators of the rewritten model, those of bodies included; empty when the case is refused before."""
    import onnx

    from tests.zoo.registry import all_cases
    from tests.zoo.run_case import source_of
    from trtconv.core.errors import TrtconvError
    from trtconv.core.progress import SilentProgress
    from trtconv.core.requests import ExportRequest, RewriteRequest
    from trtconv.core.shapes import parse_space
    from trtconv.core.targets import parse_target
    from trtconv.core.tensors import parse_tensor
    from trtconv.export import export_model
    from trtconv.rewrite import rewrite_model

    case = all_cases()[name]
    specs = tuple(parse_tensor(t) for t in case.inputs)
    with tempfile.TemporaryDirectory(prefix="zoo-ops-") as folder:
        model, rewritten = Path(folder) / "model.onnx", Path(folder) / "model.trt.onnx"
        try:
            export_model(ExportRequest(source_of(name), specs, parse_space([case.space]), model), SilentProgress())
            request = RewriteRequest(model, rewritten, parse_target("tensorrt==8.6"), proof=False)
            rewrite_model(request, SilentProgress())
        except TrtconvError:
            return []
        return sorted(_ops(onnx.load(str(rewritten), load_external_data=False).graph))


def _ops(graph) -> set[str]:
    found = set()
    for node in graph.node:
        if node.domain in ("", "ai.onnx"):
            found.add(node.op_type)
        for attribute in node.attribute:
            for body in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                found |= _ops(body)
    return found


def main(output: Path, names: list[str]) -> None:
    import torch

    torch.set_num_threads(1)
    cases = json.loads((ROOT / "benchmarks/results/gpu_zoo.json").read_text())["cases"]
    names = names or [c["case"] for c in cases]
    found = {}
    for index, name in enumerate(names):
        try:
            found[name] = operators(name)
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
        if index % 20 == 0 or index == len(names) - 1:
            lines = ",\n".join(f"  {json.dumps(n)}: {json.dumps(o)}" for n, o in sorted(found.items()))
            head = json.dumps("python benchmarks/zoo_operators.py JSON")
            output.write_text('{\n "command": ' + head + ',\n "cases": {\n' + lines + "\n }\n}\n")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main(Path(sys.argv[1]), sys.argv[2:])
