"""Sizes at which the user's code takes other steps, found by runs with numbers where one with symbols is led astray.

A run with symbolic sizes answers as a run with numbers does while sizes are computed with and compared. Asked for their
type, an attribute or their identity they answer otherwise, and what stands behind the question is never seen:
`type(h) is int and (h, w) == (13, 47)`. So a run of each kind is watched instruction by instruction, and where the two
differ the module is run at one joint size after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.effort import Effort
from trtconv.core.errors import TrtconvError
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.export.branches.by_size.instructions import Step, steps_taken
from trtconv.export.branches.by_size.size_paths import SizePaths
from trtconv.export.branches.by_size.size_run import copy_structure
from trtconv.export.module.runner import ModuleRunner
from trtconv.export.module.user_code import Frame, format_frame
from trtconv.proof.joint_sizes import covering_sizes

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

SECONDS, LEAST_RUNS = 6.0, 8


def line_astray(runner: ModuleRunner, inputs: Mapping[str, Array], symbols: Mapping[Step, int]) -> Frame | None:
    """The first line of which a run with these inputs takes other steps than one with symbols of their sizes took.

    None where the two agree, and where the module raises.
    """
    try:
        numbers = _steps_with_numbers(runner, inputs)
    except TrtconvError:
        return None
    differing = numbers.keys() ^ symbols.keys()
    lines = {**symbols, **numbers}
    return min(((step[0], lines[step]) for step in differing), default=None)


def with_runs_by_number(
    paths: SizePaths,
    runner: ModuleRunner,
    line: Frame,
    space: ShapeSpace,
    make: Callable[[Mapping[str, int]], Mapping[str, Array]],
    base: Path,
) -> SizePaths:
    """The paths with those that runs at joint sizes show, in an order made for coverage, for `SECONDS`.

    `line` stays an obstacle: what is computed from a size, and decides nothing, no step shows.
    """
    effort = Effort(SECONDS, LEAST_RUNS)
    ways: dict[frozenset[Step], dict[str, int]] = {}
    runs = 0
    for sizes in covering_sizes(space, ()):
        if not effort.step():
            break
        runs += 1
        try:
            steps = frozenset(_steps_with_numbers(runner, make(sizes)))
        except TrtconvError:
            continue
        ways.setdefault(steps, sizes)
    others = [s for s in ways.values() if s not in paths.points]
    question = f"a size is asked at {format_frame(line, base)} for what only numbers have"
    return replace(
        paths,
        points=(*others, *paths.points),
        paths=max(paths.paths, len(ways)),
        obstacle=f"{question}; {runs:,} joint sizes were run for other steps",
        astray=True,
    )


def _steps_with_numbers(runner: ModuleRunner, inputs: Mapping[str, Array]) -> dict[Step, int]:
    """The steps of a run. Raises TrtconvError when the module raises."""
    with runner.caches.emptied():
        copied = runner.with_module(copy_structure(runner.module))
        with steps_taken() as steps:
            copied(inputs)
    return steps
