"""The ways in which a model fails, each as a test that can be run on a part of it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from trtconv.core.errors import MissingDependencyError, TrtconvError
from trtconv.core.precision import FP32
from trtconv.core.tolerance import Tolerance
from trtconv.proof.allowance import FP32_ENGINE, ONNX_RUNTIME, Arithmetic, allowances_without_floor
from trtconv.proof.comparison import compare_outputs, describe_failure, first_failure

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

Profile = Mapping[str, tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]


class Failure(Protocol):
    """`ask` gives the reason for which a part of a model fails, and an empty text when it works."""

    @property
    def kind(self) -> str:
        """accuracy, run, build or engine."""

    def ask(self, model: onnx.ModelProto, inputs: Mapping[str, Array], expected: Mapping[str, Array]) -> str:
        """Why this model fails."""


@dataclass(frozen=True)
class CutFailure:
    """A model, or what was cut out of one, with arrays by name at which it fails, and why it does."""

    model: onnx.ModelProto
    inputs: Mapping[str, Array]
    expected: Mapping[str, Array]
    reason: str
    failure: Failure


@dataclass(frozen=True)
class RunFailure:
    """ONNX Runtime refuses the model or fails while it runs."""

    kind: str = "run"

    def ask(self, model: onnx.ModelProto, inputs: Mapping[str, Array], expected: Mapping[str, Array]) -> str:
        """ONNX Runtime's error message."""
        from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

        try:
            OnnxRuntimeRunner(model.SerializeToString())(inputs)
        except TrtconvError as error:
            return error.message
        return ""


@dataclass(frozen=True)
class AccuracyFailure:
    """The model's outputs in ONNX Runtime differ from the expected ones."""

    tolerance: Tolerance
    arithmetic: Arithmetic = ONNX_RUNTIME
    kind: str = "accuracy"

    def ask(self, model: onnx.ModelProto, inputs: Mapping[str, Array], expected: Mapping[str, Array]) -> str:
        """The first output that differs."""
        from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

        try:
            actual = OnnxRuntimeRunner(model.SerializeToString())(inputs)
        except TrtconvError:
            return ""
        return describe_difference(actual, expected, self.tolerance, self.arithmetic)


def describe_difference(
    actual: Mapping[str, Array], expected: Mapping[str, Array], tolerance: Tolerance, arithmetic: Arithmetic
) -> str:
    """What differs first between the outputs of a part, as one line; empty when nothing does."""
    expected_outputs = {n: expected[n] for n in actual if n in expected}
    allowed = allowances_without_floor(expected_outputs, tolerance, arithmetic)
    worst = first_failure(compare_outputs("the cut", expected_outputs, actual, allowed))
    return describe_failure(worst) if worst else ""


@dataclass(frozen=True)
class BuildFailure:
    """A TensorRT refuses the model or cannot build it; with `tolerance` it builds, runs and computes something else.

    `profile` is for dynamic dims. Raises MissingDependencyError where the backend cannot build or run here.
    """

    backend: str = "auto"
    precision: str = FP32.name
    profile: Profile | None = None
    tolerance: Tolerance | None = None
    kind: str = "build"
    arithmetic: Arithmetic = FP32_ENGINE

    def ask(self, model: onnx.ModelProto, inputs: Mapping[str, Array], expected: Mapping[str, Array]) -> str:
        """The builder's message, or the first output that differs."""
        from trtconv.backends.protocol import EngineSettings
        from trtconv.backends.select import choose_backend
        from trtconv.core.progress import SilentProgress

        chosen = choose_backend(self.backend)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "cut.onnx")
            path.write_bytes(model.SerializeToString())
            names = {v.name for v in model.graph.input}
            profile = {n: t for n, t in (self.profile or {}).items() if n in names}
            settings = EngineSettings(model=path, profiles=(profile,) if profile else (), precision=self.precision)
            try:
                built = chosen.build(settings, SilentProgress())
                if self.tolerance is None:
                    return ""
                engine = path.with_suffix(".engine")
                engine.write_bytes(bytes(built.plan))
                # Built here a moment ago: nothing else says what it is.
                runner = chosen.load(engine, foreign=True)
            except MissingDependencyError:
                raise
            except TrtconvError as error:
                reason = (error.details[0] if error.details else error.message).replace(str(path), "the model")
                return "" if self.tolerance is not None else reason
            try:
                return describe_difference(runner(inputs), expected, self.tolerance, self.arithmetic)
            finally:
                runner.close()


def same_reason(first: str, second: str) -> bool:
    """True for messages that differ in names, places and numbers only: a part has to fail as the whole does."""
    return bool(first) and bool(second) and _gist(first) == _gist(second)


def _gist(text: str) -> str:
    """The operator at the beginning and the words after its name and place."""
    head, colon, tail = text.partition(": ")
    without_name = f"{head.split(' ')[0]} {tail}" if colon else text
    plain = re.sub(r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|\([^)]*\)|[/.\w]*\d[\w./]*", "", without_name)
    return " ".join(re.findall(r"[A-Za-z]{4,}", plain)[:24])
