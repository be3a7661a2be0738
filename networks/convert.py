"""`python -m networks.convert NETWORK RESULT.json`: one network through the rooms, in a process of its own.

What the rooms prove at their sample points is proved here once more at sizes that they did not look at, by the
rewritten file in ONNX Runtime.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from networks.judge import FARTHEST, distance, idle_outputs, own_answers, without_own_flips
from networks.network import Network

BLIND_SIZES = 2
OLD_TARGET = "tensorrt==8.6"


@dataclass
class Outcome:
    """What became of a network.

    `status`: `equal`, `refused` (trtconv said no: `message`), `wrong` (nothing was said and a size differs),
    `crashed` (something other than trtconv's own error), `stopped` (over the limit of time or memory), or
    `unavailable` (its package does not make it here). `ties` is what the conversion told of decisions between nearly
    tied values, `own_flips` the rows at blind sizes that differ as the original differs from itself.
    """

    network: str
    status: str = "crashed"
    message: str = ""
    exporter: str = ""
    opset: int = 0
    nodes: int = 0
    rewrites: dict[str, int] = field(default_factory=dict)
    rtx: str = ""
    rewrite_8_6: str = ""
    idle_outputs: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    peak_mib: int = 0
    distance: float = 0.0
    ties: list[str] = field(default_factory=list)
    own_flips: int = 0


def convert(name: str, network: Network, folder: Path) -> Outcome:
    """Export, rewrite, compare at blind sizes, build with TensorRT-RTX, and rewrite for 8.6."""
    from trtconv.core.errors import TrtconvError
    from trtconv.export.module.noise.near_ties import NEARLY_TIED

    outcome = Outcome(name)

    def step(stage: str, work: Callable[[], Any]) -> Any:
        started = time.monotonic()
        try:
            return work()
        finally:
            outcome.seconds[stage] = round(time.monotonic() - started, 1)

    try:
        module = step("make", lambda: load(name, network))
    except TrtconvError as error:
        outcome.status, outcome.message = "unavailable", error.message
        return outcome
    model, rewritten = folder / "model.onnx", folder / "model.trt.onnx"
    try:
        result = step("export", lambda: _export(name, network, model))
        outcome.exporter, outcome.ties = result.exporter, [n for n in result.notes if n.startswith(NEARLY_TIED)]
        ledger = step("rewrite", lambda: _rewrite(model, rewritten, "tensorrt-rtx"))
        outcome.rewrites = dict(sorted(Counter(e.rule for e in ledger.entries).items()))
        outcome.opset, outcome.nodes = _facts(rewritten)
        differs = step("compare", lambda: _compare(name, network, module, rewritten, outcome))
        outcome.status, outcome.message = ("wrong", differs) if differs else ("equal", "")
    except TrtconvError as error:
        outcome.status, outcome.message = "refused", _words(error, folder)
        return outcome
    outcome.rtx = step("build", lambda: _yes_or_why(lambda: _build(rewritten, folder / "model.engine"), folder))
    outcome.rewrite_8_6 = step(
        "rewrite 8.6", lambda: _yes_or_why(lambda: _rewrite(model, folder / "old.onnx", OLD_TARGET), folder)
    )
    return outcome


def _source(name: str) -> Any:
    from trtconv.core.requests import ModuleSource

    return ModuleSource("networks.registry:make", (("network", name),), base=Path(__file__).parents[1])


def load(name: str, network: Network) -> Any:
    from trtconv.core.tensors import parse_tensor
    from trtconv.export.module.runner import ModuleRunner
    from trtconv.export.module.source import load_module

    return ModuleRunner(load_module(_source(name)), [parse_tensor(t) for t in network.inputs])


def _export(name: str, network: Network, model: Path) -> Any:
    from trtconv.core.progress import SilentProgress
    from trtconv.core.requests import ExportRequest
    from trtconv.core.shape_space.space import parse_space
    from trtconv.core.tensors import parse_tensor
    from trtconv.export import export_model

    specs = tuple(parse_tensor(t) for t in network.inputs)
    return export_model(ExportRequest(_source(name), specs, parse_space([network.space]), model), SilentProgress())


def _rewrite(model: Path, output: Path, target: str) -> Any:
    from trtconv.core.progress import SilentProgress
    from trtconv.core.requests import RewriteRequest
    from trtconv.core.targets import parse_target
    from trtconv.rewrite import rewrite_model

    return rewrite_model(RewriteRequest(model, output, parse_target(target), nms="auto"), SilentProgress())


def _build(model: Path, output: Path) -> Any:
    from trtconv.build import build_engine
    from trtconv.core.progress import SilentProgress
    from trtconv.core.requests import BuildRequest
    from trtconv.core.shape_space.space import ShapeSpace

    request = BuildRequest(model, output, dynamic=ShapeSpace(), backend="tensorrt-rtx", precision="fp32")
    return build_engine(request, SilentProgress())


def _yes_or_why(work: Callable[[], Any], folder: Path) -> str:
    from trtconv.core.errors import TrtconvError

    try:
        work()
    except TrtconvError as error:
        return _words(error, folder)
    return "yes"


def _words(error: Any, folder: Path) -> str:
    where = f" [{error.where}]" if error.where else ""
    lines = "; ".join([f"{type(error).__name__}: {error.message}", *error.details[:4]])
    return " ".join(lines.replace(f"{folder}/", "").split())[:900] + where


def _facts(model: Path) -> tuple[int, int]:
    from trtconv.core.model.file import load_model

    proto = load_model(model)
    return max(o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), len(proto.graph.node)


def _compare(name: str, network: Network, module: Any, model: Path, outcome: Outcome) -> str:
    """Compare at random sizes that depend on the name alone; an empty text when all agree.

    Twice: by the noise floor of these runs, and by the distance that knows nothing of `trtconv.proof`.
    """
    from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
    from trtconv.core.shape_space.fixed_rows import recorded_fixed_rows
    from trtconv.core.shape_space.space import parse_space
    from trtconv.core.tensors import parse_tensor
    from trtconv.proof.comparison import describe_failure, first_failure
    from trtconv.proof.noise.noise_floor import noise_floors
    from trtconv.proof.noise.rounding import measured_errors, own_errors
    from trtconv.proof.points import SamplePoint, sample_inputs
    from trtconv.proof.proving import compare_at
    from trtconv.proof.reference import ReferenceSample, formed_sample

    chance = random.Random(name)
    specs, space = [parse_tensor(t) for t in network.inputs], parse_space([network.space])
    samples = []
    for turn in range(BLIND_SIZES):
        sizes = tuple((n, chance.choice(list(r.values()))) for n, r in space.dims)
        point = SamplePoint(f"blind-{turn}", sizes, seed=77 + turn)
        inputs = sample_inputs(specs, point)
        # A counted run shows whether it ranks: of equal values the first comes first then, as ONNX has it.
        samples.append(ReferenceSample(point, inputs, module.counted(inputs)[0]))
    outcome.idle_outputs = idle_outputs([s.outputs for s in samples])
    exact = module.exact()
    errors = [measured_errors(module, exact, s.inputs, s.outputs) for s in samples]
    floors, _ = noise_floors([s.outputs for s in samples], errors, [True] * len(samples))
    runner, form = OnnxRuntimeRunner(model), recorded_fixed_rows(model)
    for index, (sample, floor) in enumerate(zip(samples, floors, strict=True)):
        compared = formed_sample(replace(sample, floors=floor), form)
        failure = first_failure(compare_at(runner, compared))
        if failure and failure.max_abs is not None:
            # As in an export: an element may have come out well in the one draw of its noise.
            for drawn in own_errors(module, sample, errors[index]):
                errors[index] = drawn
            floors, _ = noise_floors([s.outputs for s in samples], errors, [True] * len(samples))
            compared = formed_sample(replace(sample, floors=floors[index]), form)
            failure = first_failure(compare_at(runner, compared))
        if failure and failure.max_abs is None:
            return describe_failure(failure)
        actual = runner(sample.inputs)
        if failure or _farthest(compared.outputs, actual) > FARTHEST:
            answers = (form.pad(a) if form else a for a in own_answers(module, sample.inputs))
            actual, flips = without_own_flips(compared.outputs, actual, answers)
            outcome.own_flips += flips
            failure = first_failure(compare_at(lambda _, given=actual: given, compared))
            if failure:
                return describe_failure(failure)
        outcome.distance = max(outcome.distance, _farthest(compared.outputs, actual))
        for output, expected in compared.outputs.items():
            if (off := distance(expected, actual[output])) > FARTHEST:
                return f"output '{output}' at {sample.point}: off by {off:.2g} of its magnitude"
    return ""


def _farthest(expected: dict[str, Any], actual: dict[str, Any]) -> float:
    return max((distance(v, actual[n]) for n, v in expected.items()), default=0.0)


def main() -> int:
    """Convert the network that is named, and write the outcome whatever happens."""
    from networks.registry import all_networks

    name, result = sys.argv[1], Path(sys.argv[2])
    outcome = Outcome(name)
    try:
        with tempfile.TemporaryDirectory(prefix="network-") as folder:
            outcome = convert(name, all_networks()[name], Path(folder))
    except Exception as error:
        import traceback

        frames = traceback.extract_tb(error.__traceback__)
        own = [f for f in frames if "/trtconv/" in f.filename]
        where = f" [{Path(own[-1].filename).name}:{own[-1].lineno}]" if own else ""
        outcome.message = f"{type(error).__name__}: {' '.join(str(error).split())[:400]}{where}"
    outcome.peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    result.write_text(json.dumps(asdict(outcome)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
