"""`python -m tests.adversary [--json FILE] --all | --file STEM | NAME ...`: the campaign, or some of its attacks."""

from __future__ import annotations

import argparse
import collections
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

from tests.adversary.attack import GraphAttack, ModuleAttack
from tests.adversary.catalogue import load_graphs, load_modules
from tests.adversary.convert import Outcome, run
from tests.adversary.rewriting import run_graph


def main() -> int:
    """Run, print a line for each, and the counts; 1 when one ended in something else than it should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--all", action="store_true", help="all attacks, which takes half an hour and more")
    parser.add_argument("--file", default="", help="the attacks of one file")
    parser.add_argument("--sizes", type=int, default=6, help="how many odd sizes the judge looks at in modules")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if not (options.all or options.file or options.names):
        parser.error("name some attacks, or --file STEM, or --all")
    warnings.simplefilter("ignore")
    entries = [*load_graphs().values(), *load_modules().values()]
    chosen = [e for e in entries if e.name in (options.names or [e.name]) and e.file.endswith(options.file)]
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    unexpected = []
    for entry, outcome in _run_all(chosen, options.sizes):
        counts[entry.file.rpartition(".")[2]][outcome.result] += 1
        expected = outcome.result == entry.outcome and entry.says in outcome.says
        unexpected += [] if expected else [outcome.name]
        mark = "" if expected else f"  <-- {entry.outcome} {entry.says}"
        print(f"{outcome.result:<8} {outcome.seconds:5.1f}s {outcome.name}{mark}  {outcome.says}", flush=True)
    total = sum(counts.values(), collections.Counter())
    print(dict(total), "unexpected:", unexpected)
    if options.json:
        summary = {"attacks": len(chosen), "outcomes": total, "by file": counts, "unexpected": unexpected}
        options.json.write_text(json.dumps(summary, indent=1, sort_keys=True) + "\n")
    return 1 if unexpected else 0


def _run_all(
    entries: list[ModuleAttack | GraphAttack], sizes: int
) -> Iterator[tuple[ModuleAttack | GraphAttack, Outcome]]:
    for entry in entries:
        with tempfile.TemporaryDirectory() as folder:
            try:
                module = isinstance(entry, ModuleAttack)
                outcome = run(entry, Path(folder), sizes) if module else run_graph(entry, Path(folder))
            except Exception as error:
                outcome = Outcome(entry.name, "TRACEBACK", f"{type(error).__name__}: {error}"[:500], 0.0)
        yield entry, outcome


if __name__ == "__main__":
    sys.exit(main())
