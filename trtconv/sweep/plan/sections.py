"""`sweep.toml` as plain frozen dataclasses; pydantic validates what comes from a file (`trtconv.sweep.plan.file`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from trtconv.core.precision import FP32

_STRICT = {"extra": "forbid"}
# The kinds of jobs, in the order in which a cell walks through them.
EXPORT = "export"
KINDS = (EXPORT, "rewrite", "type", "check", "build", "engine", "tune", "bench")


@dataclass(frozen=True)
class SweepSection:
    """`[sweep]`: the axes of the matrix. `spaces` holds texts like "N=1:4:16 H=32:64:96"; empty takes the model's own.

    Among `precisions` may be names of contracts.

    `gpus` are names as Ray has them (`H100`, `T4`), or `none` for what is done on CPUs alone. `store` is a folder, seen
    from the atlas, or a URL that fsspec can open. `retries` counts further attempts after a fault of the machines.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    name: str = "sweep"
    targets: list[str] = field(default_factory=lambda: ["tensorrt-rtx"])
    precisions: list[str] = field(default_factory=lambda: [FP32.name])
    spaces: list[str] = field(default_factory=list)
    gpus: list[str] = field(default_factory=lambda: ["none"])
    store: str = "store"
    retries: int = 2


@dataclass(frozen=True)
class SweepModelSection:
    """`[[model]]`: one of `config` (a trtconv.toml, or a pattern of several), `module` with its inputs, or `registry`.

    `module` is `file.py:factory`, `package.module:factory`, a .pt2 file or somebody's .onnx file. `registry` is
    `file.py:function`, which returns a mapping from names to such sections as plain tables; `names` are patterns of
    those that are taken. `dynamic` is the model's own shape space. The lists that are not empty stand for those of
    `[sweep]`. `options` are further words for `trtconv export`, `variables` are added to its environment.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    name: str = ""
    config: str = ""
    module: str = ""
    registry: str = ""
    names: list[str] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    dynamic: str = ""
    weights: str = ""
    options: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    targets: list[str] = field(default_factory=list)
    precisions: list[str] = field(default_factory=list)
    spaces: list[str] = field(default_factory=list)
    gpus: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SweepContractSection:
    """`[contracts.NAME]`: what an engine has to keep, and in which precisions `trtconv tune` looks for the fastest one.

    The keys are the options of that command; those that are empty are left to a model's config. Relative paths are
    seen from the sweep file.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    metric: str = ""
    max_drop: str = ""
    precisions: list[str] = field(default_factory=list)
    data: str = ""
    preprocess: str = ""
    calibration: str = ""
    minutes: float = 0.0


@dataclass(frozen=True)
class CellPattern:
    """`[[exclude]]`: cells all of whose named parts match; patterns as a shell has them (`resnet*`)."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    model: str = "*"
    space: str = "*"
    target: str = "*"
    precision: str = "*"
    gpu: str = "*"


@dataclass(frozen=True)
class CellSection:
    """`[[include]]`: one cell beside the matrix."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    model: str
    target: str
    precision: str = FP32.name
    gpu: str = "none"
    space: str = ""


@dataclass(frozen=True)
class ResourceSection:
    """`[resources.KIND]`: what one job of a kind takes. `memory` like "4GiB", `seconds` before it counts as hung."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    cpus: float = 1.0
    memory: str = ""
    seconds: float = 3600.0


@dataclass(frozen=True)
class EnvironmentSection:
    """`[environments."tensorrt==8.6"]`: what a target's jobs run with, where that is another installation.

    `[environments.export]` is for exports, which have no target.

    `command` stands for `python -m trtconv`, `variables` are added to the environment, `runtime_env` goes to Ray.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    command: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    runtime_env: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SweepFile:
    """A whole `sweep.toml`. `prices` are those of one hour of a GPU by its name, or of a CPU by `cpu`."""

    __pydantic_config__: ClassVar[dict[str, str]] = _STRICT
    sweep: SweepSection = field(default_factory=SweepSection)
    model: list[SweepModelSection] = field(default_factory=list)
    include: list[CellSection] = field(default_factory=list)
    exclude: list[CellPattern] = field(default_factory=list)
    contracts: dict[str, SweepContractSection] = field(default_factory=dict)
    resources: dict[str, ResourceSection] = field(default_factory=dict)
    environments: dict[str, EnvironmentSection] = field(default_factory=dict)
    prices: dict[str, float] = field(default_factory=dict)
