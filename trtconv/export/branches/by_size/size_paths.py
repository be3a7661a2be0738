"""The paths that a module takes by its sizes, found by turning each of its decisions over.

A run gives the conditions of its path. Each is evaluated at all joint sizes of its dims; where it fails, another path
begins, and the module is run there. In the end all joint sizes of the space are sorted by the paths found, and what
belongs to none is run next: concolic testing, with an exhaustive evaluation in place of a solver.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.effort import Effort
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.export.branches.by_size.instructions import Step, StepsTaken, steps_taken
from trtconv.export.branches.by_size.literals import sizes_near
from trtconv.export.branches.by_size.named_sizes import NamedSizes
from trtconv.export.branches.by_size.size_guards import SizeGuard, guard_of
from trtconv.export.branches.by_size.size_masks import SizeMask, joined, listed
from trtconv.export.branches.by_size.size_run import OUT_OF_TIME, SizeRun, copy_structure, run_symbolic
from trtconv.export.branches.lookups import Key, sizes_of_keys, table_keys
from trtconv.export.module.runner import ModuleRunner, load_dynamo
from trtconv.export.module.user_code import Frame, format_frame
from trtconv.export.sizes.evaluate import UnreadableError
from trtconv.proof.joint_sizes import SizeCoverage, count_sizes, size_grids, sizes_where
from trtconv.proof.size_arithmetic import MOST_EVALUATED

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# Calls into torch that a module gets whatever they take: 20 runs of a small network.
SECONDS, LEAST_CALLS = 6.0, 512
MOST_RUNS = 64
TOO_MANY_PATHS = (
    f"it takes more than the {MOST_RUNS} paths that are run, of which each plain number that it makes of a size is one"
)
# Blocks of joint sizes that are sorted whatever they take.
LEAST_GRIDS = 8
Sizes = dict[str, int]
Condition = SizeGuard | SizeMask


@dataclass(frozen=True)
class SizePaths:
    """The sizes of one run for each path, and what is known of the whole space.

    `followed` of `total` joint sizes take one of the paths. `points` are sizes to compare at, small ones first: one of
    each path (the first `paths` of them), then others at which a decision turns, and those that tables name; where not
    all was followed, those near the numbers in the code. `steps` are the instructions of the user's code in the first
    run. `astray`: a run with numbers takes others, and no trace with symbols shows what the module computes at all
    sizes. `choices` are the lines that take the smallest or largest of several sizes, which a run with symbols does not
    decide. `turns_in_code`: code takes another way at some sizes, whoever wrote it. `named` are the sizes that keys in
    the code name. `in_text`: a size is put into a text, of which torch.export makes the text of a symbol, without a
    guard. `numbers` are the lines that make a plain number of a size, and those beyond which no run came.
    """

    points: tuple[Sizes, ...] = ()
    paths: int = 0
    followed: int = 0
    total: int = 0
    lines: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    obstacle: str = ""
    steps: Mapping[Step, int] = field(default_factory=dict)
    astray: bool = False
    choices: tuple[Frame, ...] = ()
    turns_in_code: bool = False
    named: tuple[Sizes, ...] = ()
    in_text: bool = False
    numbers: tuple[Frame, ...] = ()

    @property
    def decides(self) -> bool:
        """False where only operators take a size for a case of their own, which exporters know."""
        unseen = self.tables or self.obstacle or self.astray or self.choices
        return self.turns_in_code or bool(unseen)

    def coverage(self, tried: int) -> SizeCoverage:
        """The coverage when `tried` joint sizes were compared, the first of `points` among them."""
        obstacle = self.obstacle
        if tried < min(self.paths, self.total):
            obstacle = "; ".join(filter(None, (obstacle, "the time ran out before each path was compared")))
        return SizeCoverage(tried, self.total, self.paths, self.followed, self.lines, self.tables, obstacle)


@dataclass
class _Search:
    """What one exploration has come to so far."""

    runner: ModuleRunner
    specs: Sequence[TensorSpec]
    space: ShapeSpace
    base: Sizes
    effort: Effort
    waiting: list[Sizes] = field(default_factory=list)
    # What each guard is, by its expression and answer; None for one that holds at all joint sizes.
    conditions: dict[Any, Condition | None] = field(default_factory=dict)
    # For each path the decisions that do not hold everywhere.
    regions: list[tuple[Condition, ...]] = field(default_factory=list)
    points: dict[tuple[tuple[str, int], ...], Sizes] = field(default_factory=dict)
    lines: dict[Frame, None] = field(default_factory=dict)
    tables: dict[Frame, None] = field(default_factory=dict)
    obstacles: dict[str, None] = field(default_factory=dict)
    choices: dict[Frame, None] = field(default_factory=dict)
    turns_in_code: bool = False
    named: dict[tuple[tuple[str, int], ...], Sizes] = field(default_factory=dict)
    in_text: bool = False
    numbers: dict[Frame, None] = field(default_factory=dict)
    steps: StepsTaken = field(default_factory=StepsTaken)
    names: NamedSizes = field(default_factory=NamedSizes)
    runs: int = 0

    @property
    def spent(self) -> bool:
        return self.runs >= MOST_RUNS or self.effort.spent


def explore_sizes(
    runner: ModuleRunner,
    specs: Sequence[TensorSpec],
    space: ShapeSpace,
    starts: Sequence[Sizes],
    base: Path,
    seconds: float = SECONDS,
) -> SizePaths:
    """Follow the module's decisions by size over the whole space, for at most about `seconds`."""
    load_dynamo()
    search = _Search(runner, specs, space, dict(starts[0]), Effort(seconds, LEAST_CALLS))
    search.waiting += [dict(s) for s in starts]
    followed = 0
    while search.waiting:
        _follow_waiting(search)
        followed, missing = _sort_sizes(search)
        search.waiting += missing
        if search.spent or search.tables or search.obstacles:
            break
    if search.waiting and search.spent:
        search.obstacles[OUT_OF_TIME if search.effort.spent else TOO_MANY_PATHS] = None
    points = _ordered(search)
    if search.obstacles:
        points += tuple(s for s in sizes_near(search.steps.numbers, space, search.base) if s not in points)
    return SizePaths(
        points,
        len(search.regions),
        followed,
        count_sizes(space),
        tuple(format_frame(f, base) for f in search.lines),
        tuple(format_frame(f, base) for f in search.tables),
        "; ".join(search.obstacles),
        search.steps,
        choices=tuple(search.choices),
        turns_in_code=search.turns_in_code,
        named=tuple(search.named.values()),
        in_text=search.in_text,
        numbers=tuple(search.numbers),
    )


def _ordered(search: _Search) -> tuple[Sizes, ...]:
    """One point of each path, then the others; small ones first."""
    points = sorted(search.points.values(), key=lambda sizes: math.prod(sizes.values()))
    first = {}
    for region in search.regions:
        chosen = next((p for p in points if _takes(region, p)), None)
        if chosen is not None:
            first[tuple(chosen.items())] = chosen
    return (*first.values(), *(p for p in points if tuple(p.items()) not in first))


def _follow_waiting(search: _Search) -> None:
    while search.waiting and not search.spent:
        sizes = search.waiting.pop(0)
        if any(_takes(region, sizes) for region in search.regions):
            continue
        search.runs += 1
        with ExitStack() as stack:
            if search.runs == 1:
                search.steps = stack.enter_context(steps_taken())
            run = run_symbolic(
                partial(_fresh, search.runner),
                search.runner,
                search.specs,
                search.space,
                sizes,
                search.names,
                search.effort,
            )
        _learn(search, run)


def _fresh(runner: ModuleRunner) -> Any:
    """The module as it is before its first call."""
    with runner.caches.emptied():
        return copy_structure(runner.module)


def _take_named(search: _Search, keys: list[Key], sizes: Sizes) -> None:
    """Take in the sizes that the keys of a table name."""
    for named in sizes_of_keys(keys, search.space, sizes):
        search.points.setdefault(tuple(named.items()), named)
        search.named.setdefault(tuple(named.items()), named)


def _learn(search: _Search, run: SizeRun) -> None:
    """Take in a run: its path, the sizes at which each of its decisions fails, the keys of a table it looked into."""
    sizes = dict(run.sizes)
    search.points.setdefault(tuple(sizes.items()), sizes)
    search.choices.update(dict.fromkeys(run.choices))
    search.in_text |= run.in_text
    open_decisions = []
    for expression, value, line in run.answers:
        key = expression, value
        if key not in search.conditions:
            _take_in(search, guard_of(expression, value, run.symbols, search.names.definitions), sizes)
        condition = search.conditions[key]
        if condition is not None:
            open_decisions.append(condition)
            search.turns_in_code |= expression in run.by_code
            if line is not None:
                search.lines[line] = None
                if type(value) is not bool:
                    search.numbers[line] = None
    _take_named(search, list(run.text_keys), sizes)
    if run.lookup is not None:
        search.tables[run.lookup.tb_frame.f_code.co_filename, run.lookup.tb_lineno] = None
        _take_named(search, table_keys(run.lookup.tb_frame), sizes)
    elif run.obstacle:
        search.obstacles[run.obstacle] = None
        search.numbers.update({run.ended_at: None} if run.ended_at else {})
    else:
        search.regions.append(joined(open_decisions))


def _take_in(search: _Search, guard: SizeGuard, sizes: Mapping[str, int]) -> None:
    """Note what a new guard says of the joint sizes; some at which it fails are run next."""
    conditions = set(search.conditions.values())
    condition = search.conditions[guard.expression, guard.value] = _evaluated(search, guard)
    if condition is not None and condition not in conditions:
        _queue_failing(search, condition, sizes)


def _evaluated(search: _Search, guard: SizeGuard) -> Condition | None:
    """The guard as a mask where that is short; itself where it is long or cannot be evaluated."""
    if not guard.is_of_dims:
        search.obstacles["it decides by a size that is computed from values"] = None
        return guard
    if count_sizes(search.space, guard.names) > MOST_EVALUATED:
        if guard.follows_from_bounds(search.space):
            return None
        search.obstacles["a condition on too many sizes to evaluate it at all of them"] = None
        return guard
    try:
        mask = listed(guard, search.space)
        if mask is not None:
            return None if mask.allowed.all() else mask
        for grids in size_grids(search.space, guard.names):
            if not guard.holds(grids).all():
                return guard
            if search.effort.spent:
                search.obstacles[OUT_OF_TIME] = None
                return guard
    except UnreadableError as error:
        search.obstacles[f"a condition that cannot be evaluated: {error}"[:160]] = None
        return guard
    return None


def _queue_failing(search: _Search, condition: Condition, sizes: Mapping[str, int]) -> None:
    """Run next where a condition fails: at its first, a middle and its last joint sizes."""
    failing: list[Sizes] = []
    try:
        for grids in size_grids(search.space, condition.names):
            failing += sizes_where(~condition.holds(grids), grids, 3)
            if search.effort.spent:
                search.obstacles[OUT_OF_TIME] = None
                break
    except (UnreadableError, KeyError):
        # The obstacle is noted already.
        return
    chosen = failing if len(failing) <= 3 else [failing[0], failing[len(failing) // 2], failing[-1]]
    for part in chosen:
        for others in (sizes, search.base):
            point = {**others, **part}
            search.points.setdefault(tuple(point.items()), point)
            search.waiting.append(point)


def _takes(region: Sequence[Condition], sizes: Mapping[str, int]) -> bool:
    """True when these sizes take the path."""
    import numpy as np

    grids = {n: np.asarray(v, np.int64) for n, v in sizes.items()}
    try:
        return all(bool(d.holds(grids)) for d in region)
    except UnreadableError:
        return False


def _sort_sizes(search: _Search) -> tuple[int, list[Sizes]]:
    """How many joint sizes take one of the paths, and some that take none."""
    import numpy as np

    names = tuple(n for n in search.space if any(n in d.names for r in search.regions for d in r))
    others = count_sizes(search.space) // count_sizes(search.space, names)
    followed, missing, sorting = 0, list[Sizes](), Effort(2.0, LEAST_GRIDS)
    for grids in size_grids(search.space, names):
        shape = np.broadcast_shapes(*(g.shape for g in grids.values())) if grids else ()
        sorting.step()
        covered = np.zeros(shape, bool)
        for region in search.regions:
            inside = np.ones(shape, bool)
            try:
                for decision in region:
                    inside &= decision.holds(grids)
            except UnreadableError:
                continue
            covered |= inside
        followed += int(covered.sum()) * others
        if len(missing) < MOST_RUNS:
            missing += [{**search.base, **part} for part in sizes_where(~covered, grids, 4)]
        if sorting.spent:
            break
    for sizes in missing:
        search.points.setdefault(tuple(sizes.items()), sizes)
    return followed, missing
