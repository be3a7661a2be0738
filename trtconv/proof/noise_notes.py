"""What the user is told of an original's own noise: outputs of which equality says little, and steps in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trtconv.core.text.listing import list_first
from trtconv.proof.noise.noise_floor import CHAOTIC, MOST_FLIPS, TYPICAL
from trtconv.proof.original import MODULE
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# Noise of this share of an output's magnitude at special values is told to the user.
REMARKABLE = 0.01
# Points that one note names.
MOST_NAMED = 3
# An error over this share of an output's magnitude, where most are below the other one, is a step: a rounded picture.
STEP, ROUNDING = 1e-3, 1e-5


def notes_on_noise(items: Sequence[ReferenceSample], label: str) -> list[str]:
    """Notes on outputs whose own noise is so large that equality there says hardly anything."""
    import numpy as np

    notes = []
    noisy = dict[str, list[str]]()
    half_way, stepped = dict[str, float](), dict[str, float]()
    for sample in items:
        for name, floor in sample.floors.items():
            output = sample.outputs[name]
            flips = floor.exact & (floor.error > 0)
            by_steps = floor.exact.all() and floor.largest <= 1 and output.dtype.kind != "b"
            if output.size and flips.any() and (by_steps or sample.point.values == "random"):
                # Of denormals, which GPUs take for zero, an argmax is another: no rounding decides there.
                if sample.point.values != "denormal":
                    half_way[name] = max(half_way.get(name, 0.0), float(np.broadcast_to(flips, output.shape).mean()))
                continue
            scale = float(np.abs(output).max(initial=0.0, where=np.isfinite(output)))
            if sample.point.values == "random" and not floor.chaotic:
                errors = np.broadcast_to(floor.error, output.shape)
                stepped[name] = max(stepped.get(name, 0.0), _share_at_steps(errors, scale))
            if floor.chaotic:
                noisy.setdefault(name, []).append(str(sample.point))
            elif floor.largest > REMARKABLE * scale > 0 and sample.point.values not in ("random", "nan"):
                exact = "its FP64"
                if sample.point.values == "denormal":
                    if scale < np.finfo(np.float32).tiny:
                        # Denormal outputs, which GPUs give as zero: nothing is to be shown there.
                        continue
                    exact = "its FP64 or from what it is where denormals count as zero, as on GPUs"
                where = " at some elements" if float(np.median(floor.error)) < floor.largest else ""
                notes.append(
                    f"at {sample.point} {label} itself is ill conditioned: its FP32 '{name}' is "
                    f"{floor.largest:.2g} from {exact}{where}, so the comparison there shows little"
                )
    notes += [
        f"up to {share:.0%} of the elements of {label}'s '{name}' lie between two whole numbers, where its last "
        "rounding decides: those may be off by one"
        for name, share in half_way.items()
        if share > MOST_FLIPS
    ]
    notes += [
        f"up to {share:.1%} of the elements of {label}'s '{name}' lie at a step, where its last rounding decides: "
        "those may be a step off"
        for name, share in stepped.items()
        if share > 0
    ]
    random = "and so do deep networks with random weights (load real ones with --weights)"
    remedy = f"; parts in bfloat16 or float16 do that, {random}" if label == MODULE else ""
    for name, points in noisy.items():
        notes.append(
            f"{label}'s own noise is large at {list_first(points, MOST_NAMED)}: most elements of its FP32 and FP64 "
            f"'{name}' differ by more than {CHAOTIC / TYPICAL:.1%} of their size{remedy}"
        )
    return notes


def _share_at_steps(errors: Array, scale: float) -> float:
    """The share of elements beside a step; zero where most of the noise is no rounding."""
    import numpy as np

    if not scale or float(np.median(errors)) > ROUNDING * scale:
        return 0.0
    return float((errors > STEP * scale).mean())
