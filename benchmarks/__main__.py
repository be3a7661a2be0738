"""`python -m benchmarks` lists the benchmarks; `python -m benchmarks speed.cli_start [ARGS]` runs one."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).parent


def list_benchmarks() -> dict[str, str]:
    """Each runnable module, dotted below `benchmarks`, with the first line of its docstring."""
    summaries = {}
    for path in sorted(ROOT.glob("*/*.py")):
        text = path.read_text(encoding="utf-8")
        if 'if __name__ == "__main__":' in text:
            docstring = ast.get_docstring(ast.parse(text)) or ""
            summaries[f"{path.parent.name}.{path.stem}"] = docstring.split("\n")[0]
    return summaries


def main() -> None:
    """List the benchmarks, or run the one that is named with the arguments behind it."""
    benchmarks = list_benchmarks()
    if len(sys.argv) < 2:
        for name, summary in benchmarks.items():
            print(f"{name:28} {summary}")
        return
    if sys.argv[1] not in benchmarks:
        sys.exit(f"no benchmark is called '{sys.argv[1]}'; `python -m benchmarks` lists them")
    del sys.argv[0]
    runpy.run_module(f"benchmarks.{sys.argv[0]}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
