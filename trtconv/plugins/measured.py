"""Whether a plugin is faster than TensorRT's own layers, by what was measured: `measurements.json` of this package.

The file is made by benchmarks/plugins/measurements.py out of the benchmarks' results. The measurement that decides is
the nearest one in bytes moved, of the same plugin, element type and TensorRT generation. Nothing is guessed beyond
that: without one near enough the answer is that there is none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

FILE_NAME = "measurements.json"
MARGIN = 1.05
"""A plugin has to be so much faster: less is within what runs differ by, and a native layer may fuse."""
NEAR = 8.0
"""A measurement says nothing of tensors over this many times larger or smaller."""

# 16-bit types move alike.
_SAME = {"bfloat16": "float16"}


@dataclass(frozen=True)
class PluginTiming:
    """One plugin beside the native form at one shape. `bytes` are x read once and y written once; times in ms.

    `plugin_form` is `engine`, or `kernel` where the plugin's kernel was measured outside of an engine.
    """

    op_type: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    plugin_ms: float
    native_ms: float
    gpu: str
    tensorrt: str
    date: str
    source: str
    plugin_form: str = "engine"

    @property
    def ratio(self) -> float:
        """Native time over plugin time."""
        return self.native_ms / self.plugin_ms

    @property
    def generation(self) -> int:
        """TensorRT's major version."""
        return int(self.tensorrt.split(".")[0])

    def __str__(self) -> str:
        shape, alone = "x".join(map(str, self.shape)), "'s kernel alone" if self.plugin_form == "kernel" else ""
        return (
            f"{shape} {self.dtype} on {self.gpu}, TensorRT {self.tensorrt}, {self.date}: "
            f"native {self.native_ms:.3g} ms, plugin{alone} {self.plugin_ms:.3g} ms"
        )


@dataclass(frozen=True)
class PluginVerdict:
    """Whether the plugin pays, and the sentence that says by which measurement."""

    pays: bool
    reason: str


def load_measurements() -> tuple[PluginTiming, ...]:
    """What the package carries."""
    import json

    data = json.loads(files("trtconv.plugins").joinpath(FILE_NAME).read_text())
    return tuple(PluginTiming(**{**row, "shape": tuple(row["shape"])}) for row in data["measurements"])


def judge(measurements: Sequence[PluginTiming], op_type: str, dtype: str, moved: int, generation: int) -> PluginVerdict:
    """The verdict for a plugin that moves `moved` bytes at opt, for a TensorRT of that major version."""
    of_plugin = [m for m in measurements if m.op_type == op_type]
    of_type = [m for m in of_plugin if m.dtype == _SAME.get(dtype, dtype) and m.generation == generation]
    if not of_type:
        measured_types = sorted({f"TensorRT {m.generation} {m.dtype}" for m in of_plugin})
        where = f"; there are some for {', '.join(measured_types)}" if measured_types else ""
        return PluginVerdict(False, f"no measurement of {op_type} in {dtype} for TensorRT {generation}{where}")
    nearest = min(of_type, key=lambda m: (distance(m.bytes, moved), m.ratio))
    if distance(nearest.bytes, moved) > math.log(NEAR):
        return PluginVerdict(False, f"no measurement near {moved} bytes at opt; the nearest is {nearest}")
    basis = f"at opt {moved} bytes are moved; the nearest measurement is {nearest}"
    if nearest.ratio < MARGIN:
        return PluginVerdict(False, f"the plugin was not faster: {basis}")
    return PluginVerdict(True, f"{nearest.ratio:.3g} times as fast as native: {basis}")


def distance(one: int, other: int) -> float:
    """How far two sizes are apart: the logarithm of their ratio."""
    return abs(math.log(max(one, 1) / max(other, 1)))
