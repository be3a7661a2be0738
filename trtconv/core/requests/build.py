"""What `trtconv build` asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trtconv.core.option import comma_list, key_values, option, paths_seen_from
from trtconv.core.precision import AUTO, REQUESTED_NAMES
from trtconv.core.requests.export import INPUT_METAVAR, config_ranges, merge_ranges, parse_ranges
from trtconv.core.shape_space.space import ShapeSpace, parse_space
from trtconv.core.sizes import parse_bytes
from trtconv.core.tensors import TensorSpec, parse_tensor
from trtconv.core.trust.trust import EngineCode

# Words by which a build option of two states is on or off, in any case.
ON, OFF = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


def is_on(value: Any) -> bool:
    """True for an option's value that a config file or command line switches on; whatever else it is, it is off."""
    return str(value).lower() in ON


def _parse_profiles(texts: tuple[str, ...]) -> tuple[ShapeSpace, ...]:
    return tuple(parse_space([t]) for t in texts)


def _merged_options(
    config: Mapping[str, Any] | None, overrides: Mapping[str, str] | None
) -> tuple[tuple[str, Any], ...]:
    return tuple({**(config or {}), **(overrides or {})}.items())


@dataclass(frozen=True)
class BuildRequest:
    """`trtconv build`.

    `dynamic`: None builds static at opt; an empty space takes the recorded ranges; a filled one is laid over them.
    `profiles`: one shape space per optimization profile; empty means one profile from the ranges.
    `precision` auto takes the graph as it is; fp32, fp16, bf16, int8 and fp8 demand it. `workspace` in bytes.
    `compute_capabilities` like `("8.6", "8.9")`, for targets that build ahead of time. `multiples` narrow the dims that
    they name, in every profile. `isolated` builds in a child process, so that a crash of the builder is an error.
    """

    model: Path
    output: Path
    dynamic: ShapeSpace | None = field(
        default=None,
        metadata=option(
            "--dynamic",
            help="Dynamic shapes: alone with the ranges that export recorded, or with your own.",
            completes="range",
            group="Shapes",
            example="--dynamic N=1:4:16 H=320:640:1280%32",
            metavar="[NAME=MIN:OPT:MAX[%MULTIPLE]]",
            many=True,
            key="dynamic",
            parse=parse_ranges,
            parse_config=config_ranges,
            merge=merge_ranges,
        ),
    )
    profiles: tuple[ShapeSpace, ...] = field(
        default=(),
        metadata=option(
            "--profile",
            help="A profile (repeatable).",
            group="Shapes",
            metavar='"N=1:1:1 H=..."',
            many=True,
            key="build.profiles",
            parse=_parse_profiles,
            parse_config=lambda texts, base: _parse_profiles(tuple(texts)),
        ),
    )
    inputs: tuple[TensorSpec, ...] = field(
        default=(),
        metadata=option(
            "--input",
            help="Names dims of a foreign ONNX file.",
            completes="input",
            group="Shapes",
            example="--input images:float32[N,3,H,W]",
            metavar=INPUT_METAVAR,
            many=True,
            parse=lambda texts: tuple(parse_tensor(t) for t in texts),
        ),
    )
    backend: str = field(
        default="auto",
        metadata=option(
            "--backend",
            help="What builds the engine.",
            group="Build",
            form="choice",
            choices=("auto", "tensorrt", "tensorrt-rtx"),
            key="build.backend",
        ),
    )
    precision: str = field(
        default=AUTO,
        metadata=option(
            "--precision",
            help="Element type (default: as the graph is).",
            group="Build",
            example="--precision fp16",
            form="choice",
            choices=(AUTO, *REQUESTED_NAMES),
            key="build.precision",
        ),
    )
    workspace: int | None = field(
        default=None,
        metadata=option(
            "--workspace",
            help="Limit of scratch memory, e.g. 4GiB.",
            group="Build",
            example="--workspace 4GiB",
            metavar="SIZE",
            key="build.workspace",
            parse=parse_bytes,
            parse_config=lambda text, base: parse_bytes(text) if text else None,
        ),
    )
    timing_cache: Path | None = field(
        default=None,
        metadata=option(
            "--timing-cache",
            help="Timing cache to read and update.",
            group="Build",
            form="path",
            role="update",
            key="build.timing_cache",
            parse_config=lambda text, base: paths_seen_from(text, base) if text else None,
        ),
    )
    opt_level: int | None = field(
        default=None,
        metadata=option(
            "--opt-level",
            help="Builder optimization level.",
            group="Build",
            form="integer",
            bounds=(0, 5),
            key="build.opt_level",
        ),
    )
    compute_capabilities: tuple[str, ...] = field(
        default=(),
        metadata=option(
            "--compute-capability",
            help="GPUs to build for (tensorrt-rtx).",
            group="Build",
            metavar="8.6,8.9,...",
            key="build.compute_capability",
            parse=comma_list("--compute-capability", "8.6,8.9", r"\d+\.\d"),
        ),
    )
    plugins: tuple[Path, ...] = field(
        default=(),
        metadata=option(
            "--plugin",
            help="A plugin library to load.",
            group="Build",
            example="--plugin libdetections.so",
            form="path",
            many=True,
            key="build.plugins",
            parse_config=paths_seen_from,
        ),
    )
    options: tuple[tuple[str, Any], ...] = field(
        default=(),
        metadata=option(
            "--option",
            help="tf32, refit and others.",
            group="Build",
            metavar="KEY=VALUE",
            many=True,
            key="build.options",
            parse=key_values("cannot read the build option '{}'", "write --option KEY=VALUE"),
            merge=_merged_options,
        ),
    )
    multiples: tuple[tuple[str, int], ...] = ()
    isolated: bool = False

    @property
    def code(self) -> EngineCode:
        """The code that the options put into the engine: whoever names them lets it run."""
        on = {k for k, v in self.options if is_on(v)}
        return EngineCode(host="version_compatible" in on, plugins="embed_plugins" in on)

    @property
    def refittable(self) -> bool:
        """True where the engine is to take new weights later."""
        return any(k == "refit" and is_on(v) for k, v in self.options)
