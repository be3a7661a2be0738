"""Where an original's own precision does not reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trtconv.proof.noise.rounding import UNABLE
from trtconv.proof.original import Original, widened

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


def breaks_down(original: Original, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> bool:
    """True when the outputs are not finite where those in FP64 are: the original's precision does not reach there."""
    import numpy as np

    exact = original.exact()
    if exact is None:
        return False
    try:
        precise = exact(widened(inputs))
    except UNABLE:
        return False
    return any(
        value.dtype.kind == "f" and bool(np.any(~np.isfinite(value) & np.isfinite(precise[name])))
        for name, value in outputs.items()
        if name in precise and precise[name].shape == value.shape
    )
