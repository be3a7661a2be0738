"""`trtconv.load("model.engine")(**inputs)`: an engine or an ONNX file as a callable."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from trtconv.check.compare.subjects import Subject, open_subject
from trtconv.core.dtypes import parse_dtype
from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.core.shape_space.derived import derived_from, is_derived, size_of, solve_names
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
        self._warned_outside = False

    def __call__(self, *arrays_by_position: Any, **inputs: Any) -> dict[str, Array]:
        """Run once. Raises InvalidRequestError for an input that is missing, of another type or shape, or unknown.

        Warns once of sizes outside the ranges that the file was compared over.
        """
        names = [spec.name for spec in self.inputs]
        if arrays_by_position:
            raise InvalidRequestError(
                "inputs are given by name", hint="write " + ", ".join(f"{name}=..." for name in names)
            )
        wrong = next((n for n in inputs if n not in names), None) or next((n for n in names if n not in inputs), None)
        if wrong is not None:
            problem = "has no value" if wrong in names else f"does not exist{did_you_mean(wrong, names)}"
            raise InvalidRequestError(f"the input '{wrong}' {problem}", hint="the inputs are: " + ", ".join(names))
        arrays = {name: _array(name, inputs[name]) for name in names}
        if self.subject.path.suffix == ".onnx":
            sizes = _fitting_sizes(self.inputs, arrays)
            self._warn_outside(sizes)
        outputs = self.subject.run(arrays)
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

    def _warn_outside(self, sizes: Mapping[str, int]) -> None:
        """An engine refuses such sizes; ONNX Runtime computes what nobody has compared."""
        outside = [n for n, r in self.subject.space.dims if n in sizes and sizes[n] not in r]
        if outside and not self._warned_outside:
            self._warned_outside = True
            listed = " ".join(f"{n}={sizes[n]}" for n in outside)
            warnings.warn(f"{listed} is outside {self.subject.space}, over which it was compared", stacklevel=3)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release the runner's resources."""
        self.subject.close()


def _fitting_sizes(specs: Sequence[TensorSpec], arrays: Mapping[str, Array]) -> dict[str, int]:
    """The sizes of named dims. Raises InvalidRequestError for an array of another type, or that fits no such sizes."""
    sizes: dict[str, int] = {}
    for spec in specs:
        array = arrays[spec.name]
        pairs = list(zip(spec.dims, array.shape, strict=False))
        fits = array.dtype == spec.dtype.numpy() and array.ndim == len(spec.dims)
        plain = [(d, n) for d, n in pairs if not is_derived(d)]
        if not (fits and all(sizes.setdefault(d, n) == n if isinstance(d, str) else d in (n, -1) for d, n in plain)):
            raise _misfit(spec, array, sizes)
    sizes = solve_names(pair for s in specs for pair in zip(s.dims, arrays[s.name].shape, strict=True))
    for spec in specs:
        derived = [(d, n) for d, n in zip(spec.dims, arrays[spec.name].shape, strict=True) if is_derived(d)]
        if any(sizes.keys() >= {*derived_from(d)} and size_of(d, sizes) != n for d, n in derived):
            raise _misfit(spec, arrays[spec.name], sizes)
    return sizes


def _misfit(spec: TensorSpec, array: Array, sizes: Mapping[str, int]) -> InvalidRequestError:
    dims = ",".join(map(str, array.shape))
    at = ", ".join(f"{n}={v}" for n, v in sizes.items())
    other_type = array.dtype != spec.dtype.numpy()
    return InvalidRequestError(
        f"the input {spec} cannot be {array.dtype}[{dims}]" + (f" where {at}" if at else ""),
        hint=f"give {spec.dtype.name} of that shape"
        + (f", e.g. numpy.asarray(x, '{spec.dtype.name}')" if other_type else ""),
    )


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
