"""Optimization profiles out of named dims and their ranges."""

from __future__ import annotations

from dataclasses import dataclass

from trtconv.backends.protocol import Profile
from trtconv.core.errors import InvalidRequestError, UnsupportedError, did_you_mean
from trtconv.core.model.file import Signature
from trtconv.core.requests import BuildRequest
from trtconv.core.shape_space.alignment import aligned_space
from trtconv.core.shape_space.space import DimRange, ShapeSpace
from trtconv.core.tensors import TensorSpec, lay_over

NOT_IN_TENSORRT = ("int16", "uint16", "uint32", "uint64")


@dataclass(frozen=True)
class ProfilePlan:
    """What is built: inputs with named dims, one profile per space, dims that are the same in all of them pinned.

    `space` spans all profiles. `beyond` names dims whose range leaves what export proved.
    """

    inputs: tuple[TensorSpec, ...]
    space: ShapeSpace
    profiles: tuple[Profile, ...]
    pinned: tuple[tuple[str, int, int], ...]


def plan_profiles(request: BuildRequest, described: Signature) -> ProfilePlan:
    """Work out the profiles.

    Raises InvalidRequestError for unknown names, dynamic dims without a range, ranges beyond what is recorded, and an
    input that is an output as well; UnsupportedError for an input or output of a type that no TensorRT has.
    """
    _require_own_outputs(request, described)
    _require_types(request, described)
    inputs, fixed = named_inputs(request, described)
    names = tuple(dict.fromkeys(n for spec in inputs for n in spec.names()))
    recorded = ShapeSpace(tuple((n, r) for n, r in described.space.dims if n in names))
    _require_known((*(request.dynamic or ()), *(n for p in request.profiles for n in p)), names, inputs)
    base = recorded.merged(request.dynamic or ShapeSpace())
    if request.dynamic is None:
        base = ShapeSpace(tuple((n, DimRange(r.opt, r.opt, r.opt)) for n, r in base.dims))
    spaces = tuple(base.merged(p) for p in request.profiles) or (base,)
    for space in spaces:
        _require_complete(space, inputs)
    spaces = tuple(aligned_space(s, dict(request.multiples)) for s in spaces)
    ordered = tuple(ShapeSpace(tuple((n, s[n]) for n in names)) for s in spaces)
    pinned = fixed + _pinned(described.inputs, inputs, ordered)
    profiles = tuple(_profile(inputs, s) for s in ordered)
    spanned = ShapeSpace(tuple((n, _span(tuple(s[n] for s in ordered))) for n in names))
    for space in ordered:
        space.require_within(recorded)
    return ProfilePlan(inputs, spanned, profiles, pinned)


def _require_own_outputs(request: BuildRequest, described: Signature) -> None:
    """TensorRT's parser renames an input that is an output as well (ModelImporter.cpp), which no profile then has."""
    outputs = {s.name for s in described.outputs}
    both = next((s.name for s in described.inputs if s.name in outputs), None)
    if both is not None:
        raise InvalidRequestError(
            f"the output '{both}' of {request.model} is its input of that name, and an engine has one tensor of a name",
            hint="take the output out of the file, or call it otherwise: `trtconv convert` with --output-names",
        )


def _require_types(request: BuildRequest, described: Signature) -> None:
    """The parser names neither the tensor nor its type: `Failed to convert ONNX date type`."""
    for end, specs in (("input", described.inputs), ("output", described.outputs)):
        for spec in specs:
            if spec.dtype.name in NOT_IN_TENSORRT:
                raise UnsupportedError(
                    f"the {end} '{spec.name}' of {request.model} is {spec.dtype.name}, which no TensorRT has",
                    hint=f"declare the {end} as int32, or as the float32 that it becomes, and cast outside the engine",
                )


def named_inputs(
    request: BuildRequest, described: Signature
) -> tuple[tuple[TensorSpec, ...], tuple[tuple[str, int, int], ...]]:
    """The model's inputs with the dims that `--input` names laid over them, and the dims that it makes fixed."""
    overrides = {s.name: s for s in request.inputs}
    input_names = [s.name for s in described.inputs]
    for name in overrides:
        if name not in input_names:
            raise InvalidRequestError(
                f"{request.model} has no input '{name}'{did_you_mean(name, input_names)}",
                hint="it has " + ", ".join(input_names),
            )
    specs = tuple(lay_over(s, overrides.get(s.name)) for s in described.inputs)
    pins = tuple(
        (was.name, axis, new)
        for was, now in zip(described.inputs, specs, strict=True)
        for axis, (old, new) in enumerate(zip(was.dims, now.dims, strict=True))
        if isinstance(old, str) and isinstance(new, int)
    )
    return specs, pins


def _require_known(dim_names: tuple[str, ...], names: tuple[str, ...], inputs: tuple[TensorSpec, ...]) -> None:
    for name in dim_names:
        if name not in names:
            shown = ", ".join(names) or f"none; the inputs are {', '.join(str(s) for s in inputs)}"
            raise InvalidRequestError(
                f"no input has a dim called '{name}'{did_you_mean(name, names)}", hint=f"the dims are: {shown}"
            )


def _require_complete(space: ShapeSpace, inputs: tuple[TensorSpec, ...]) -> None:
    for spec in inputs:
        missing = [n for n in spec.names() if n not in space]
        if missing:
            example = " ".join(f"{n}=1:4:8" for n in missing)
            raise InvalidRequestError(
                f"input '{spec}' is dynamic and nothing says how large {', '.join(missing)} can be",
                hint=f"give ranges: --dynamic {example} (or one size: --dynamic {missing[0]}=4)",
            )


def _profile(inputs: tuple[TensorSpec, ...], space: ShapeSpace) -> Profile:
    low, opt, high = space.pick("min"), space.pick("opt"), space.pick("max")
    return {s.name: (s.shape(low), s.shape(opt), s.shape(high)) for s in inputs if s.names()}


def _pinned(
    originals: tuple[TensorSpec, ...], inputs: tuple[TensorSpec, ...], spaces: tuple[ShapeSpace, ...]
) -> tuple[tuple[str, int, int], ...]:
    """Dims with one and the same size in every profile become static: TensorRT then folds and fuses more."""
    sizes: dict[str, int] = {}
    for name in spaces[0]:
        ranges = {s[name] for s in spaces}
        only = next(iter(ranges))
        if len(ranges) == 1 and only.min == only.max:
            sizes[name] = only.min
    return tuple(
        (spec.name, axis, sizes[dim])
        for was, spec in zip(originals, inputs, strict=True)
        for axis, (old, dim) in enumerate(zip(was.dims, spec.dims, strict=True))
        if isinstance(old, str) and isinstance(dim, str) and dim in sizes
    )


def _span(ranges: tuple[DimRange, ...]) -> DimRange:
    first = ranges[0]
    if all(r == first for r in ranges):
        return first
    low, high = min(r.min for r in ranges), max(r.max for r in ranges)
    multiple = first.multiple if all(r.multiple == first.multiple for r in ranges) else 1
    return DimRange(low, first.opt, high, multiple)
