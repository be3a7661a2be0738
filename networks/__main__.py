"""`python -m networks [FILTER...]`: convert the networks whose names match.

What they need is installed into `.venv-networks` (one folder for all), without dependencies: torch is never touched.
Each network is converted in its own process, which is stopped at a limit of time or memory. Outcomes are appended to a
JSONL file; a second run goes on where the first one stopped, `--again` begins anew. `--write` lays the outcomes over
the committed ones. The exit code is 1 when a network is wrong or crashed, or when one of `--quick` is not equal.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import sys
from collections import Counter
from pathlib import Path

from networks.install import SITE, install
from networks.page import write_page
from networks.quick import QUICK
from networks.registry import all_networks, package_names
from networks.run import lay_over, read_outcomes, run_all

ROOT = Path(__file__).parents[1]
RUN, RECORD, PAGE = ROOT / "out" / "networks.jsonl", ROOT / "networks" / "results.jsonl", ROOT / "docs" / "networks.md"


def main() -> int:
    """Parse the arguments, install, convert, and write the table."""
    arguments = _arguments()
    patterns = [p if any(c in p for c in "*?[") else f"*{p}*" for p in arguments.filter] or ["*"]
    names = [n for n in all_networks() if any(fnmatch.fnmatch(n, p) for p in patterns)]
    if arguments.quick:
        names = [n for n in names if n in QUICK]
    if not names:
        print(f"no network matches {' '.join(arguments.filter)}; the packages are {', '.join(package_names())}")
        return 2
    if arguments.list:
        print("\n".join(names))
        return 0
    if not arguments.no_install:
        install(sorted({n.split("/")[0] for n in names}), arguments.site)
    if arguments.only_install:
        return 0
    if arguments.again:
        arguments.results.unlink(missing_ok=True)
    before = read_outcomes(arguments.results)
    run_all([n for n in names if n not in before], arguments)
    outcomes = read_outcomes(arguments.results)
    if arguments.write:
        outcomes = lay_over(outcomes, RECORD, list(all_networks()))
        write_page(outcomes, PAGE)
    chosen = [outcomes[n] for n in names if n in outcomes]
    counts = Counter(o["status"] for o in chosen)
    print(f"{len(chosen)} networks: " + ", ".join(f"{c} {s}" for s, c in counts.most_common()))
    failures = {"wrong", "crashed"} | ({"refused", "stopped", "unavailable"} if arguments.quick else set())
    return 1 if any(s in failures for s in counts) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m networks", description=__doc__.split("\n")[0])
    parser.add_argument("filter", nargs="*", help="parts of names, or patterns like 'timm/*vit*' (default: all)")
    parser.add_argument("--quick", action="store_true", help="only the small part; each has to be equal")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--again", action="store_true", help="begin anew: convert also what an earlier run did")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 1) // 2), help="processes side by side")
    parser.add_argument("--seconds", type=int, default=240, help="the limit for one network")
    parser.add_argument("--memory", type=int, default=8192, help="the limit for one network, in MiB")
    parser.add_argument("--site", type=Path, default=SITE, help="the folder into which packages are installed")
    parser.add_argument("--only-install", action="store_true", help="install the packages and stop")
    parser.add_argument("--no-install", action="store_true", help="take the packages as they are")
    parser.add_argument("--write", action="store_true", help="lay the outcomes over the committed table")
    parser.add_argument("--results", type=Path, default=RUN, help="the JSONL file of this run's outcomes")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
