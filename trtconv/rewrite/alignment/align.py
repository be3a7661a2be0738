"""What `--align`, `--pad-to-multiple` and `--dynamic` make of a model before the rules run."""

from __future__ import annotations

import onnx

from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.file import set_metadata, signature
from trtconv.core.model.inference import without_weights
from trtconv.core.model.provenance import PADDING_KEY, SPACE_KEY
from trtconv.core.progress import Progress
from trtconv.core.requests import RewriteRequest
from trtconv.core.shape_space.alignment import aligned_space
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.proof.sizes import shape_points
from trtconv.proof.undefined_sizes import required_multiples
from trtconv.rewrite.alignment.pad_to_multiple import pad_model
from trtconv.rewrite.alignment.undefined_sizes import problem_at, undefined_dims, warn_of_undefined_sizes


def settle_sizes(
    model: onnx.ModelProto, request: RewriteRequest, progress: Progress
) -> tuple[onnx.ModelProto, list[str]]:
    """The model to rewrite, with the shape space that it then serves recorded in it, and notes.

    Raises InvalidRequestError when a range goes beyond that of the model, an aligned space is empty, no multiple helps,
    padding cannot be cut back, and when the ranges of the dims are not known.
    """
    if request.align and request.pad_to_multiple:
        raise InvalidRequestError(
            "--align and --pad-to-multiple exclude each other",
            hint="--align serves fewer sizes, --pad-to-multiple serves all of them through padding",
        )
    interface = signature(model)
    space = interface.space.merged(request.space)
    if request.space.dims:
        _require_names(request.space, interface.inputs)
        # What is recorded from here on is the new range: no later room would know.
        request.space.require_within(interface.space)
        model = _with_space(model, space)
    if not (request.align or request.pad_to_multiple):
        return model, warn_of_undefined_sizes(model, progress)
    missing = [n for s in interface.inputs for n in s.names() if n not in space]
    if missing:
        raise InvalidRequestError(
            f"the range of '{missing[0]}' is not recorded in {request.model}",
            hint="add " + " ".join(f"--dynamic {n}=MIN:OPT:MAX" for n in dict.fromkeys(missing)),
        )
    option = "--align" if request.align else "--pad-to-multiple"
    padded = any(p.key == PADDING_KEY for p in model.metadata_props)
    dims = undefined_dims(model, space, interface.inputs, cover=not request.align) if not padded else ()
    multiples = required_multiples(dims)
    if not multiples:
        return model, [f"{option} had nothing to do: " + ("it is padded already" if padded else "no size is undefined")]
    if request.align:
        space = aligned_space(space, multiples)
        _require_defined(model, space, interface.inputs)
        why = "; ".join(d.where for d in dims)
        return _with_space(model, space), [f"--align: the shape space is {space}, for the graph is undefined at {why}"]
    return pad_model(model, interface.inputs, space, multiples, request.pad_to_multiple, proof=request.proof)


def _require_names(space: ShapeSpace, specs: tuple[TensorSpec, ...]) -> None:
    dim_names = list(dict.fromkeys(n for s in specs for n in s.names()))
    for name in space:
        if name not in dim_names:
            raise InvalidRequestError(
                f"no input has a dim called '{name}'", hint="the dims are: " + (", ".join(dim_names) or "none by name")
            )


def _require_defined(model: onnx.ModelProto, space: ShapeSpace, specs: tuple[TensorSpec, ...]) -> None:
    """Each dim was looked at alone; here they are together."""
    light = without_weights(model)
    for point in shape_points(space, specs):
        problem = problem_at(light, specs, point.sizes)
        if problem is not None:
            raise InvalidRequestError(
                f"--align does not help: the graph is undefined at {point} as well ({problem})",
                hint="the dims depend on each other; give ranges in which the graph is defined",
            )


def _with_space(model: onnx.ModelProto, space: ShapeSpace) -> onnx.ModelProto:
    set_metadata(model, SPACE_KEY, str(space))
    return model
