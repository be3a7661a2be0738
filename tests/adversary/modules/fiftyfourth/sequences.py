"""What the attacks of this round declare of sequences."""

from tests.adversary.inputs import FINITE
from tests.adversary.values import values_at


def seq(
    *inputs: str,
    low: int = 1,
    high: int = 40,
    at: tuple = (2, 3, 5, 7, 8, 13, 16, 17, 31, 32, 33, 39),
    own: tuple = (),
    kinds: tuple = FINITE,
) -> dict:
    """A batch of sequences, with points at some lengths."""
    points = tuple(values_at(*inputs, N=1 + t % 2, T=t) for t in at if low <= t <= high)
    return {"dims": f"N=1:1:2 T={low}:{(low + high) // 2}:{high}", "kinds": kinds, "feeds": (*points, *own)}
