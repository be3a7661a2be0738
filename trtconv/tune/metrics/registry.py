"""The metrics by name, and those of the user's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trtconv.core.data.iterator import is_function, load_function
from trtconv.core.errors import InvalidRequestError, TrtconvError, did_you_mean
from trtconv.tune.metrics.classification import TOP1
from trtconv.tune.metrics.detection import MAP
from trtconv.tune.metrics.images import PSNR
from trtconv.tune.metrics.metric import Metric, Outputs
from trtconv.tune.metrics.segmentation import MIOU

METRICS = {m.name: m for m in (TOP1, MAP, MIOU, PSNR)}
HINT = "it is called with (outputs: dict of arrays, labels: list) and returns a number, of which more is better"


def find_metric(text: str) -> Metric:
    """The metric of that name, or `FILE.py:function`. Raises InvalidRequestError for an unknown one."""
    if text in METRICS:
        return METRICS[text]
    if not is_function(text):
        raise InvalidRequestError(
            f"unknown metric '{text}'{did_you_mean(text, METRICS)}",
            hint="one of " + ", ".join(METRICS) + ", or a function of yours: FILE.py:function",
        )
    function = load_function(text, "metric file")

    def compute(outputs: Outputs, labels: Sequence[Any]) -> float:
        try:
            return float(function({n: stacked(a) for n, a in outputs.items()}, list(labels)))
        except TrtconvError:
            raise
        except Exception as error:
            raise InvalidRequestError(
                f"the metric '{text}' raised {type(error).__name__}: {error}", hint=HINT
            ) from error

    return Metric(text.rpartition(":")[2], False, compute, needs_labels=False)


def stacked(arrays: Sequence[Any]) -> Any:
    """One array with the samples along axis 0 where they have one shape, else the list."""
    import numpy as np

    same = len({a.shape for a in arrays}) == 1
    return np.stack(arrays) if same else list(arrays)
