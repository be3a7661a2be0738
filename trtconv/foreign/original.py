"""A foreign ONNX file as the original: ONNX Runtime runs it, and twins of it tell what its own rounding is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import TrtconvError
from trtconv.core.model.file import all_tensors, load_model
from trtconv.foreign.twins import in_float64, with_moved_weights
from trtconv.proof.noise.coordinates import move_coordinates
from trtconv.proof.original import Run

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

# A twin is a second copy of all weights, in FP64 twice as large.
LARGEST_COPY = 1 << 29
# A twin in FP64 that is this far off at the first inputs computes something else (a cast that is a rounding by intent).
PLAUSIBLE = 1e-2


class FileOriginal:
    """Runs an ONNX file as it is written, without ONNX Runtime's fusions: arrays by name in, arrays by name out.

    `fixed` are values of inputs that are fed beside those of every call.

    Raises TrtconvError when ONNX Runtime refuses the file or a run fails.
    """

    def __init__(self, path: Path, fixed: Mapping[str, Array] | None = None) -> None:
        self.path = path
        self._fixed = dict(fixed or {})
        self._run = OnnxRuntimeRunner(path)
        self.version = self._run.version
        self.output_names = self._run.output_names
        self._moved: dict[int, Run | None] = {}
        self._first: tuple[Mapping[str, Array], dict[str, Array]] | None = None

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Raises TrtconvError with the shapes for which it fails."""
        try:
            outputs = self._run({**inputs, **self._fixed})
        except TrtconvError as error:
            shapes = ", ".join(f"{n} {list(a.shape)}" for n, a in inputs.items())
            raise TrtconvError(
                f"'{self.path}' itself fails for {shapes}: {error.message}",
                hint="give the ranges of the dims for which it works with --dynamic, and the values that its inputs "
                "take with --input NAME:DTYPE[DIMS]=LOW:HIGH",
            ) from error
        if self._first is None:
            self._first = ({**inputs, **self._fixed}, outputs)
        return outputs

    @cached_property
    def weight_bytes(self) -> int:
        """The bytes of its weights."""
        import math

        from trtconv.core.dtypes import DTYPES

        sizes = {d.onnx: d.size for d in DTYPES}
        return sum(math.prod(t.dims) * sizes.get(t.data_type, 1) for t in all_tensors(load_model(self.path).graph))

    def exact(self) -> Run | None:
        """The file in FP64; None where ONNX Runtime lacks one of its operators in FP64."""
        return self._exact

    @cached_property
    def _exact(self) -> Run | None:
        runner = self._twin(in_float64)
        if runner is None or self._first is None:
            return runner
        return runner if _plausible(runner, *self._first) else None

    def perturbed(self, seed: int) -> Run | None:
        """The file with each weight moved by at most one unit in its last place.

        For the first two seeds also with the coordinates of interpolations moved to either side, which every library
        rounds in its own way; without those where they make another size.
        """
        if seed not in self._moved:
            plain = self._twin(lambda model: with_moved_weights(model, seed))
            sign = {0: 1, 1: -1}.get(seed, 0)
            beside = self._twin(lambda model: _beside(model, seed, sign)) if plain is not None and sign else None
            self._moved[seed] = _Either(beside, plain) if beside is not None and plain is not None else plain
        return self._moved[seed]

    def flushed(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once; denormal inputs are zero already, and ONNX Runtime cannot be told to flush others for one run."""
        return self(inputs)

    def _twin(self, change: Callable[[onnx.ModelProto], onnx.ModelProto | None]) -> Run | None:
        if self.weight_bytes > LARGEST_COPY:
            return None
        try:
            twin = change(load_model(self.path, weights=True))
            return _Twin(OnnxRuntimeRunner(twin.SerializeToString()), self._fixed) if twin is not None else None
        except (TrtconvError, ValueError):
            return None


def _beside(model: onnx.ModelProto, seed: int, sign: int) -> onnx.ModelProto | None:
    moved = with_moved_weights(model, seed)
    return None if moved is None else move_coordinates(moved, sign)


class _Either:
    """A run, and another one for inputs at which the first fails."""

    def __init__(self, first: Run, second: Run) -> None:
        self._first, self._second = first, second

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Raises TrtconvError when both fail."""
        try:
            return self._first(inputs)
        except TrtconvError:
            return self._second(inputs)


class _Twin:
    """A twin with the fixed inputs, in FP64 where it is."""

    def __init__(self, run: OnnxRuntimeRunner, fixed: Mapping[str, Array]) -> None:
        self._run, self._fixed = run, fixed

    def __call__(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run once. Raises TrtconvError."""
        return self._run({**self._fixed, **inputs})


def _plausible(exact: Run, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> bool:
    """False where FP64 does not run after all, or gives what no rounding explains."""
    import numpy as np

    wide = {n: v.astype(np.float64) if v.dtype in (np.float16, np.float32) else v for n, v in inputs.items()}
    try:
        precise = exact(wide)
    except TrtconvError:
        return False
    for name, value in outputs.items():
        other = precise[name]
        if other.shape != value.shape:
            return False
        if value.dtype.kind != "f" or not value.size:
            continue
        with np.errstate(all="ignore"):
            error = np.abs(other - value.astype(np.float64))
            scale = float(np.abs(value, where=np.isfinite(value), out=np.zeros_like(value)).max(initial=0.0))
        if float(np.median(np.where(np.isfinite(error), error, 0.0))) > PLAUSIBLE * scale:
            return False
    return True
