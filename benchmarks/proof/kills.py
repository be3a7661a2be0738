"""SIGKILL at random moments of convert, rewrite, build, check and the cache, over one folder and one cache.

    python -m benchmarks proof.kills [--kills 200] [--seed 1] [-o FILE]

Two versions of a module (4 and 5 channels) are converted into one folder in turn, so that a set of which a part was
replaced is a mixed one. After each kill every file must be whole, a set that trtconv takes for consistent must be of
one version, and no builder may go on. After a run that was not killed nothing temporary may be left. The commands are
forked from a process that has imported everything, so that the kills hit the work and not the start of Python.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trtconv.core.artifacts import write_json
from trtconv.core.errors import TrtconvError

NET = """
import torch
from torch import nn


def make_net(width=4):
    torch.manual_seed(width)
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.Softmax(1)).eval()
"""
COMMANDS = ("convert", "convert", "convert", "rewrite", "build", "build", "check", "cache")
# A run that is not killed, which has to clean up, after so many kills.
WHOLE_EVERY = 10
_ORPHAN_S = 10.0


class Campaign:
    """One folder, one cache, and what was seen."""

    def __init__(self, root: Path, seed: int) -> None:
        self._root, self._out, self._random = root, root / "out", random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self._seconds: dict[str, float] = {}
        (root / "net.py").write_text(NET)
        (root / "tmp").mkdir(mode=0o700)
        os.environ |= {"TMPDIR": str(root / "tmp"), "TRTCONV_CACHE": str(root / "cache")}
        tempfile.tempdir = str(root / "tmp")

    def run(self, kills: int, tell: Callable[[int], None]) -> None:
        """Whole runs first, to know how long each takes; then the kills, each of which is told with its number."""
        for command in dict.fromkeys(COMMANDS):
            started = time.monotonic()
            self._whole(command)
            self._seconds[command] = time.monotonic() - started
        for number in range(kills):
            self._kill(self._random.choice(COMMANDS))
            if number % WHOLE_EVERY == WHOLE_EVERY - 1:
                for command in ("convert", "cache"):
                    self._whole(command)
                self._look_for_leftovers()
            tell(number + 1)

    def _words(self, command: str) -> list[str]:
        out, width = self._out, self._random.choice((4, 5))
        return {
            "convert": ["convert", f"{self._root / 'net.py'}:make_net", "--arg", f"width={width}", "-o", str(out), "-q",
                        "--input", "x:float32[N,3,H,8]", "--dynamic", "N=1:1:2", "H=8:8:12", "--backend",
                        "tensorrt-rtx", *(["--force"] if self._random.random() < 0.5 else [])],
            "rewrite": ["rewrite", str(out / "model.onnx"), "--target", "tensorrt-rtx", "-q"],
            "build": ["build", str(out / "model.trt.onnx"), "-o", str(out / "model.engine"), "--dynamic", "-q",
                      "--backend", "tensorrt-rtx"],
            "check": ["check", str(out / "model.trt.onnx"), "--json", str(out / "report.json"), "-q"],
            "cache": ["cache", self._random.choice(("verify", "prune", "ls"))],
        }[command]  # fmt: skip

    def _start(self, command: str) -> int:
        words = self._words(command)
        pid = os.fork()
        if pid:
            return pid
        # The child is the command, and nothing of the campaign.
        with open(os.devnull, "wb") as nowhere:
            for descriptor in (1, 2):
                os.dup2(nowhere.fileno(), descriptor)
        from trtconv.cli.main import run

        code = 1
        try:
            run(words)
        except SystemExit as ending:
            code = int(ending.code or 0)
        finally:
            os._exit(code)

    def _whole(self, command: str) -> None:
        _, status = os.waitpid(self._start(command), 0)
        code = os.waitstatus_to_exitcode(status)
        self.counts[f"whole {command}: exit {code}"] += 1
        if command == "convert" and code != 0:
            self.failures.append(f"a convert after kills ended with {code}")

    def _kill(self, command: str) -> None:
        pid = self._start(command)
        # Late moments as often as early ones, although most of a run lies before its first output.
        delay = self._seconds[command] * self._random.choice((self._random.random(), self._random.uniform(0.6, 1.1)))
        end = time.monotonic() + delay
        while time.monotonic() < end:
            if os.waitpid(pid, os.WNOHANG)[0]:
                self.counts[f"{command}: ended before its kill"] += 1
                self._look(command)
                return
            time.sleep(0.002)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.counts[f"{command}: killed"] += 1
        self._look(command)

    def _look(self, command: str) -> None:
        """The folder as the next command would find it."""
        state = self._state()
        self.counts[state.partition(":")[0]] += 1
        if state.startswith(("damaged", "unseen")):
            self.failures.append(f"after {command}: {state}")
        end = time.monotonic() + _ORPHAN_S
        while (orphans := self._builders()) and time.monotonic() < end:
            time.sleep(0.05)
        if orphans:
            self.failures.append(f"after {command}: builder {orphans[0]} goes on")

    def _state(self) -> str:
        from trtconv.check.compare.engine_files import engine_problems
        from trtconv.check.compare.reference_fit import reference_binding
        from trtconv.core.trust.signed_set import read_set, require_consistent

        damage = self._damage()
        if damage:
            return f"damaged: {damage}"
        engine, rewritten = self._out / "model.engine", self._out / "model.trt.onnx"
        widths = self._widths()
        try:
            findings = [f for f in engine_problems(engine, None) if f.level == "error"] if engine.exists() else []
            findings += [f for f in reference_binding(rewritten, None) if f.level == "error"]
            require_consistent(read_set(rewritten))
        except TrtconvError as error:
            return f"named as mixed: {error.message}"
        if findings:
            return f"named as mixed: {findings[0].message}"
        return f"unseen mixture of {widths}" if len(set(widths.values())) > 1 else "consistent"

    def _damage(self) -> str:
        """The first file that is not whole."""
        from trtconv.core.artifacts import read_json
        from trtconv.core.model.file import load_model
        from trtconv.proof.reference import read_reference_info

        readers = {".onnx": load_model, ".json": read_json, ".safetensors": read_reference_info}
        for path in sorted(self._out.iterdir()) if self._out.exists() else []:
            if path.name.startswith("."):
                continue
            try:
                readers.get(path.suffix, Path.read_bytes)(path)
            except TrtconvError as error:
                return error.message
        return ""

    def _widths(self) -> dict[str, Any]:
        """Channels of the output by file, from which version it is."""
        from safetensors import safe_open

        from trtconv.core.artifacts import read_json
        from trtconv.core.model.file import load_model

        widths: dict[str, Any] = {}
        for name in ("model.onnx", "model.trt.onnx"):
            if (self._out / name).exists():
                widths[name] = load_model(self._out / name).graph.output[0].type.tensor_type.shape.dim[1].dim_value
        if (self._out / "model.engine.json").exists():
            widths["model.engine.json"] = read_json(self._out / "model.engine.json")["outputs"][0]["dims"][1]
        if (self._out / "model.reference.safetensors").exists():
            with safe_open(str(self._out / "model.reference.safetensors"), framework="numpy") as stream:
                name = next(n for n in stream.keys() if n.startswith("p0/output/"))  # noqa: SIM118
                widths["reference"] = stream.get_slice(name).get_shape()[1]
        return widths

    def _builders(self) -> list[int]:
        """Builders of this campaign that are running."""
        mine = f"TMPDIR={self._root / 'tmp'}".encode()
        pids = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                builds = b"builder.isolated" in (folder / "cmdline").read_bytes()
                if builds and mine in (folder / "environ").read_bytes():
                    pids.append(int(folder.name))
            except OSError:
                continue
        return pids

    def _look_for_leftovers(self) -> None:
        hidden = [p.name for p in self._out.iterdir() if p.name.startswith(".")]
        folders = [p.name for p in (self._root / "tmp").iterdir() if p.name.startswith("trtconv-")]
        for name in (*hidden, *folders):
            self.failures.append(f"left over after a whole convert: {name}")


def main() -> int:
    """Run the campaign and write its result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/kills.json"))
    options = parser.parse_args()
    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401
    import onnxscript  # noqa: F401
    import torch  # noqa: F401

    import trtconv.check
    import trtconv.export
    import trtconv.pipeline
    import trtconv.rewrite  # noqa: F401

    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        campaign = Campaign(Path(folder), options.seed)

        def tell(kills: int) -> None:
            # After each, so that a campaign that is stopped leaves what it saw.
            write_json(options.output, {
                "date": time.strftime("%Y-%m-%d"), "kills": kills, "seed": options.seed,
                "seconds": round(time.monotonic() - started), "seen": dict(sorted(campaign.counts.items())),
                "failures": [text.replace(folder, "") for text in campaign.failures],
            })  # fmt: skip

        campaign.run(options.kills, tell)
    for name, count in sorted(campaign.counts.items()):
        print(f"{count:>6}  {name}")
    print(*campaign.failures, sep="\n")
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
