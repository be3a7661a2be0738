"""`trtconv.load("model.engine")(**inputs)`: the small Python API for a checked file."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from trtconv.check.compare.subjects import Subject, open_subject

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


class Session:
    """An ONNX file or an engine as a callable: NumPy arrays by input name in, NumPy arrays by output name out."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject

    def __call__(self, **inputs: Array) -> dict[str, Array]:
        """Run once."""
        return self.subject.run(inputs)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free what the runner holds."""
        self.subject.close()


def load(path: str | Path, *, plugins: tuple[Path, ...] = (), foreign: bool = False) -> Session:
    """Open `model.onnx` (ONNX Runtime) or `model.engine` (TensorRT). Raises TrtconvError when it cannot be run here.

    `foreign` takes an engine that trtconv did not build, which has no manifest to be compared with.
    """
    return Session(open_subject(Path(path), plugins, foreign=foreign))
