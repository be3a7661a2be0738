"""`--align` and `--pad-to-multiple`: at which sizes a module runs, and what is done about those at which it raises."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import AccuracyError, InvalidRequestError, TrtconvError
from trtconv.core.model.file import load_model
from trtconv.core.requests import ExportRequest
from trtconv.core.shape_space.alignment import aligned_space, covering_space
from trtconv.core.shape_space.crops import cropped_axes
from trtconv.core.shape_space.padded_graph import insert_padding
from trtconv.core.shape_space.padding import Padding, padded_inputs
from trtconv.core.shape_space.space import DimRange, ShapeSpace
from trtconv.export.exporters.choice import ChosenExport
from trtconv.export.module.outputs import flatten_outputs
from trtconv.export.module.runner import ModuleRunner
from trtconv.proof.comparison import describe_failure
from trtconv.proof.original import MakeInputs
from trtconv.proof.points import SamplePoint
from trtconv.proof.proving import prove
from trtconv.proof.sampling import Samples
from trtconv.proof.tied_dims import find_ties
from trtconv.proof.undefined_sizes import UndefinedDim, find_undefined, required_multiples

if TYPE_CHECKING:
    import numpy as np
    import torch

    from trtconv.core.tensors import TensorSpec

    Array = np.ndarray[Any, np.dtype[Any]]

# A module is run at each, so fewer than shape inference looks at.
MANY = 8


@dataclass(frozen=True)
class Settled:
    """The request to export by (its space holds sizes at which the module runs), and the padding around it."""

    request: ExportRequest
    padding: Padding | None
    note: str


def resolve_undefined_sizes(request: ExportRequest, runner: ModuleRunner, make: MakeInputs) -> Settled:
    """Work out what the request's `align` or `pad_to_multiple` comes to. Without need it comes to a note."""
    if request.align and request.pad_to_multiple:
        raise InvalidRequestError(
            "--align and --pad-to-multiple exclude each other",
            hint="--align serves fewer sizes, --pad-to-multiple serves all of them through padding",
        )
    undefined = undefined_dims(runner, request, make, cover=bool(request.pad_to_multiple))
    multiples = required_multiples(undefined)
    option = "--align" if request.align else "--pad-to-multiple"
    if not multiples:
        return Settled(request, None, f"{option} had nothing to do: the module runs at every size looked at")
    if request.align:
        space = aligned_space(request.space, multiples)
        note = f"--align: the shape space is {space}, for the module raises at " + "; ".join(d.where for d in undefined)
        return Settled(replace(request, space=space), None, note)
    space = covering_space(request.space, multiples)
    pads = padded_inputs(request.inputs, request.space, multiples, request.pad_to_multiple)
    observe = _Shapes(runner, request, make)
    padding = Padding(pads, cropped_axes(observe.outputs, request.inputs, space, multiples))
    return Settled(replace(request, space=space), padding, f"--pad-to-multiple: {padding.describe()}")


def undefined_dims(
    runner: ModuleRunner, request: ExportRequest, make: MakeInputs, *, cover: bool = False
) -> tuple[UndefinedDim, ...]:
    """The dims with sizes at which the module raises."""
    return find_undefined(_Shapes(runner, request, make).problem, request.space, many=MANY, cover=cover)


class _Shapes:
    """The shapes that a module returns: computed without values where torch can, else by running it."""

    def __init__(self, runner: ModuleRunner, request: ExportRequest, make: MakeInputs) -> None:
        self._runner, self._request, self._make = runner, request, make
        self._needs_values = False

    def outputs(self, sizes: Mapping[str, int]) -> Mapping[str, tuple[int, ...]]:
        """By output name. Raises TrtconvError where the module raises."""
        if not self._needs_values:
            try:
                return self._without_values(sizes)
            except TrtconvError:
                raise
            except Exception:  # noqa: BLE001 - torch raises many classes for what needs values
                self._needs_values = True
        inputs = self._make(SamplePoint("probe", tuple(sizes.items())))
        return {name: tuple(array.shape) for name, array in self._runner(inputs).items()}

    def problem(self, sizes: Mapping[str, int]) -> str | None:
        """What the module says at these sizes, or None."""
        try:
            self.outputs(sizes)
        except TrtconvError as error:
            at = f" at {error.where}" if error.where else ""
            return error.message.partition(": ")[2][:160] + at
        return None

    def _without_values(self, sizes: Mapping[str, int]) -> Mapping[str, tuple[int, ...]]:
        import torch
        from torch._subclasses import fake_tensor

        # Torch's own words for "this needs the values", which says nothing about the sizes.
        unable = tuple(
            getattr(fake_tensor, n)
            for n in (
                "DataDependentOutputException",
                "DynamicOutputShapeException",
                "UnsupportedFakeTensorException",
                "UnsupportedOperatorException",
            )
            if hasattr(fake_tensor, n)
        )
        with fake_tensor.FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
            tensors = {s.name: _empty(s.shape(sizes), s.dtype.numpy()) for s in self._request.inputs}
            positional, keywords = self._runner.binding.arguments(list(tensors.values()))
            try:
                returned = self._runner.module(*positional, **keywords)
            except (*unable, KeyboardInterrupt):
                raise
            except BaseException:  # noqa: BLE001 - whatever the module raises, as pytest.skip does
                # The run with values tells the error, with the user's line; it ends where this one did.
                inputs = self._make(SamplePoint("probe", tuple(sizes.items())))
            else:
                return {n: tuple(int(d) for d in t.shape) for n, t in flatten_outputs(returned).items()}
        return {name: tuple(array.shape) for name, array in self._runner(inputs).items()}


def _empty(shape: tuple[int, ...], dtype: Any) -> torch.Tensor:
    import numpy as np
    import torch

    name = np.dtype(dtype).name
    return torch.empty(shape, dtype=getattr(torch, "bool" if name == "bool" else name))


def padded_choice(choice: ChosenExport, request: ExportRequest, padding: Padding, samples: Samples) -> ChosenExport:
    """The choice with its model padded, compared with the module on padded inputs at the points of the whole space.

    Raises AccuracyError when they differ.
    """
    model = insert_padding(load_model(choice.candidate.model), padding, request.inputs, request.space)
    path = choice.candidate.model.with_name("padded.onnx")
    path.write_bytes(model.SerializeToString(deterministic=True))
    verdict = prove(lambda: OnnxRuntimeRunner(path, rounded=True), samples.items, request.tolerance)
    if verdict.failure is not None:
        raise AccuracyError(
            f"the padded model differs from the module on padded inputs: {describe_failure(verdict.failure)}",
            hint="export with --align instead",
        )
    candidate = replace(choice.candidate, model=path)
    return replace(choice, candidate=candidate, verdict=verdict, samples=samples)


def explain_error(error: TrtconvError, runner: ModuleRunner, request: ExportRequest, make: MakeInputs) -> TrtconvError:
    """The error of a module that raises at a sample point, with the input whose values are too high for a size, the dim
    that follows from others, the least size or the multiple that would help.
    """
    too_high = _too_high(runner, request, make)
    if too_high:
        names = " and ".join(f"'{s.name}'" for s in too_high)
        return TrtconvError(
            error.message,
            hint=f"it runs there with the least values of {names}: give smaller value ranges, or values that fit the "
            "sizes with --sample FILE.py:FUNCTION",
            where=error.where,
        )
    problem = _Shapes(runner, request, make).problem
    ties = find_ties(problem, request.space)
    if ties:
        tied = [replace(s, dims=tuple(ties.get(str(d), d) for d in s.dims)) for s in request.inputs]
        shown = " ".join(f"--input '{t}'" for s, t in zip(request.inputs, tied, strict=True) if s != t)
        equations = ", ".join(f"{name} is {expression}" for name, expression in ties.items())
        return TrtconvError(
            error.message,
            hint=f"it runs where {equations}: say so with {shown}, without a --dynamic for {', '.join(ties)}",
            where=error.where,
        )
    undefined = find_undefined(problem, request.space, many=MANY)
    if undefined and all(d.least is not None for d in undefined):
        return TrtconvError(
            error.message,
            hint="give --dynamic " + " ".join(_from_least(d, request.space[d.name]) for d in undefined),
            details=[f"it raises at {d.where}, and runs from {d.name} = {d.least} on" for d in undefined],
            where=error.where,
        )
    helps = [d for d in undefined if d.multiple is not None]
    if not helps:
        return error
    ranges = ShapeSpace(tuple((n, r) for n, r in request.space.dims if any(d.name == n for d in helps)))
    shown = ", ".join(f"{d.name} a multiple of {d.multiple}" for d in helps)
    return TrtconvError(
        error.message,
        hint=f"it runs with {shown}: add --align to narrow {ranges} to those sizes, or --pad-to-multiple to pad the "
        "inputs and cut the outputs back",
        details=[f"it raises at {d.where}" for d in helps],
        where=error.where,
    )


def _too_high(runner: ModuleRunner, request: ExportRequest, make: MakeInputs) -> list[TensorSpec]:
    """The whole-number inputs, as lengths and indices are, whose values alone make the module raise at small sizes."""
    import numpy as np

    whole = [s for s in request.inputs if s.dtype.kind == "int"]
    if not whole:
        return []
    inputs = make(SamplePoint("probe", tuple(request.space.pick("min").items())))
    if _runs(runner, inputs):
        return []
    least = {s.name: np.full_like(inputs[s.name], s.value_range[0] if s.value_range else 0) for s in whole}
    if not _runs(runner, {**inputs, **least}):
        return []
    alone = [s for s in whole if not _runs(runner, {**inputs, **{n: v for n, v in least.items() if n != s.name}})]
    return alone or whole


def _runs(runner: ModuleRunner, inputs: Mapping[str, Array]) -> bool:
    try:
        runner(inputs)
    except TrtconvError:
        return False
    return True


def _from_least(dim: UndefinedDim, rng: DimRange) -> str:
    """`T=5:16:128`, the range without the sizes that are too small."""
    least = dim.least or rng.min
    return f"{dim.name}={DimRange(least, max(least, rng.opt), rng.max, rng.multiple)}"
