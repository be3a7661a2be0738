"""`trtconv doctor`: what is installed, what this machine can build and run, and what to install for the rest.

Nothing here raises or crashes: libraries that could end the process are imported in a child process.
"""

from __future__ import annotations

import platform
import subprocess
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from trtconv.backends.cuda.choice import INSTALL_PYCUDA, CudaChoice, choose_cuda
from trtconv.backends.cuda.driver import CudaState, probe_cuda
from trtconv.backends.tensorrt.library import INSTALL, MODULES
from trtconv.core.errors import TrtconvError
from trtconv.core.files.python_child import run_code

_IMPORT_TIMEOUT_S = 60
# Package -> (what it is for, how it is installed).
PACKAGES: dict[str, tuple[str, str]] = {
    "torch": ("export, and references from the module itself", "pip install torch"),
    "onnx": ("every room", "pip install onnx"),
    "onnxscript": ("export with the dynamo exporter", "pip install onnxscript"),
    "onnxruntime": ("proofs and checks", "pip install onnxruntime"),
    "onnx-graphsurgeon": ("rewrite", "pip install onnx-graphsurgeon"),
    "pycuda": ("memory, streams and events on the GPU; optional", INSTALL_PYCUDA),
}


@dataclass(frozen=True)
class Ability:
    """One thing that a user may want to do here: whether it can be done, why not, and the command that helps."""

    name: str
    possible: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True)
class MachineReport:
    """All that `trtconv doctor` knows."""

    system: str
    python: str
    packages: tuple[tuple[str, str, str, str], ...]
    cuda: CudaState
    abilities: tuple[Ability, ...]
    memory: CudaChoice
    versions: dict[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for `--json`."""
        return {
            "system": self.system,
            "python": self.python,
            "packages": {name: version or None for name, version, _, _ in self.packages},
            "tensorrt": self.versions,
            "driver": self.cuda.driver or None,
            "gpus": [vars(g) for g in self.cuda.gpus],
            "cuda": self.cuda.reason or "ok",
            "cuda_library": vars(self.memory),
            "abilities": [vars(a) for a in self.abilities],
        }


def probe_machine() -> MachineReport:
    """Look at this machine. Takes about a second for each TensorRT that is installed."""
    cuda = probe_cuda()
    packages = tuple((name, _version(name), use, install) for name, (use, install) in PACKAGES.items())
    answers = {family: _ask(family) for family in MODULES}
    versions = {family: text for family, (text, problem) in answers.items() if not problem}
    installed = {name: bool(text) for name, text, _, _ in packages}
    abilities = [
        _needs("export", installed, ("torch", "onnx", "onnxscript")),
        _needs("rewrite and check ONNX", installed, ("onnx", "onnxruntime", "onnx-graphsurgeon")),
        *(_build_ability(family, answers[family], cuda) for family in MODULES),
        *(_run_ability(family, answers[family], cuda) for family in MODULES),
    ]
    system = f"{platform.system()} {platform.machine()}"
    python = platform.python_version()
    return MachineReport(system, python, packages, cuda, tuple(abilities), _cuda_library(cuda), versions)


def _cuda_library(cuda: CudaState) -> CudaChoice:
    """What carries device memory here; where nothing can, the name is empty and the reason says why."""
    try:
        choice = choose_cuda()
    except TrtconvError as error:
        return CudaChoice("", f"{error.message} ({error.hint})")
    return choice if cuda.gpus else CudaChoice("", cuda.reason)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _needs(what: str, installed: dict[str, bool], packages: tuple[str, ...]) -> Ability:
    missing = [p for p in packages if not installed[p]]
    if not missing:
        return Ability(what, True, "")
    return Ability(what, False, "without " + ", ".join(missing), "; ".join(PACKAGES[p][1] for p in missing))


def _ask(family: str) -> tuple[str, str]:
    """Version of an installed TensorRT and an empty text, or an empty version and what is wrong."""
    module = MODULES[family]
    try:
        if find_spec(module) is None:
            return "", "is not installed"
    except (ImportError, ValueError) as error:
        return "", f"does not load: {error}"
    code = f"import {module} as t; print(t.__version__, hasattr(t, 'Builder') and hasattr(t, 'OnnxParser'))"
    try:
        completed = subprocess.run(run_code(code), capture_output=True, text=True, timeout=_IMPORT_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"does not load: {error}"
    answer = completed.stdout.split()
    if completed.returncode or len(answer) != 2:
        last = (completed.stderr.strip().splitlines() or [f"exit code {completed.returncode}"])[-1]
        return "", f"is installed but does not load: {last}"
    if answer[1] != "True":
        return "", f"{answer[0]} is a runtime only, without builder and parser"
    return answer[0], ""


def _build_ability(family: str, answer: tuple[str, str], cuda: CudaState) -> Ability:
    name, (text, problem) = f"build with {family}", answer
    if problem:
        return Ability(name, False, f"{family} {problem}", INSTALL[family])
    if family == "tensorrt" and not cuda.gpus:
        return Ability(name, False, f"{text} needs a GPU to build: {cuda.reason}", "run it on a GPU machine")
    where = f"on {cuda.gpus[0].name}" if family == "tensorrt" else "for compute capabilities 7.5 to 12.0, without a GPU"
    return Ability(name, True, f"{text}, {where}")


def _run_ability(family: str, answer: tuple[str, str], cuda: CudaState) -> Ability:
    name, (text, problem) = f"run engines of {family}", answer
    if problem:
        return Ability(name, False, f"{family} {problem}", INSTALL[family])
    if not cuda.gpus:
        return Ability(name, False, cuda.reason, "run it on a machine with an NVIDIA GPU")
    gpu = cuda.gpus[0]
    if family == "tensorrt-rtx" and gpu.compute_capability in ("9.0", "10.0", "10.3"):
        reason = f"TensorRT-RTX has no kernels for compute capability {gpu.compute_capability} ({gpu.name})"
        return Ability(name, False, reason, INSTALL["tensorrt"])
    return Ability(name, True, f"{text} on {gpu.name}, compute capability {gpu.compute_capability}")
