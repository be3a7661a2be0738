"""How far the module's own FP32 outputs are from its FP64 outputs: what no FP32 engine can be held to better than."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import TrtconvError
from trtconv.export.module.runner import ModuleRunner
from trtconv.proof.noise_floor import rounding_allowance
from trtconv.proof.probes.stability import probe_allowance

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# A copy in FP64 takes twice the weights' memory, which a model of many gigabytes cannot afford.
LARGEST_COPY = 1 << 30


def weight_bytes(runner: ModuleRunner) -> int:
    """The bytes of the module's parameters."""
    return sum(p.numel() * p.element_size() for p in runner.module.parameters())


def exact_twin(runner: ModuleRunner) -> ModuleRunner | None:
    """The module in FP64; None when it is too large to copy or cannot be copied."""
    if weight_bytes(runner) > LARGEST_COPY:
        return None
    try:
        return runner.with_module(copy.deepcopy(runner.module).double())
    except (RuntimeError, TypeError, NotImplementedError, AttributeError):
        return None


def rounding_errors(
    runner: ModuleRunner, inputs: Mapping[str, Array], outputs: Mapping[str, Array], twin: ModuleRunner | None = None,
    *, probe: bool = False,
) -> dict[str, float | Array]:  # fmt: skip
    """What |FP32 - FP64| of each FP32 or FP16 output allows; empty when the module cannot be run in FP64.

    One number where all elements round alike, else one for each (see `proof.noise_floor`); at a `probe` the elements
    that fell to another side tell nothing of the others (see `proof.probes.stability`).

    Elements that are not finite on either side are left out: an overflow is no rounding and is compared as it is.
    """
    import numpy as np

    twin = twin or exact_twin(runner)
    if twin is None:
        return {}
    try:
        exact = twin({n: v.astype(np.float64) if v.dtype in (np.float16, np.float32) else v for n, v in inputs.items()})
    except (TrtconvError, RuntimeError, TypeError, NotImplementedError, AttributeError):
        return {}
    errors: dict[str, float | Array] = {}
    for name, value in outputs.items():
        rounds = value.dtype in (np.float16, np.float32) or (probe and value.dtype.kind in "iub")
        if rounds and name in exact and exact[name].shape == value.shape:
            with np.errstate(all="ignore"):
                difference = np.abs(value.astype(np.float64) - exact[name].astype(np.float64))
            # `finfo(dtype).min` as a filling is another number in FP64, and no rounding.
            counted = np.isfinite(difference) & (np.abs(exact[name]) <= np.finfo(np.float32).max)
            moved = np.where(counted, difference, 0.0)
            errors[name] = probe_allowance(moved, value) if probe else rounding_allowance(moved)
    return errors


def jump_errors(
    runner: ModuleRunner, inputs: Mapping[str, Array], outputs: Mapping[str, Array]
) -> dict[str, float | Array]:
    """What the change of each output allows when every float input moves by about one unit in its last place.

    Zeros move by 1e-30 and by 1e-6, which a sigmoid does not swallow. A continuous module changes by its rounding; one
    that sorts or compares equal values jumps.
    """
    import numpy as np

    largest: dict[str, Array] = {n: np.zeros(v.shape, np.float64) for n, v in outputs.items()}
    for turn, least in enumerate((1e-30, 1e-30, 1e-6, 1e-6)):
        chance = np.random.default_rng(turn)
        moved = {}
        for name, array in inputs.items():
            if array.dtype.kind != "f":
                moved[name] = array
                continue
            noise = chance.uniform(-1.0, 1.0, array.shape)
            step = np.abs(array.astype(np.float64)) * float(np.finfo(array.dtype).eps) + least
            moved[name] = (array + noise * step).astype(array.dtype)
        try:
            jumped = runner(moved)
        except TrtconvError:
            return {}
        for name, value in outputs.items():
            if jumped[name].shape == value.shape and value.dtype.kind in "fiu" and value.size:
                with np.errstate(all="ignore"):
                    change = np.abs(jumped[name].astype(np.float64) - value.astype(np.float64))
                largest[name] = np.maximum(largest[name], np.where(np.isfinite(change), change, 0.0))
    return {n: rounding_allowance(errors) for n, errors in largest.items()}


def flush_errors(
    runner: ModuleRunner, inputs: Mapping[str, Array], outputs: Mapping[str, Array]
) -> dict[str, float | Array]:
    """What the change of each output allows when denormal numbers count as zero, as GPUs take them; one run.

    A comparison of two denormals (a sort, an argmax, a floor) falls to the other side then, on every such machine.
    """
    import numpy as np
    import torch

    tiny = float(np.finfo(np.float32).tiny)
    flushed = {
        n: np.where(np.abs(v) < tiny, v.dtype.type(0), v) if v.dtype.kind == "f" else v for n, v in inputs.items()
    }
    torch.set_flush_denormal(True)
    try:
        found = runner(flushed)
    except TrtconvError:
        return {}
    finally:
        torch.set_flush_denormal(False)
    errors: dict[str, float | Array] = {}
    for name, value in outputs.items():
        if found[name].shape == value.shape and value.dtype.kind in "fiu" and value.size:
            with np.errstate(all="ignore"):
                change = np.abs(found[name].astype(np.float64) - value.astype(np.float64))
            errors[name] = rounding_allowance(np.where(np.isfinite(change), change, 0.0))
    return errors


def breaks_down(runner: ModuleRunner, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> bool:
    """True when the module's outputs are not finite where those of its FP64 twin are: FP32 does not reach there."""
    import numpy as np

    twin = exact_twin(runner)
    if twin is None:
        return False
    try:
        exact = twin({n: v.astype(np.float64) if v.dtype in (np.float16, np.float32) else v for n, v in inputs.items()})
    except TrtconvError:
        return False
    return any(
        value.dtype.kind == "f" and bool(np.any(~np.isfinite(value) & np.isfinite(exact[name])))
        for name, value in outputs.items()
        if name in exact and exact[name].shape == value.shape
    )
