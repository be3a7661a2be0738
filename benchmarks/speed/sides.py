"""The two workers of `gpu_speed`: one process holds engines, the other torch modules, and both answer on stdin."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ENGINE_MODES = ("engine", "engine + CUDA graph")
TORCH_MODES = ("eager", "eager + CUDA graph", "compile", "compile + CUDA graph", "max-autotune + CUDA graph")
TUNED = TORCH_MODES[-1]
SECONDS = 0.25


class EngineSide:
    """Engines by case, each with its two ways of launching."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def open(self, name: str, batch: int) -> dict[str, Any]:
        from trtconv.backends.select import backend_of
        from trtconv.core.model.file import load_model, signature
        from trtconv.proof.points import SamplePoint, sample_inputs

        interface = signature(load_model(self.root / name / "model.trt.onnx"))
        self.session = backend_of(self.root / name / f"speed{batch}.engine").load(
            self.root / name / f"speed{batch}.engine"
        )
        dims = tuple({**interface.space.pick("opt"), "N": batch}.items())
        self.inputs = sample_inputs(interface.inputs, SamplePoint("bench", dims))
        return {"shapes": {n: list(a.shape) for n, a in self.inputs.items()}, "runner": self.session.version}

    def run(self, mode: str, batch: int) -> Any:
        from trtconv.backends.runtime.latency import measure_engine

        graph = mode == ENGINE_MODES[1]
        return measure_engine(
            self.session, self.inputs, point="opt", cuda_graph=graph, seconds=SECONDS, warm_up=0.1
        ).as_dict()

    def close(self) -> None:
        self.session.close()


# ---- the worker with torch


class TorchSide:
    """A module by case, compiled in the ways that torch has."""

    def __init__(self, root: Path) -> None:
        import torch

        self.torch = torch
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        torch.backends.cudnn.benchmark = True
        torch.set_num_threads(2)

    def open(self, name: str, batch: int) -> dict[str, Any]:
        from trtconv.export.module.source import load_module
        from trtconv.frontend.assemble import input_specs, load_config, module_source, shape_space
        from trtconv.frontend.command_line import CommandLine
        from trtconv.proof.points import SamplePoint, sample_inputs

        config = load_config(ROOT / "examples" / f"{name}.toml")
        self.module = load_module(module_source(config, None, CommandLine())).to("cuda").eval()
        dims = tuple({**shape_space(config).pick("opt"), "N": batch}.items())
        arrays = sample_inputs(input_specs(config), SamplePoint("bench", dims))
        self.arguments = [self.torch.as_tensor(a).to("cuda") for a in arrays.values()]
        self.ready: dict[str, Any] = {}
        self.torch._dynamo.reset()
        return {"torch": self.torch.__version__}

    def launcher(self, mode: str) -> Any:
        if mode not in self.ready:
            self.ready[mode] = self._launcher(mode)
        return self.ready[mode]

    def _launcher(self, mode: str) -> Any:
        torch, module = self.torch, self.module
        if mode == "compile + CUDA graph":
            # torch's own graphs; the same kernels as "compile".
            compiled = torch.compile(module, dynamic=False, mode="reduce-overhead")
        elif mode == TUNED:
            compiled = torch.compile(module, dynamic=False, mode="max-autotune-no-cudagraphs")
        else:
            compiled = module if mode.startswith("eager") else torch.compile(module, dynamic=False)

        def call() -> Any:
            with torch.inference_mode():
                return compiled(*self.arguments)

        for _ in range(4):
            call()
        torch.cuda.synchronize()
        return self._captured(call) if mode in ("eager + CUDA graph", TUNED) else call

    def _captured(self, call: Any) -> Any:
        torch = self.torch
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for _ in range(3):
                call()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.kept = call()
        return graph.replay

    def run(self, mode: str, batch: int) -> Any:
        from trtconv.backends.runtime.latency import measure

        torch, launch = self.torch, self.launcher(mode)

        def record() -> Any:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            return event

        return measure(
            launch, torch.cuda.synchronize, record, lambda a, b: float(a.elapsed_time(b)) / 1e3,
            subject=mode, point="opt", batch=batch, seconds=SECONDS, warm_up=0.1,
        ).as_dict()  # fmt: skip

    def close(self) -> None:
        self.ready.clear()
        del self.module, self.arguments
        self.torch.cuda.empty_cache()


def serve(side: Any) -> None:
    """Answer one JSON line with one."""
    for line in sys.stdin:
        word, *values = json.loads(line)
        try:
            answer = getattr(side, word)(*values)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print("@" + json.dumps(answer), flush=True)
