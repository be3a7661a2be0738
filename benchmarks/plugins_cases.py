"""What the plugin benchmark runs: for each case our kernel, the torch expression and a float64 reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch.nn.functional as functional
from plugins_library import Kernels

Tensor = torch.Tensor


@dataclass(frozen=True)
class Case:
    """One plugin at one input shape. `table` marks the shapes that the targets are set for."""

    op: str
    shape: tuple[int, ...]
    options: dict[str, Any] = field(default_factory=dict)
    table: bool = False

    @property
    def name(self) -> str:
        extra = " ".join(f"{k}={v}" for k, v in self.options.items())
        return f"{self.op} {list(self.shape)} {extra}".strip()


@dataclass(frozen=True)
class Work:
    """A case for one dtype: the output's shape, our launch, torch's expression, and the same of a float64 `x`."""

    out: tuple[int, ...]
    ours: Callable[[Tensor, Tensor], None]
    torch_op: Callable[[Tensor], Tensor]
    reference: Callable[[Tensor], Tensor]


def l2norm(x: Tensor, scale: Tensor) -> Tensor:
    """Sum in float32 or better, as the plugin does."""
    wide = x if x.dtype == torch.float64 else x.float()
    norm = wide.pow(2).sum(dim=1, keepdim=True).sqrt() + 1e-10
    return (wide / norm * scale.to(wide.dtype).view(1, -1, 1, 1)).to(x.dtype)


def instance_norm(x: Tensor, scale: Tensor, bias: Tensor, relu: bool) -> Tensor:
    y = functional.instance_norm(x, weight=scale.to(x.dtype), bias=bias.to(x.dtype), eps=1e-5)
    return functional.relu(y) if relu else y


CASES: tuple[Case, ...] = (
    Case("l2norm", (16, 512, 64, 64), table=True),
    Case("l2norm", (1, 512, 38, 38)),
    Case("l2norm", (8, 256, 75, 75)),
    Case("l2norm", (32, 1024, 19, 19)),
    Case("l2norm", (65536, 768, 1, 1)),
    Case("instance_norm", (64, 8, 512, 512), table=True),
    Case("instance_norm", (1, 64, 256, 256)),
    Case("instance_norm", (8, 32, 255, 253)),
    Case("instance_norm", (16, 512, 32, 32)),
    Case("instance_norm", (1, 16, 2048, 2048)),
    Case("instance_norm", (4, 64, 512, 512), {"relu": True}),
    Case("reflection_pad", (64, 8, 512, 512), {"pads": (3, 3, 3, 3)}, table=True),
    Case("reflection_pad", (1, 3, 1080, 1920), {"pads": (0, 4, 8, 3)}),
    Case("reflection_pad", (8, 128, 63, 65), {"pads": (1, 1, 1, 1)}),
    Case("reflection_pad", (16, 64, 256, 256), {"pads": (1, 1, 1, 1)}),
    Case("adaptive_pool", (16, 512, 64, 64), {"size": (7, 7), "maximum": False}),
    Case("adaptive_pool", (64, 2048, 32, 32), {"size": (1, 1), "maximum": False}),
    Case("adaptive_pool", (8, 256, 255, 253), {"size": (6, 5), "maximum": True}),
)


def work_of(case: Case, dtype: torch.dtype, kernels: Kernels, tuning: dict[str, int] | None = None) -> Work:
    """The case's functions; `tuning` goes to our kernel (lanes; route and cluster)."""
    tuned = tuning or {}
    shape, options = case.shape, case.options
    if case.op in ("l2norm", "instance_norm"):
        scale = torch.rand(shape[1], device="cuda", dtype=dtype) + 0.5
        bias = torch.randn(shape[1], device="cuda", dtype=dtype)
    if case.op == "l2norm":
        expression: Callable[[Tensor], Tensor] = partial(l2norm, scale=scale)
        return Work(shape, lambda x, y: kernels.l2norm(x, scale, y, 1e-10, 0, **tuned), expression, expression)
    if case.op == "instance_norm":
        workspace = kernels.workspace(torch.empty(shape, device="meta", dtype=dtype))
        relu = bool(options.get("relu", False))
        expression = partial(instance_norm, scale=scale, bias=bias, relu=relu)

        def ours(x: Tensor, y: Tensor) -> None:
            kernels.instance_norm(x, scale, bias, y, workspace, 1e-5, relu, **tuned)

        return Work(shape, ours, expression, expression)
    if case.op == "reflection_pad":
        top, left, bottom, right = options["pads"]
        out = (*shape[:2], shape[2] + top + bottom, shape[3] + left + right)
        expression = partial(functional.pad, pad=(left, right, top, bottom), mode="reflect")
        return Work(out, lambda x, y: kernels.reflection_pad(x, y, options["pads"]), expression, expression)
    pool = functional.adaptive_max_pool2d if options["maximum"] else functional.adaptive_avg_pool2d
    expression = partial(pool, output_size=options["size"])
    out = (*shape[:2], *options["size"])
    return Work(out, lambda x, y: kernels.adaptive_pool(x, y, options["maximum"]), expression, expression)


def relative_error(work: Work, x: Tensor) -> float:
    """Largest difference of our result from torch's in float64 over its largest value; inf for unwritten elements."""
    y = torch.full(work.out, float("nan"), device="cuda", dtype=x.dtype)
    work.ours(x, y)
    worst, largest = 0.0, 1e-30
    # A few items of the batch at a time, since the float64 copies are large.
    step = max(1, 2**26 // max(1, x[0].numel()))
    for i in range(0, x.shape[0], step):
        wanted = work.reference(x[i : i + step].double())
        got = y[i : i + step].double()
        if not torch.isfinite(got).all():
            return float("inf")
        worst = max(worst, float((got - wanted).abs().max()))
        largest = max(largest, float(wanted.abs().max()))
    return worst / largest
