"""`python -m benchmarks speed.export_speed`: wall seconds of `trtconv export` beside the plain dynamo exporter's.

Each measurement is a process of its own, imports not counted. trtconv's time holds the comparison with the module at
all sample points; the plain exporter's is one call of torch.onnx.export with the same dynamic dims, and saving.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import nn

CASES = {
    "hrnet": (
        "examples/hrnet.py:hrnet_w18_small_v2",
        "images:float32[N,3,H,W]",
        "N=1:1:4 H=64:224:256%32 W=64:224:256%32",
    ),
    "vit": ("benchmarks/speed/export_speed.py:make_vit", "images:float32[N,3,224,224]", "N=1:2:4"),
}


class Block(nn.Module):
    """A pre-norm transformer block of ViT-B/16 (Dosovitskiy et al. 2020): width 768, 12 heads, MLP 3072."""

    def __init__(self, width: int = 768, heads: int = 12) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        a = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, c)
        x = x + self.out(a)
        return x + self.mlp(self.norm2(x))


class VisionTransformer(nn.Module):
    def __init__(self, depth: int = 12, width: int = 768) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, width, 16, 16)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 197, width) * 0.02)
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patch(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


def make_vit() -> nn.Module:
    """ViT-B/16, 86.6 M parameters."""
    return VisionTransformer()


def measure(case: str, tool: str) -> dict[str, Any]:
    """Seconds of one export in this process."""
    from trtconv.core.requests import ExportRequest, ModuleSource
    from trtconv.core.shape_space.space import parse_space
    from trtconv.core.tensors import parse_tensor
    from trtconv.export.module.source import load_module
    from trtconv.proof.sizes import traced_sizes

    spec, text, dims = CASES[case]
    source, inputs, space = ModuleSource(spec), (parse_tensor(text),), parse_space([dims])
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "model.onnx"
        if tool == "trtconv":
            from trtconv.core.progress import SilentProgress
            from trtconv.export import export_model

            started = time.monotonic()
            result = export_model(ExportRequest(source, inputs, space, output), SilentProgress())
            return {"total": time.monotonic() - started, **result.seconds, "points": len(result.points)}
        started = time.monotonic()
        module = load_module(source).eval()
        values = torch.randn(inputs[0].shape(traced_sizes(space, inputs)))
        shapes = ({i: _dim(space[d]) for i, d in enumerate(inputs[0].dims) if isinstance(d, str)},)
        torch.onnx.export(module, (values,), str(output), dynamo=True, dynamic_shapes=shapes, verbose=False)
        return {"total": time.monotonic() - started}


def _dim(rng: Any) -> Any:
    """What a user of the plain exporter has to write: Dim.DYNAMIC cannot say that a size is a multiple of 32."""
    dim = torch.export.Dim
    return dim.DYNAMIC if rng.multiple == 1 else rng.multiple * dim(f"k{id(rng)}", min=1, max=rng.max // rng.multiple)


def main() -> None:
    """Measure both tools on each case in turn, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, metavar=("CASE", "TOOL"))
    parser.add_argument("--repeat", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(*arguments.one)))
        return
    print("| case | plain dynamo s | trtconv s | ratio | of it export, module, compare |\n|---|---|---|---|---|")
    for case in CASES:
        best: dict[str, dict[str, Any]] = {}
        for _ in range(arguments.repeat):
            for tool in ("plain", "trtconv"):
                command = [sys.executable, "-W", "ignore", "-m", "benchmarks.export_speed", "--one", case, tool]
                process = subprocess.run(command, capture_output=True, text=True, check=False)
                if process.returncode:
                    print(f"{case} {tool} failed: {process.stderr[-800:]}")
                    continue
                report = json.loads(process.stdout.splitlines()[-1])
                if tool not in best or report["total"] < best[tool]["total"]:
                    best[tool] = report
        if len(best) == 2:
            plain, ours = best["plain"]["total"], best["trtconv"]
            parts = ", ".join(f"{ours.get(k, 0.0):.1f}" for k in ("export:dynamo", "module", "compare"))
            print(f"| {case} | {plain:.1f} | {ours['total']:.1f} | {ours['total'] / plain:.2f} | {parts} |")


if __name__ == "__main__":
    main()
