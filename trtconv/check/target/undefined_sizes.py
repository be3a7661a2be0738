"""Finds the sizes of its shape space at which a graph is undefined, and the multiple that would make it defined.

Each dim is run through sizes that divide by different powers of two, the others held at a size that works. What
fails is explained by the simplest rule that fits every run: a multiple, a least size, a largest size, or equality
with another dim; the rule is then tried on sizes that it was not made from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.check.blame.origins import named_node
from trtconv.core.errors import TrtconvError
from trtconv.core.model.file import load_model, signature
from trtconv.core.model.provenance import Origin
from trtconv.core.progress import Progress
from trtconv.core.report import Finding
from trtconv.core.shape_space.space import DimRange, ShapeSpace
from trtconv.proof.points import SamplePoint, sample_inputs
from trtconv.proof.undefined_sizes import MULTIPLES, Problem, defined_base, problems_of

if TYPE_CHECKING:
    import onnx

LIMIT_S = 60.0
# A check only names the multiple, where padding would have to fill up to it.
NAMED_MULTIPLES = (*MULTIPLES, 96, 128, 256)
# One run may cost so many times the elements of the smallest one: the largest sizes of a detector take minutes.
COST = 256


@dataclass(frozen=True)
class Undefined:
    """One dim's failing sizes, the rule that explains them (a sentence), and the first failure's message."""

    dim: str
    failing: tuple[int, ...]
    rule: str
    hint: str
    error: str


def find_undefined_sizes(
    model: Path, progress: Progress, *, limit_s: float = LIMIT_S
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Findings for the dims in which an ONNX file is undefined somewhere, and notes on what was not tried."""
    from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

    proto = load_model(model)
    interface = signature(proto)
    named = {n for s in interface.inputs for n in s.names()}
    dims = {n: r for n, r in interface.space.dims if n in named}
    missing = named - set(dims)
    if missing or not dims:
        return (), ((f"sizes were not tried: the range of '{min(missing)}' is not recorded",) if missing else ())
    try:
        runner = OnnxRuntimeRunner(model, threads=1)
    except TrtconvError as error:
        return (), (f"sizes were not tried: {error.message}",)

    def problem(sizes: Mapping[str, int]) -> str | None:
        progress.phase("sizes " + " ".join(f"{n}={v}" for n, v in sizes.items()))
        try:
            runner(sample_inputs(interface.inputs, SamplePoint("probe", tuple(sizes.items()))))
        except TrtconvError as error:
            return error.message
        return None

    undefined, notes = probe_dims(problem, dims, limit_s=limit_s)
    return tuple(_finding(u, proto) for u in undefined), notes


def probe_dims(
    problem: Problem, dims: Mapping[str, DimRange], *, limit_s: float = LIMIT_S
) -> tuple[tuple[Undefined, ...], tuple[str, ...]]:
    """The search itself, on anything that can be probed."""
    end = time.monotonic() + limit_s
    space = ShapeSpace(tuple(dims.items()))
    base = defined_base(problem, space, smallest=True)
    if base is None:
        error = problem(space.pick("opt")) or ""
        every = Undefined("every dim", (), "it fails at min, opt and max alike", "export the module again", error)
        return (every,), ()
    undefined: list[Undefined] = []
    for name, rng in dims.items():
        results: dict[int, str] = {}
        for size, wrong in problems_of(problem, base, name, _affordable(probe_sizes(rng), base[name])):
            results[size] = wrong or ""
            if time.monotonic() > end:
                return tuple(undefined), (f"sizes of {name} above {size} were not tried: {limit_s:.0f} s were over",)
        if any(results.values()):
            undefined.append(_explain(name, rng, results, base, problem))
    return tuple(undefined), ()


def probe_sizes(rng: DimRange) -> list[int]:
    """Sizes that divide by different powers of two and by little else, smallest first; both ends are among them."""
    low = -(-rng.min // rng.multiple)
    high = rng.max // rng.multiple
    units = {low, high, low + 1, high - 1, (low + high) // 2}
    for power in range(9):
        step = 2**power
        first = -(-low // step) * step
        odd = first if (first // step) % 2 else first + step
        units |= {first, odd, odd + 2 * step}
    units |= {-(-low // n) * n for n in (3, 5, 6, 7, 10, 12)}
    return sorted(u * rng.multiple for u in units if low <= u <= high)


def _affordable(sizes: list[int], base: int) -> list[int]:
    return [s for s in sizes if s <= max(1, base) * COST]


def _explain(
    name: str, rng: DimRange, results: Mapping[int, str], base: Mapping[str, int], problem: Problem
) -> Undefined:
    failing = tuple(s for s, e in results.items() if e)
    works = [s for s, e in results.items() if not e]
    error = results[failing[0]]

    def ok(size: int) -> bool:
        return not (results[size] if size in results else problem({**base, name: size}))

    def result(rule: str, hint: str) -> Undefined:
        return Undefined(name, failing, rule, hint, error)

    equal = [n for n, v in base.items() if n != name and works == [v]]
    if equal and len(results) > 2:
        return result(f"it is defined only where {name} equals {equal[0]}", "give both dims one name in --input")
    for multiple in (m * rng.multiple for m in NAMED_MULTIPLES):
        if all((s % multiple == 0) == (s in works) for s in results) and _holds(rng, multiple, ok):
            low, opt, high = (_to(multiple, v, rng) for v in (rng.min, rng.opt, rng.max))
            fixed = DimRange(low, opt, high, multiple)
            return result(f"it is defined only for multiples of {multiple}", f"export with --dynamic {name}={fixed}")
    if works and max(failing) < min(works):
        least = _first(ok, max(failing), min(works), rng.multiple)
        return result(f"it is defined from {least} on", f"raise the least size of {name} to {least}")
    if works and min(failing) > max(works):
        most = _first(lambda s: not ok(s), max(works), min(failing), rng.multiple) - rng.multiple
        return result(f"it is defined up to {most}", f"lower the largest size of {name} to {most}")
    return result("no simple rule fits the sizes that fail", f"fails for {name} = {', '.join(map(str, failing[:8]))}")


def _holds(rng: DimRange, multiple: int, ok: Callable[[int], bool]) -> bool:
    """Try the rule on sizes near the middle: the next multiple has to work, and one step beside it has to fail."""
    middle = (rng.min + rng.max) // 2 // multiple * multiple
    tried = [s for s in (middle, middle + multiple) if rng.min <= s <= rng.max]
    beside = [s + rng.multiple for s in tried if s + rng.multiple <= rng.max and (s + rng.multiple) % multiple]
    return all(ok(s) for s in tried) and not any(ok(s) for s in beside)


def _to(multiple: int, value: int, rng: DimRange) -> int:
    """The nearest multiple inside of the range, upwards at the lower end."""
    low, high = -(-rng.min // multiple), rng.max // multiple
    return max(low, min(high, round(value / multiple))) * multiple


def _first(ok: Callable[[int], bool], bad: int, good: int, step: int) -> int:
    """The least size that is ok between one that is not and one that is, in steps."""
    while good - bad > step:
        middle = bad + (good - bad) // step // 2 * step
        if ok(middle):
            good = middle
        else:
            bad = middle
    return good


def _finding(undefined: Undefined, model: onnx.ModelProto) -> Finding:
    name, origin = named_node(model, undefined.error) or ("", Origin())
    sizes = f" (fails at {', '.join(map(str, undefined.failing[:4]))})" if undefined.failing else ""
    return Finding(
        "error",
        "unsupported",
        f"the graph is undefined for some sizes of {undefined.dim}{sizes}: {undefined.rule}; {undefined.error}",
        undefined.hint,
        name,
        origin.module,
        origin.source,
    )
