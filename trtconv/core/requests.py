"""The frozen specs that the rooms take. Paths are absolute or relative to the working directory."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.targets import Target
from trtconv.core.tensors import TensorSpec
from trtconv.core.tolerance import Tolerance


@dataclass(frozen=True)
class ModuleSource:
    """Where the `nn.Module` comes from.

    `spec` is `path/to/file.py:factory`, `package.module:factory` or `program.pt2`; relative paths are seen from
    `base`. `args` are keyword arguments of the factory. `weights` is safetensors or a state dict. `sample` is
    `file.py:function` with the signature `(dims: dict[str, int], generator: torch.Generator) -> tuple of tensors`.
    """

    spec: str
    args: tuple[tuple[str, Any], ...] = ()
    weights: Path | None = None
    sample: str | None = None
    seed: int = 0
    base: Path = Path()


@dataclass(frozen=True)
class ExportRequest:
    """`trtconv export`. `exporter` is `auto`, `dynamo` or `torchscript`; `opset` None takes the exporter's best.

    `align` narrows the space to sizes at which the module is defined; `pad_to_multiple` is a mode (`auto`, `reflect`,
    `edge`, `zero`) in which inputs are padded to such sizes, or empty.
    """

    source: ModuleSource
    inputs: tuple[TensorSpec, ...]
    space: ShapeSpace
    output: Path
    exporter: str = "auto"
    opset: int | None = None
    tolerance: Tolerance | None = None
    align: bool = False
    pad_to_multiple: str = ""


@dataclass(frozen=True)
class RewriteRequest:
    """`trtconv rewrite`. `rule_files` are the user's own rules; `plugins` is `auto`, `never` or names with commas.

    `plugin_libraries` are those that will be loaded, which `auto` wants to know; nothing is loaded by a rewrite.

    `keep_fp32` names nodes that stay in FP32 when `precision` is fp16 or bf16 (`trtconv check --find-fp32` finds them).
    `space` is laid over the ranges that the model records; `align` and `pad_to_multiple` as in ExportRequest.
    """

    model: Path
    output: Path
    target: Target
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    proof: bool = True
    rule_files: tuple[Path, ...] = ()
    plugins: str = "never"
    plugin_libraries: tuple[Path, ...] = ()
    precision: str = "auto"
    keep_fp32: tuple[str, ...] = ()
    space: ShapeSpace = field(default_factory=ShapeSpace)
    align: bool = False
    pad_to_multiple: str = ""


@dataclass(frozen=True)
class BuildRequest:
    """`trtconv build`.

    `dynamic`: None builds static at opt; an empty space takes the recorded ranges; a filled one is laid over them.
    `profiles`: one shape space per optimization profile; empty means one profile from the ranges.
    `precision` auto takes the graph as it is typed; fp32, fp16 and bf16 demand it. `workspace` in bytes.
    `compute_capabilities` like `("8.6", "8.9")`, for targets that build ahead of time. `multiples` narrow the dims that
    they name, in every profile. `isolated` builds in a child process, so that a crash of the builder is an error.
    """

    model: Path
    output: Path
    dynamic: ShapeSpace | None = None
    profiles: tuple[ShapeSpace, ...] = ()
    inputs: tuple[TensorSpec, ...] = ()
    backend: str = "auto"
    precision: str = "auto"
    workspace: int | None = None
    timing_cache: Path | None = None
    opt_level: int | None = None
    compute_capabilities: tuple[str, ...] = ()
    plugins: tuple[Path, ...] = ()
    options: tuple[tuple[str, Any], ...] = field(default=())
    multiples: tuple[tuple[str, int], ...] = ()
    isolated: bool = False


@dataclass(frozen=True)
class CheckRequest:
    """`trtconv check`. `reference` None looks beside the subject; `against` runs a module instead of reading a file.

    `allow_unrunnable`: an engine that this machine cannot run is a note and not an error.
    """

    subject: Path
    reference: Path | None = None
    against: ModuleSource | None = None
    tolerance: Tolerance | None = None
    outputs: tuple[tuple[str, Tolerance], ...] = ()
    plugins: tuple[Path, ...] = ()
    allow_unrunnable: bool = False
