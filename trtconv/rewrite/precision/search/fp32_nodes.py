"""Which nodes of a network have to stay in FP32 for half precision to meet the tolerance at every sample point."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import AccuracyError
from trtconv.core.files.private_folder import private_temporary_folder
from trtconv.core.model.file import load_model
from trtconv.core.model.provenance import Origin, origin_of
from trtconv.core.precision import FP16, HALF_NAMES
from trtconv.core.progress import Progress
from trtconv.core.requests import RewriteRequest
from trtconv.core.tolerance import Tolerance
from trtconv.proof.allowance import Arithmetic
from trtconv.proof.proving import compare_at
from trtconv.proof.reference import ReferenceSample, read_samples

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

# Each round brings in one more sample point at which the set found so far was not enough.
ROUNDS = 6


@dataclass(frozen=True)
class Fp32Node:
    """A node by its name (or its first output's), with its place in the PyTorch code."""

    name: str
    op: str
    origin: Origin


@dataclass(frozen=True)
class Fp32Nodes:
    """The nodes that stay FP32, of `half` that could be half; `runs` typed models were run at `points` sample points.

    `complete` is False when the search ran out of runs: the set works, and may be larger than it has to be.
    """

    target: str
    precision: str
    nodes: tuple[Fp32Node, ...]
    half: int
    runs: int
    points: int
    complete: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def find_fp32_nodes(
    request: RewriteRequest, reference: Path, tolerance: Tolerance | None, progress: Progress, *, max_runs: int = 300
) -> Fp32Nodes:
    """Rewrite `request.model` for its target in FP32, then find what half precision (`request.precision`) cannot do.

    Half precision is emulated on the CPU: every node's result is rounded. Raises AccuracyError when the tolerance is
    missed even with every node in FP32, and what `rewrite_model` raises.
    """
    from trtconv.rewrite.precision.convert import convert_precision, half_nodes
    from trtconv.rewrite.precision.search.bisect import bisect_fp32_nodes

    if request.precision not in HALF_NAMES:
        request = replace(request, precision=FP16.name)
    model = _rewritten_in_fp32(request, progress)
    samples = [s for s in read_samples(reference) if not s.point.advisory]
    keep, runs, complete = tuple(request.keep_fp32), 0, True
    chosen: list[ReferenceSample] = []
    fp32_names: tuple[str, ...] = ()
    for _ in range(ROUNDS):
        progress.phase(f"{len(fp32_names)} nodes in FP32, over all points")
        runs += 1
        typed = convert_precision(model, request.precision, keep_nodes=(*keep, *fp32_names)).model
        missed = _missed(typed, samples, tolerance, request.precision)
        if missed is None:
            origins = _nodes(model, fp32_names)
            half = len(half_nodes(model, request.precision, keep))
            return Fp32Nodes(str(request.target), request.precision, origins, half, runs, len(samples), complete)
        if any(missed is s for s in chosen):
            break
        chosen.append(missed)
        progress.phase(f"looking for nodes at {missed.point}")
        search = bisect_fp32_nodes(
            _run_at(chosen), model, tolerance, precision=request.precision, keep_nodes=keep, max_runs=max_runs
        )
        fp32_names, runs, complete = search.nodes, runs + search.runs, complete and search.complete
    raise AccuracyError(
        f"no set of nodes in FP32 was found that meets the tolerance at {chosen[-1].point}",
        hint="does the FP32 model meet it? trtconv check it first",
    )


def _rewritten_in_fp32(request: RewriteRequest, progress: Progress) -> onnx.ModelProto:
    from trtconv.rewrite.room import rewrite_model

    with private_temporary_folder("fp32nodes") as folder:
        plain = replace(request, precision="auto", keep_fp32=(), output=Path(folder) / "model.onnx", proof=False)
        rewrite_model(plain, progress)
        return load_model(plain.output, weights=True)


def _run_at(samples: Sequence[ReferenceSample]) -> Callable[[onnx.ModelProto], Mapping[str, Array]]:
    """A model's outputs at several points at once, by point and name."""
    from trtconv.backends.onnxruntime.half_emulation import emulated_runner

    def run(model: onnx.ModelProto) -> Mapping[str, Array]:
        runner = emulated_runner(model)
        return {f"{s.point} {name}": a for s in samples for name, a in runner(s.inputs).items()}

    return run


def _missed(
    model: onnx.ModelProto, samples: Sequence[ReferenceSample], tolerance: Tolerance | None, precision: str
) -> ReferenceSample | None:
    """The smallest sample at which the typed model misses the tolerance."""
    from trtconv.backends.onnxruntime.half_emulation import emulated_runner

    runner = emulated_runner(model)
    for sample in sorted(samples, key=lambda s: sum(a.size for a in s.inputs.values())):
        compared = compare_at(runner, sample, tolerance, arithmetic=Arithmetic(precision))
        if not all(c.passed for c in compared):
            return sample
    return None


def _nodes(model: onnx.ModelProto, names: Sequence[str]) -> tuple[Fp32Node, ...]:
    by_name = {n.name or n.output[0]: n for n in model.graph.node}
    return tuple(
        Fp32Node(n, by_name[n].op_type, origin_of(by_name[n])) if n in by_name else Fp32Node(n, "", Origin())
        for n in names
    )
