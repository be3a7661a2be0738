"""`python -m tests.zoo.run_zoo`: all cases through the rooms in parallel, a table, and a comparison with the last one.

Exit code 1 when a case is worse than in the committed table, or when one is wrong without an error.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.zoo.run_case import STAGES, Outcome, run_case

FOLDER = Path(__file__).parent
RANK = {"wrong": 0, "crashed": 0, "refused": 1, "through": 2}


def main() -> int:
    """Parse the arguments, run, print and write."""
    arguments = _arguments()
    from tests.zoo.registry import all_cases

    names = [n for n in all_cases() if any(fnmatch.fnmatch(n, p) for p in arguments.cases)]
    stages = STAGES[: STAGES.index(arguments.until) + 1]
    started = time.monotonic()
    outcomes = (
        read_outcomes(arguments.take) if arguments.take else run_all(names, stages, arguments.jobs, arguments.timeout)
    )
    print(summary(outcomes, time.monotonic() - started))
    committed = FOLDER / "results.json"
    worse = compare(outcomes, json.loads(committed.read_text()) if committed.exists() else {"cases": []})
    for line in worse:
        print(f"WORSE {line}")
    if arguments.write:
        write_tables(outcomes, stages, list(all_cases()))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps([o.as_dict() for o in outcomes], indent=1))
    wrong = [o.case for o in outcomes if RANK[o.status] == 0]
    return 1 if worse or wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=["*"], help="patterns like 'norms/*' (default: all)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=int, default=240, help="seconds for one case")
    parser.add_argument("--until", choices=STAGES, default="build", help="the last stage to run")
    parser.add_argument("--write", action="store_true", help="lay the outcomes over the committed tables")
    parser.add_argument("--json", help="also write the outcomes there")
    parser.add_argument("--take", help="read the outcomes from a file that --json wrote; nothing is run")
    return parser.parse_args()


def read_outcomes(path: str) -> list[Outcome]:
    """The outcomes of an earlier run."""
    rows = json.loads(Path(path).read_text())
    return [Outcome(**{**o, "rules": tuple(o["rules"])}) for o in rows]


def run_all(names: list[str], stages: tuple[str, ...], jobs: int, timeout: int) -> list[Outcome]:
    """Run in worker processes that are replaced after some cases, for torch keeps what it traced."""
    context = multiprocessing.get_context("spawn")
    rows: dict[str, Outcome] = {}
    with context.Pool(jobs, initializer=_quiet_worker, initargs=(jobs,), maxtasksperchild=25) as pool:
        work = [(n, stages, timeout) for n in names]
        for outcome in pool.imap_unordered(_guarded, work):
            rows[outcome.case] = outcome
            print(line_of(outcome), flush=True)
    return [rows[n] for n in names]


def _quiet_worker(jobs: int) -> None:
    os.environ["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // jobs))
    import torch

    torch.set_num_threads(max(1, (os.cpu_count() or 1) // jobs))


def _guarded(work: tuple[str, tuple[str, ...], int]) -> Outcome:
    name, stages, timeout = work

    def too_long(*_: Any) -> None:
        raise TimeoutError(f"more than {timeout} s")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(timeout)
    try:
        return run_case(name, stages)
    except BaseException as error:
        return Outcome(name, "crashed", message=f"{type(error).__name__}: {error}"[:600])
    finally:
        signal.alarm(0)


def line_of(o: Outcome) -> str:
    """One line for the terminal."""
    took = sum(o.seconds.values())
    return f"{o.status:8} {o.stage:8} {o.exporter:12} {took:6.1f} s  {o.case}  {','.join(o.rules)} {o.message[:180]}"


def summary(outcomes: list[Outcome], seconds: float) -> str:
    """How many went through."""
    count = {s: sum(o.status == s for o in outcomes) for s in RANK}
    share = 100 * count["through"] / max(1, len(outcomes))
    words = ", ".join(f"{n} {s}" for s, n in count.items())
    return f"{len(outcomes)} cases: {words} ({share:.1f} % through) in {seconds:.0f} s"


def compare(outcomes: list[Outcome], committed: dict[str, Any]) -> list[str]:
    """The cases that the committed table has further along."""
    before = {c["case"]: c for c in committed["cases"]}
    until = committed.get("stages", list(STAGES))[-1]
    worse = []
    for o in outcomes:
        old = before.get(o.case)
        if old and RANK[o.status] < RANK[old["status"]]:
            worse.append(f"{o.case}: {old['status']} (until {until}) -> {o.status}: {o.message}")
    return worse


def write_tables(outcomes: list[Outcome], stages: tuple[str, ...], names: list[str]) -> None:
    """Lay the outcomes over the committed tables, results.json and results.md beside this file.

    `names` are all cases of the zoo, in order: rows of cases that were not run stay, those of cases that are gone go.
    Seconds go to the Markdown table only, so that a run in which nothing changed changes nothing in the JSON.
    """
    table, page = FOLDER / "results.json", FOLDER / "results.md"
    before = json.loads(table.read_text())["cases"] if table.exists() else []
    data = {c["case"]: c for c in before} | {o.case: _without_seconds(o) for o in outcomes}
    cases = [data[n] for n in names if n in data]
    table.write_text(json.dumps({"stages": list(stages), "cases": cases}, indent=1) + "\n")
    lines = page.read_text().splitlines() if page.exists() else []
    rows = {line.split(" | ")[0].strip("| "): line for line in lines if line.startswith("| ") and "/" in line}
    rows |= {o.case: _row(o) for o in outcomes}
    counts = {s: sum(c["status"] == s for c in cases) for s in RANK}
    verdict = f"{counts['through']} of {len(cases)} cases are through, as far as: {', '.join(stages)}. "
    verdict += ", ".join(f"{n} {s}" for s, n in counts.items() if s != "through") + "."
    title = "# The conversion zoo\n\nMade by `make zoo`; the wall seconds are of one run and only tell magnitudes."
    head = "| case | outcome | exporter | rules used | export s | rewrite s | build s | message |\n|" + "---|" * 8
    remainder = "\n".join(rows[n] for n in names if n in rows)
    page.write_text(f"{title}\n\n{verdict}\n\n{head}\n{remainder}\n")


def _without_seconds(o: Outcome) -> dict[str, Any]:
    # As JSON has it, so that a tuple and a list do not differ.
    plain: dict[str, Any] = json.loads(json.dumps({k: v for k, v in o.as_dict().items() if k != "seconds"}))
    return plain


def _row(o: Outcome) -> str:
    took = [f"{o.seconds[s]:.1f}" if s in o.seconds else "" for s in STAGES]
    message = " ".join(o.message.split()).replace("|", "/")[:300]
    return "| " + " | ".join([o.case, o.status, o.exporter, ", ".join(o.rules), *took, message]) + " |"


if __name__ == "__main__":
    sys.exit(main())
