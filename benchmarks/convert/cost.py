"""`python -m benchmarks convert.cost [NAME ...]`: `trtconv convert` beside the plain exporter and the plain build.

NAME is an example, one of the larger networks here, or a network of `networks/` (`timm/dla34`, or a pattern like
`timm/*vit*`; its package has to be importable, see `networks.run.variables_of`).

Each network is converted in one process and exported and built plainly in another, in the same run; imports and the
making of the module are not counted. `plain` is one call of torch.onnx.export with the same dynamic dims (by
TorchScript where torch.export cannot) and one build of its file; where it cannot be built, trtconv's own build is left
out of the ratio. Seconds are those of the processor, over all threads
and children, and of the wall: on a busy machine the first still compare. `--refusals` has modules that trtconv has to
refuse, beside the plain export alone.

`--json FILE` writes the record; without the wall seconds where the load average is over `QUIET`, as those of a busy
machine say little.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.processors import thread_variables
from trtconv.core.progress import SilentProgress

if TYPE_CHECKING:
    from trtconv.core.config import Config
    from trtconv.pipeline import ConvertRequest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
LARGER = ("resnet50", "convnext_t", "vit_b")
REFUSED = ("draws", "decides")
# The load average, over two minutes of which nothing else may have run, for a record to be kept.
QUIET = 1.5
LOADING = "export: loading the module"


def configs() -> dict[str, Path]:
    """The examples and the larger networks, by name."""
    examples = sorted((ROOT / "examples").glob("*.toml"))
    return {p.stem: p for p in (*examples, *(HERE / f"{n}.toml" for n in LARGER))}


def named(patterns: Sequence[str]) -> list[str]:
    """The networks that are meant; a pattern with a slash stands for those of `networks/` that match it."""
    from networks.registry import all_networks

    names: list[str] = []
    for pattern in patterns:
        names += fnmatch.filter(all_networks(), pattern) if "/" in pattern else [pattern]
    return names


def config_of(name: str) -> Config:
    """The configuration of a network, one that is refused too."""
    from trtconv.frontend.assemble import load_config

    if "/" in name:
        return registered(name)
    return load_config(HERE / "refused" / f"{name}.toml" if name in REFUSED else configs()[name])


def registered(name: str) -> Config:
    """What a user of a network of `networks/` would write into trtconv.toml."""
    from networks.registry import all_networks
    from trtconv.core.config import validate_config
    from trtconv.core.tensors import parse_tensor

    network = all_networks()[name]
    inputs = []
    for spec in map(parse_tensor, network.inputs):
        entry: dict[str, Any] = {"name": spec.parameter or spec.name, "dtype": spec.dtype.name, "dims": list(spec.dims)}
        entry |= {"range": spec.value_range} if spec.value_range else {}
        inputs.append(entry | ({"rename": spec.name} if spec.parameter else {}))
    dynamic: dict[str, str] = {}
    for word in network.space.split():
        dim, _, sizes = word.partition("=")
        dynamic[dim] = sizes
    model = {"module": "networks.registry:make", "args": {"network": name}, "path": str(ROOT)}
    return validate_config({"model": model, "input": inputs, "dynamic": dynamic}, name)


def requested(name: str, folder: Path) -> ConvertRequest:
    """The conversion of a network into a folder."""
    from trtconv.frontend.assemble import convert_request
    from trtconv.frontend.command_line import CommandLine

    return convert_request(config_of(name), None, folder, False, CommandLine())


def processor_seconds() -> float:
    """What this process and the children that it has waited for have spent, in user and system mode."""
    return sum(os.times()[:4])


@dataclass
class Spent(SilentProgress):
    """Seconds of the processor and of the wall, by stage and by phase in it."""

    by_phase: dict[str, float] = field(default_factory=dict)
    _name: tuple[str, str] = ("", "")
    _since: float = field(default_factory=processor_seconds)

    def stage(self, name: str) -> None:
        """A room begins."""
        self._turn((name, ""))

    def phase(self, name: str, completed: int = 0, total: int = 0) -> None:
        """A step of a room; of rounds of rules the name of the rule is left out."""
        self._turn((self._name[0], name.split(":")[0]))

    def _turn(self, name: tuple[str, str]) -> None:
        now = processor_seconds()
        key = ": ".join(filter(None, self._name)) or "before"
        self.by_phase[key] = self.by_phase.get(key, 0.0) + now - self._since
        self._name, self._since = name, now

    def end(self) -> dict[str, float]:
        """What was spent, once all is over."""
        self._turn(("", ""))
        return {k: round(v, 2) for k, v in self.by_phase.items() if v >= 0.01}


@contextmanager
def timed(record: dict[str, Any], name: str) -> Iterator[None]:
    """Put the seconds of the block into the record, of the processor and of the wall."""
    cpu, wall = processor_seconds(), time.perf_counter()
    try:
        yield
    finally:
        record[name] = {"cpu": round(processor_seconds() - cpu, 2), "wall": round(time.perf_counter() - wall, 2)}


def convert(name: str, folder: Path) -> dict[str, Any]:
    """Convert, from the cold: no engine is taken from the cache."""
    import onnxruntime  # noqa: F401
    import torch  # noqa: F401

    from trtconv.core.errors import TrtconvError
    from trtconv.pipeline import convert as run

    request = requested(name, folder)
    spent = Spent()
    record: dict[str, Any] = {}
    with timed(record, "convert"):
        try:
            run(request, spent)
        except TrtconvError as error:
            record["refused"] = error.message
    stages = spent.end()
    # Making the module is the user's.
    record["convert"]["cpu"] = round(record["convert"]["cpu"] - stages.get(LOADING, 0.0), 2)
    return {**record, "stages": stages}


def plain(name: str, folder: Path) -> dict[str, Any]:
    """The plain exporter, and the plain build of what it wrote; the reason in place of what does not work."""
    import torch

    from trtconv.core.errors import TrtconvError
    from trtconv.core.requests import BuildRequest
    from trtconv.export.module.binding import bind_inputs
    from trtconv.export.module.source import load_module
    from trtconv.proof.points import SamplePoint, sample_inputs
    from trtconv.proof.sizes import traced_sizes

    request: Any = requested(name, folder).export
    module = load_module(request.source).eval()
    sizes = traced_sizes(request.space, request.inputs)
    arrays = sample_inputs(request.inputs, SamplePoint("traced", tuple(sizes.items())))
    args = tuple(torch.from_numpy(arrays[s.name]) for s in request.inputs)
    binding = bind_inputs(module.forward, [s.parameter or s.name for s in request.inputs])

    class Positional(torch.nn.Module):  # type: ignore[misc]
        """The module with its inputs in the order of the request."""

        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, *tensors: Any) -> Any:
            positional, keywords = binding.arguments(tensors)
            return self.module(*positional, **keywords)

    record: dict[str, Any] = {}
    model = folder / "plain.onnx"
    with timed(record, "export"):
        try:
            record["exporter"] = export_plainly(Positional().eval(), args, request, model)
        except Exception as error:  # whatever the module makes it raise
            record["no export"] = str(error).strip().split("\n")[0][:200]
    if "no export" in record:
        return record
    with timed(record, "build"):
        try:
            from trtconv.build import build_engine

            build_engine(BuildRequest(model, folder / "plain.engine", dynamic=request.space, inputs=request.inputs))
        except TrtconvError as error:
            record["no build"] = error.message
    return record


def export_plainly(module: Any, args: tuple[Any, ...], request: Any, model: Path) -> str:
    """One call of torch's exporter; of its older one where the first raises. Returns which it was."""
    import torch

    names = [s.name for s in request.inputs]
    units = {
        n: torch.export.Dim(f"{n}_unit", min=max(1, r.min // r.multiple), max=max(3, r.max // r.multiple))
        for n, r in request.space.dims
        if r.min != r.max
    }
    dims = {n: unit if (m := request.space[n].multiple) == 1 else m * unit for n, unit in units.items()}
    shapes = tuple({i: dims[d] for i, d in enumerate(s.dims) if d in dims} for s in request.inputs)
    try:
        torch.onnx.export(module, args, str(model), input_names=names, dynamic_shapes=(shapes,), verbose=False)
        return "dynamo"
    except Exception:  # torch raises whatever a module makes it raise
        axes = {s.name: {i: d for i, d in enumerate(s.dims) if isinstance(d, str)} for s in request.inputs}
        torch.onnx.export(module, args, str(model), input_names=names, dynamic_axes=axes, dynamo=False)
        return "torchscript"


def variables(name: str) -> dict[str, str]:
    """What the environment of a network of `networks/` has besides: no package asks a server for anything."""
    from networks.run import variables_of

    return variables_of(name, inherited=os.environ.get("PYTHONPATH", "")) if "/" in name else {}


def in_child(name: str, side: str, seconds: float) -> dict[str, Any]:
    """One side of the comparison, in a process of its own; `stopped` says that it spent more than `seconds`."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "benchmarks.convert.cost", "--child", side, name, "--folder", folder]
        # As the program itself sets them, and the same for both sides.
        environment = {**os.environ, **thread_variables(os.environ), **variables(name)}
        limit = partial(resource.setrlimit, resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
        finished = subprocess.run(
            command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment, preexec_fn=limit
        )
    if finished.returncode == -signal.SIGXCPU:
        return {"stopped": seconds}
    if finished.returncode:
        raise SystemExit(f"{side} {name}:\n{finished.stderr[-2000:]}")
    record: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return record


def compared(name: str, seconds: float) -> dict[str, Any]:
    """Both sides of one network, with the ratios; `seconds` of the processor is the most that a side may take."""
    ours, theirs = in_child(name, "convert", seconds), in_child(name, "plain", seconds)
    if "stopped" in ours or "stopped" in theirs:
        return {"network": name, **ours, "plain": theirs}
    counted = "refused" not in ours and "no build" not in theirs
    built = theirs.get("build") if counted else None
    plainly = {k: theirs["export"][k] + (built[k] if built else 0.0) for k in ("cpu", "wall")}
    # What the plain file cannot be built into has no build to be compared with.
    builds = (v for stage, v in ours["stages"].items() if stage.startswith("build"))
    alone = sum(builds) if "no build" in theirs else 0.0
    ratio = {k: round((ours["convert"][k] - alone) / max(0.01, v), 2) for k, v in plainly.items()}
    return {"network": name, "ratio": ratio, **ours, "plain": theirs}


def shown(row: dict[str, Any]) -> str:
    """One line of the table."""
    theirs = row["plain"]
    if "ratio" not in row:
        side = "the conversion" if "stopped" in row else "the plain export or build"
        return f"{row['network']:40} {side} is not over after {row.get('stopped') or theirs['stopped']:g} s"
    build = theirs["build"]["cpu"] if "build" in theirs and "no build" not in theirs else 0.0
    numbers = f"{row['convert']['cpu']:9.1f} {theirs['export']['cpu']:9.1f} {build:8.1f}"
    remark = "refused" if "refused" in row else theirs.get("exporter", "fails after these seconds")
    return f"{row['network']:40} {numbers} {row['ratio']['cpu']:7.2f} {row['ratio']['wall']:7.2f}  {remark}"


def without_wall(record: Any) -> Any:
    """The record of a busy machine: seconds of the wall are left out."""
    if isinstance(record, list):
        return [without_wall(r) for r in record]
    return {k: without_wall(v) for k, v in record.items() if k != "wall"} if isinstance(record, dict) else record


def main() -> None:
    """Measure the networks that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of {', '.join([*configs(), *REFUSED])}, or PACKAGE/PATTERN"
    )
    parser.add_argument("--seconds", type=float, default=600.0, help="of the processor, at most, for a side of each")
    parser.add_argument("--refusals", action="store_true", help="the modules that have to be refused")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the record")
    parser.add_argument("--child", choices=("convert", "plain"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        side = convert if options.child == "convert" else plain
        print(json.dumps(side(options.names[0], options.folder)))
        return
    load = os.getloadavg()[0]
    names = named(options.names) or [*(REFUSED if options.refusals else configs())]
    print(f"{'CPU seconds':40} {'convert':>9} {'export':>9} {'build':>8} {'ratio':>7} {'wall':>7}  plain exporter")
    rows = []
    for name in names:
        rows.append(compared(name, options.seconds))
        print(shown(rows[-1]), flush=True)
        stages = sorted(rows[-1].get("stages", {}).items(), key=lambda s: -s[1])[:6]
        print("    " + ", ".join(f"{n} {s:.1f}" for n, s in stages), flush=True)
    # Where the plain exporter fails there is nothing to compare with.
    ratios = [r["ratio"]["cpu"] for r in rows if "ratio" in r and ("exporter" in r["plain"] or "refused" in r)]
    if ratios:
        print(f"median ratio {statistics.median(ratios):.2f}")
    if options.json:
        from benchmarks.record import machine

        rows = rows if load <= QUIET else without_wall(rows)
        record = {**machine("torch", "onnxruntime", "tensorrt_rtx"), "load_average": round(load, 2), "networks": rows}
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
