"""`trtconv.load("model.engine")(**inputs)`: the small Python API for a checked file."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from trtconv.check.compare.subjects import Subject, open_subject
from trtconv.core.trust.trust import NO_CODE, EngineCode, Trust

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


class Session:
    """An ONNX file or an engine as a callable: NumPy arrays by input name in, NumPy arrays by output name out."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._told = 0

    def __call__(self, **inputs: Array) -> dict[str, Array]:
        """Run once."""
        outputs = self.subject.run(inputs)
        self.tell_warnings(stacklevel=3)
        return outputs

    def tell_warnings(self, *, stacklevel: int = 2) -> None:
        """Tell warnings that were not told before, by `warnings.warn`."""
        texts = self.subject.warnings
        untold, self._told = texts[self._told :], len(texts)
        for text in untold:
            warnings.warn(text, RuntimeWarning, stacklevel=stacklevel)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free what the runner holds."""
        self.subject.close()


def load(
    path: str | Path, *, plugins: tuple[Path, ...] = (), foreign: bool = False, trust: Trust | None = None,
    code: EngineCode = NO_CODE,
) -> Session:  # fmt: skip
    """Open `model.onnx` (ONNX Runtime) or `model.engine` (TensorRT). Raises TrtconvError when it cannot be run here.

    With `trust` the signature of the whole set is verified first, and the bytes that are deserialised are those that
    were signed; raises UntrustedError else. `code` (else that of `trust`) names code in an engine that may run.

    `foreign` takes an engine that trtconv did not build, which has no manifest to be compared with. What TensorRT or
    the engine's manifest gives to warn of is told as a `RuntimeWarning`, here and by later calls.
    """
    verified = None
    if trust is not None:
        from trtconv.core.trust.signature import verify_set

        verified, code = verify_set(Path(path), trust), trust.code if code == NO_CODE else code
    session = Session(open_subject(Path(path), plugins, foreign=foreign, code=code, verified=verified))
    session.tell_warnings(stacklevel=3)
    return session
