"""Whether a module computes another function in FP64: its distance from that is no rounding.

`if x.dtype == torch.float64: x = x / 255`, `eps = 1e-12 if x.dtype == torch.float64 else 1e-5`: what a module does for
doubles shows in the operators that it calls, and in the numbers that it gives them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from trtconv.export.module.noise.twins import exact_twin
from trtconv.export.sizes.work import watching_mode
from trtconv.proof.noise.rounding import UNABLE
from trtconv.proof.original import widened

if TYPE_CHECKING:
    import numpy as np

    from trtconv.export.module.runner import ModuleRunner

    Array = np.ndarray[Any, np.dtype[Any]]
    Step = tuple[str, tuple[float, ...]]

# A cast to the type that a tensor has calls nothing, and a number that is read is no step of what is computed.
NO_STEPS = frozenset(("_to_copy", "detach", "alias", "clone", "lift_fresh", "_local_scalar_dense"))
# Numbers that were read from values are rounded otherwise in FP64.
ALIKE = 1e-3


def takes_another_path(runner: ModuleRunner, inputs: Mapping[str, Array]) -> bool:
    """Whether the module calls other operators for these inputs in FP64, or the same with other numbers.

    False where it cannot be run in FP64, or not be watched.
    """
    twin = exact_twin(runner)
    if twin is None:
        return False
    try:
        own, exact = _steps(runner, inputs), _steps(twin, widened(inputs))
    except UNABLE:
        return False
    return len(own) != len(exact) or not all(_same(*pair) for pair in zip(own, exact, strict=True))


def _steps(runner: ModuleRunner, inputs: Mapping[str, Array]) -> list[Step]:
    steps: list[Step] = []
    runner.watched(inputs, lambda tensors: _noted(steps))
    return steps


@contextmanager
def _noted(steps: list[Step]) -> Iterator[None]:
    class Noting(watching_mode()):  # type: ignore[misc]
        def watch(self, func: Any, args: Any, kwargs: Any) -> Any:
            name = func.overloadpacket.__name__
            if name not in NO_STEPS:
                numbers = [v for v in (*args, *kwargs.values()) if isinstance(v, (int, float))]
                steps.append((name, tuple(map(float, numbers))))
            return func(*args, **kwargs)

    with Noting():
        yield


def _same(one: Step, other: Step) -> bool:
    (name, numbers), (other_name, others) = one, other
    return name == other_name and len(numbers) == len(others) and all(map(are_close, numbers, others))


def are_close(one: float, other: float) -> bool:
    """Whether two runs read or give one number, up to rounding."""
    return math.isclose(one, other, rel_tol=ALIKE) or (math.isnan(one) and math.isnan(other))
