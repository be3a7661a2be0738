"""`trtconv.load("model.engine")(**inputs)`: an engine or an ONNX file as a callable."""

from __future__ import annotations

import warnings
from html import escape
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from trtconv.check.compare.subjects import Subject, open_subject
from trtconv.core.dtypes import parse_dtype
from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.core.tensors import TensorSpec
from trtconv.core.trust.trust import NO_CODE, EngineCode, Trust

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


class Session:
    """An ONNX file or an engine as a callable: arrays or torch tensors by input name in, NumPy arrays by name out."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self._told = 0

    def __call__(self, **inputs: Any) -> dict[str, Array]:
        """Run once. Raises InvalidRequestError for an input that is missing, or one that there is not."""
        names = [spec.name for spec in self.inputs]
        wrong = next((n for n in inputs if n not in names), None) or next((n for n in names if n not in inputs), None)
        if wrong is not None:
            problem = "has no value" if wrong in names else f"is none{did_you_mean(wrong, names)}"
            raise InvalidRequestError(f"the input '{wrong}' {problem}", hint="the inputs are: " + ", ".join(names))
        outputs = self.subject.run({name: _array(name, inputs[name]) for name in names})
        self.tell_warnings(stacklevel=3)
        return outputs

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Name, dtype and dims of each input; `str` of one is `images:float32[N,3,H,W]`."""
        return self.subject.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Name, dtype and dims of each output, in order; a dim that nothing says is -1."""
        return self.subject.outputs

    def __repr__(self) -> str:
        """What it runs, with which inputs and outputs, over which sizes."""
        lines = [f"<trtconv.Session {self.subject.path}, {self.subject.runner}"]
        return "\n".join([*lines, *(f"  {label:<7} {text}" for label, text in self._facts())]) + ">"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{label}</th><td><code>{escape(text)}</code></td></tr>" for label, text in self._facts()
        )
        title = f"<b>{escape(str(self.subject.path))}</b>, {escape(self.subject.runner)}"
        return f"<div>{title}<table>{rows}</table></div>"

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("input", str(spec)) for spec in self.inputs] + [("output", str(spec)) for spec in self.outputs]
        if self.subject.space.dims:
            facts.append(("dims", str(self.subject.space)))
        for number, profile in enumerate(self.subject.profiles):
            shapes = (f"{name} {' to '.join(str(list(s)) for s in (t[0], t[2]))}" for name, t in profile.items())
            facts.append((f"profile {number}", ", ".join(shapes)))
        return facts

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
        """Release the runner's resources."""
        self.subject.close()


def _array(name: str, value: Any) -> Array:
    """A NumPy array, or what a torch tensor holds."""
    import numpy as np

    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "detach"):
        plain = value.detach().cpu()
        if str(plain.dtype) != "torch.bfloat16":
            return np.asarray(plain)
        # NumPy has no bfloat16 of its own; FP32 holds every value of it.
        return np.asarray(plain.float()).astype(parse_dtype("bfloat16").numpy())
    raise InvalidRequestError(
        f"the input '{name}' must be an array or a tensor, got {type(value).__name__}", hint="write numpy.asarray(...)"
    )


def load(
    path: str | Path,
    *,
    plugins: tuple[Path, ...] = (),
    foreign: bool = False,
    trust: Trust | None = None,
    code: EngineCode = NO_CODE,
) -> Session:
    """Open `model.onnx` (ONNX Runtime) or `model.engine` (TensorRT). Raises TrtconvError when it cannot be run here.

    With `trust` the signature of the whole set is verified first, and the bytes that are deserialised are those that
    were signed; raises UntrustedError else. `code` (else that of `trust`) names code in an engine that may run.

    `foreign` takes an engine that trtconv did not build, which has no manifest to be compared with. What TensorRT or
    the engine's manifest gives to warn of is told by `Session.tell_warnings`, and by calls.
    """
    verified = None
    if trust is not None:
        from trtconv.core.trust.signature import verify_set

        verified, code = verify_set(Path(path), trust), trust.code if code == NO_CODE else code
    return Session(open_subject(Path(path), plugins, foreign=foreign, code=code, verified=verified))
