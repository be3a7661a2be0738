"""Whether FP32 has the digits of what a module computes in FP64, where values lie close together far from zero.

The variance of a signal around 1000 as `(d * d).mean() - d.mean() ** 2` needs 12 digits, and FP32 has 7. Standard
normal values never show it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import onnx.numpy_helper

from trtconv.backends.onnxruntime.graph_runner import open_model
from trtconv.core.errors import TrtconvError, UnsupportedError
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.targets import Target
from trtconv.core.tensors import TensorSpec
from trtconv.proof.comparison import describe_failure, first_failure
from trtconv.proof.original import Run
from trtconv.proof.points import SamplePoint, sample_inputs, sample_points
from trtconv.proof.proving import compare_graphs
from trtconv.proof.sizes import elements
from trtconv.rewrite.engine.whole import REMARKABLE
from trtconv.rewrite.graph.index import Array
from trtconv.rewrite.lowering.float64 import DOUBLE, SUFFICES, Narrowed

# Of signals, sums and pixels: a mean a thousand times the deviation.
OFFSET = 1000.0
# FP64 numbers of the graph over LEAST are means too, as in `(x - mean) / std`.
LEAST, LARGEST, MOST_NUMBERS, MOST_ELEMENTS = 10.0, 1e9, 3, 1 << 12
# The top of a declared range in which values lie close together.
SHARE = 0.01
# What is told of an output's magnitude; FP32 by itself rounds to 1e-6 of it.
TOLD = 1e-5
# The share of an output that may be off by more than REMARKABLE of its magnitude at usual values: decisions (a cast to
# (a cast to whole numbers) that fall to the other side.
MOST_OFF = 0.01
# So many elements show such a share; of small inputs values are drawn anew.
ENOUGH, MOST_DRAWS = 1 << 10, 64


def require_usual_digits(
    original: onnx.ModelProto, narrowed: Narrowed, space: ShapeSpace, specs: tuple[TensorSpec, ...], target: Target
) -> None:
    """Raise UnsupportedError where FP32 has too few digits at random values, at the sizes with the most elements.

    The comparison of the whole graph allows what inputs that move by rounding move. Who computes a phase of 1e9 or the
    last digits of a product in FP64 does it so as not to have that.
    """
    points = [p for p in sample_points(space, specs) if p.values == "random"]
    # At few elements ties are frequent, and which of equals comes first is no loss.
    point = max(points, key=lambda p: elements(specs, p), default=None)
    if point is None:
        return
    try:
        scaled_errors = _scaled_errors(open_model(original)[0], open_model(narrowed.model)[0], specs, point)
    except TrtconvError:
        # The comparison of the whole graph says what does not run.
        return
    for name, errors in scaled_errors.items():
        share = float(np.mean(errors > REMARKABLE)) if errors.size else 0.0
        if share > MOST_OFF:
            raise UnsupportedError(
                f"from {narrowed.first} on the module computes in FP64, which {target} reads as FP32 silently; at "
                f"{point} {share:.0%} of the elements of output '{name}' are then off, by up to {errors.max():.2g} of "
                "its magnitude",
                hint=SUFFICES,
                where=narrowed.where,
            )


def _scaled_errors(before: Run, after: Run, specs: tuple[TensorSpec, ...], point: SamplePoint) -> dict[str, Array]:
    """By output the errors at a point as shares of its magnitude, over as many draws of the values as show a share."""
    errors: dict[str, list[Array]] = {}
    for draw in range(max(1, min(MOST_DRAWS, ENOUGH // max(1, elements(specs, point))))):
        feed = sample_inputs(specs, replace(point, seed=point.seed + draw))
        wide, narrow = before(feed), after(feed)
        for name, value in wide.items():
            if value.shape == narrow[name].shape and value.dtype.kind in "fiu":
                errors.setdefault(name, []).append(_shares_of_magnitude(value, narrow[name]))
    return {name: np.concatenate(parts) for name, parts in errors.items()}


def _shares_of_magnitude(wide: Array, narrow: Array) -> Array:
    one, other = (a.astype(np.float64).reshape(-1) for a in (wide, narrow))
    finite = np.isfinite(one) & np.isfinite(other)
    one, other = one[finite], other[finite]
    magnitude = float(np.sqrt(np.mean(np.square(one)))) if one.size else 0.0
    shares: Array = np.abs(one - other) / max(magnitude, float(np.finfo(np.float32).tiny))
    return shares


def require_digits(
    original: onnx.ModelProto, narrowed: Narrowed, space: ShapeSpace, specs: tuple[TensorSpec, ...], target: Target
) -> str:
    """A note on what differs with values that lie close together far from zero, empty where nothing does.

    Raises UnsupportedError where every such input has a declared range, as those values are then fed, and the outputs
    differ by more than inputs that move by rounding move them.
    """
    point = next((p for p in sample_points(space, specs) if p.values == "large"), None)
    offset = [s for s in specs if _is_offset(s)]
    if point is None or not offset:
        return ""
    point = replace(point, label="close together", values="random")
    declared = all(s.value_range is not None for s in offset)
    largest: tuple[float, str] = 0.0, ""
    try:
        before, after = open_model(original)[0], open_model(narrowed.model)[0]
        for mean in (OFFSET,) if declared else (OFFSET, *_numbers(original)):
            feed = _close_together(specs, point, mean)
            compared = compare_graphs("that point", before, feed, before(feed), after(feed))
            values = " and ".join(f"'{s.name}' from {feed[s.name].min():g} to {feed[s.name].max():g}" for s in offset)
            failure = first_failure(compared)
            if declared and failure is not None:
                raise _too_few(narrowed, target, values, describe_failure(failure))
            for result in compared:
                moved = result.max_scaled or 0.0
                if moved > max(TOLD, largest[0]):
                    largest = moved, f"with {values} '{result.output}' is off by up to {moved:.2g} of its magnitude"
    except UnsupportedError:
        raise
    except TrtconvError:
        # The comparison of the whole graph says what does not run.
        return ""
    where = f"FP32 has too few digits for {narrowed.first} where values lie close together far from zero"
    return f"{where}: {largest[1]}" if largest[1] else ""


def _too_few(narrowed: Narrowed, target: Target, values: str, failure: str) -> UnsupportedError:
    return UnsupportedError(
        f"from {narrowed.first} on the module computes in FP64, which {target} reads as FP32 silently; with {values}, "
        f"within the declared range, too few digits are left: {failure}",
        hint="compute that part outside of the engine, or so that FP32 suffices (subtract the mean before squaring); "
        "or declare the range that the values really have",
        where=narrowed.where,
    )


def _numbers(model: onnx.ModelProto) -> list[float]:
    """Some FP64 numbers of the graph that are far from zero."""
    written = (a.t for n in model.graph.node if n.op_type == "Constant" for a in n.attribute)
    numbers: list[float] = []
    for tensor in (*model.graph.initializer, *written):
        if tensor.data_type == DOUBLE and 0 < np.prod(tensor.dims) <= MOST_ELEMENTS:
            value = float(onnx.numpy_helper.to_array(tensor).reshape(-1)[0])
            numbers += [value] if LEAST <= abs(value) < LARGEST and value not in numbers else []
    return numbers[:MOST_NUMBERS]


def _is_offset(spec: TensorSpec) -> bool:
    """True for floats, and for whole numbers of which it is known how large they get."""
    return spec.dtype.kind == "float" or (spec.dtype.kind == "int" and spec.value_range is not None)


def _close_together(specs: tuple[TensorSpec, ...], point: SamplePoint, mean: float) -> dict[str, Array]:
    feed = sample_inputs(specs, point)
    for spec in specs:
        random = feed[spec.name]
        if not _is_offset(spec) or not random.size:
            continue
        if spec.value_range is None:
            feed[spec.name] = np.asarray(random.astype(np.float64) + mean).astype(random.dtype)
        else:
            # Uniform in the range, and so it is in a small part of it.
            high = spec.value_range[1]
            feed[spec.name] = np.asarray(high - (high - random.astype(np.float64)) * SHARE).astype(random.dtype)
    return feed
