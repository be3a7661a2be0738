"""The one set of words in which the rooms speak to any TensorRT: what it can do, what to build, how to run it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from trtconv.core.precision import FP32, TF32
from trtconv.core.progress import Progress
from trtconv.core.trust.trust import NO_CODE, EngineCode

if TYPE_CHECKING:
    import numpy as np

    from trtconv.backends.cuda.device_array import DeviceArray
    from trtconv.backends.cuda.memory import CudaMemory, StreamTimer
    from trtconv.backends.tensorrt.layers import LayerInfo
    from trtconv.core.dtypes import DType
    from trtconv.core.embedded import EmbeddedPlugin
    from trtconv.core.trust.signature import VerifiedSet

    Array = np.ndarray[Any, np.dtype[Any]]

Shape = tuple[int, ...]
ShapeTriple = tuple[Shape, Shape, Shape]
"""(min, opt, max)."""
Profile = Mapping[str, ShapeTriple]
"""One optimization profile: the triple of every dynamic input by name. Empty for a static network."""


@dataclass(frozen=True)
class Capabilities:
    """What one installed TensorRT can do, probed once by the names that its bindings have.

    `generation` is the TensorRT major whose rules hold: 8, 10 or 11 (TensorRT-RTX 1.5 and later count as 11).
    `precision_flags` are the builder's (empty where the network carries its types); `compute_capabilities` are those
    that can be built for without such a GPU. `tactic_sources` are TensorRT's own, which are used unless left out.
    """

    name: str
    version: str
    generation: int
    needs_gpu_to_build: bool
    explicit_batch: bool
    strongly_typed_flag: bool
    precision_flags: tuple[str, ...] = ()
    progress: bool = False
    timing_cache: bool = False
    plugins: bool = False
    int64: bool = False
    debug_tensors: bool = False
    version_compatible: bool = False
    strip_plan: bool = False
    hardware_compatibility: tuple[str, ...] = ()
    compute_capabilities: tuple[str, ...] = ()
    embedded_plugins: bool = False
    tactic_sources: tuple[str, ...] = ()

    @property
    def strongly_typed(self) -> bool:
        """True where networks are always or (TensorRT 10) on request typed by the graph."""
        return self.strongly_typed_flag or self.generation >= 11

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


@dataclass(frozen=True)
class EngineSettings:
    """What a backend builds. `shape_values` are (min, opt, max) values of inputs that turn out to be shape tensors.

    `workspace` in bytes; `plugins` are libraries to load; `pinned` names dims (`input`, axis) -> size that are made
    static in the graph before parsing. `embedded` are plugins whose kernels go into the engine. `options` are the
    seldom ones, by the names in `OPTIONS`.
    """

    model: Path
    profiles: tuple[Profile, ...]
    pinned: tuple[tuple[str, int, int], ...] = ()
    shape_values: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    precision: str = FP32.name
    workspace: int | None = None
    opt_level: int | None = None
    compute_capabilities: tuple[str, ...] = ()
    timing_cache: Path | None = None
    plugins: tuple[Path, ...] = ()
    embedded: tuple[EmbeddedPlugin, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)


FASTER_SHAPES = "faster_dynamic_shapes"
OPTIONS: Mapping[str, str] = {
    TF32.name: "true lets fp32 use TF32 tensor cores (10-bit mantissa); off by default",
    "version_compatible": "true makes a plan that newer minor versions run",
    "hardware_compatibility": "none, ampere_plus or same_compute_capability",
    "refit": "true makes the weights replaceable",
    "strip_plan": "true leaves the weights out of the plan (needs refit before use)",
    "max_aux_streams": "number of extra streams that the engine may use",
    "tactic_sources": "names with commas, e.g. CUBLAS,CUBLAS_LT",
    FASTER_SHAPES: "false builds for moving sizes as before TensorRT 8.5, which takes longer (8.6 alone)",
    "sparse_weights": "true allows 2:4 sparse kernels",
    "embed_plugins": "true puts the kernels of trtconv's plugins into the engine, which then needs no plugin library",
    "debug_outputs": "tensor names with commas that become extra outputs",
    "debug_tensors": "tensor names with commas that can be watched while the engine runs (TensorRT 10 and later)",
}


@dataclass(frozen=True)
class NodeProblem:
    """A node that the parser or builder refuses, with the words of TensorRT; `index` into the graph's nodes."""

    message: str
    node: str = ""
    op_type: str = ""
    index: int = -1
    code: str = ""


@dataclass(frozen=True)
class BuiltEngine:
    """A serialized engine and what is known of it. `types` counts the network's float tensors by element type.

    `plugin_kernels` are the kernels that the engine carries for plugins: what was compiled for what, by entry name.
    """

    plan: bytes | memoryview
    layers: int
    messages: tuple[str, ...]
    types: Mapping[str, int]
    environment: Mapping[str, str]
    timing_cache: Mapping[str, object] = field(default_factory=dict)
    plugin_kernels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def detached(self) -> BuiltEngine:
        """The same with the plan as bytes of its own, independent of TensorRT's memory."""
        return dataclasses.replace(self, plan=bytes(self.plan))


@dataclass(frozen=True)
class EngineTensor:
    """An input or output of an engine. A dim of -1 is dynamic; `host` tensors are shape values read by the CPU."""

    name: str
    dtype: DType
    shape: Shape
    is_input: bool
    host: bool = False


class ModelRunner(Protocol):
    """A model ready to run: an engine on the GPU, or an ONNX file in ONNX Runtime.

    Arrays in, arrays out, by name; inputs that the model does not have are left out.
    """

    @property
    def version(self) -> str:
        """What runs it, for reports: `tensorrt 8.6.0 on NVIDIA ...`."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What opening it and the runs so far gave to warn of, each text once."""

    def __call__(self, inputs: Mapping[str, Array], /) -> dict[str, Array]:
        """Run once. Raises InvalidRequestError for shapes outside every profile, TrtconvError when the run fails."""

    def close(self) -> None:
        """Free what it holds; it cannot run any more."""


class PreparedRun(Protocol):
    """An engine at fixed shapes with its inputs on the device; calling it launches one run and returns at once."""

    @property
    def memory(self) -> CudaMemory:
        """The device memory in which inputs and outputs lie."""

    def __call__(self) -> None:
        """Launch."""

    def outputs(self) -> dict[str, DeviceArray]:
        """The outputs on the device, in stream order."""

    def synchronize(self) -> None:
        """Wait for what was launched. Raises TrtconvError when it failed."""

    def interval(self) -> StreamTimer:
        """A stopwatch on the stream in which the engine is launched."""

    def close(self) -> None:
        """Free its context and buffers."""


class EngineRunner(ModelRunner, Protocol):
    """An engine ready to run."""

    cuda_graph: bool
    """Whether a shape is captured in a CUDA graph at its second call."""

    @property
    def inputs(self) -> tuple[EngineTensor, ...]:
        """The inputs, in the engine's order."""

    @property
    def outputs(self) -> tuple[EngineTensor, ...]:
        """The outputs, in the engine's order."""

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """The optimization profiles, as the engine holds them."""

    @property
    def device_memory_bytes(self) -> int:
        """Scratch memory of one execution context in bytes, weights not included."""

    def prepare(self, inputs: Mapping[str, Array], *, cuda_graph: bool = False) -> PreparedRun:
        """A context of its own with these inputs in its buffers.

        Raises UnsupportedError when `cuda_graph` is asked for and a CUDA graph cannot hold the run.
        """

    def watched(self, inputs: Mapping[str, Array], names: Sequence[str]) -> dict[str, Array]:
        """Run once; the outputs, and those of the named inner tensors that the engine was built to give out."""

    def layers(self, runs: int = 0) -> tuple[LayerInfo, ...]:
        """The engine's layers; with `runs` each has its mean seconds over that many runs at profile 0's opt."""


class Backend(Protocol):
    """One installed TensorRT."""

    def capabilities(self) -> Capabilities:
        """What it can do."""

    def build(self, settings: EngineSettings, progress: Progress) -> BuiltEngine:
        """Build an engine.

        Raises UnsupportedError listing every node that is refused, InvalidRequestError for settings that cannot be
        met, MissingDependencyError where a GPU is needed and absent, TrtconvError for other failures.
        """

    def warm(self) -> AbstractContextManager[None]:
        """Builds within it share what the library needs to start."""

    def isolated(self) -> AbstractContextManager[None]:
        """Builds within it happen in a child process, whose crash is a TrtconvError."""

    def supports(self, model: Path) -> tuple[NodeProblem, ...]:
        """Every node that the parser refuses; empty when it takes all of them. Nothing is built."""

    def load(
        self,
        engine: Path,
        *,
        plugins: tuple[Path, ...] = (),
        foreign: bool = False,
        code: EngineCode = NO_CODE,
        verified: VerifiedSet | None = None,
    ) -> EngineRunner:
        """Open an engine for running; `foreign` takes one without a manifest, `code` names what in it may run.

        With `verified` not a byte is deserialised that its signature does not cover. Raises as `build` does,
        UntrustedError for code that was not named, and TrtconvError when the engine is refused.
        """

    def refit(
        self,
        engine: Path,
        weights: Mapping[str, Array],
        *,
        plugins: tuple[Path, ...] = (),
        code: EngineCode = NO_CODE,
    ) -> bytes:
        """The engine's plan with new weights, by their names in the graph that it was built from.

        Raises UnsupportedError for an engine that takes no new weights, or not these; and what `load` raises.
        """
