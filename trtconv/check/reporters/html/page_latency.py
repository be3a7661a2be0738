"""How long it takes, for the page: percentiles beside torch and ONNX Runtime, the earlier engine, earlier baselines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trtconv.check.gate.measured import LATENCY
from trtconv.check.reporters.html.svg_latency import history_picture, range_picture, strip_picture
from trtconv.core.artifacts import beside, read_json
from trtconv.core.errors import TrtconvError
from trtconv.core.files.digest import sha256_file
from trtconv.core.report import CheckReport

BENCH_SUFFIX = ".bench.json"
# As the page calls them, and as `trtconv bench` does.
PERCENTILES = (("p50", "median"), ("p90", "p90"), ("p99", "p99"))


def latency_facts(report: CheckReport) -> dict[str, Any]:
    """`tables` (one per point), `in_turn` and `history`; empty where nothing was measured."""
    facts = {
        "tables": list(_tables(read_bench(Path(report.subject)))),
        "in_turn": list(_in_turn(report.extras.get("in_turn", {}))),
        "history": list(_histories(report)),
    }
    return facts if any(facts.values()) else {}


def read_bench(subject: Path) -> Mapping[str, Any]:
    """The report of `trtconv bench` beside the subject; empty where there is none, or it is of another file."""
    path = beside(subject, BENCH_SUFFIX)
    try:
        data = read_json(path) if path.is_file() else {}
        same = subject.is_file() and data.get("subject_sha256") == sha256_file(subject)
    except (TrtconvError, OSError):
        return {}
    return data if same and isinstance(data.get("latencies"), list) else {}


def _tables(bench: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A row for each way of running; ratios are of the first one, which is the subject."""
    latencies: Sequence[Mapping[str, Any]] = bench.get("latencies", ())
    for point in dict.fromkeys(entry["point"] for entry in latencies):
        entries = [entry for entry in latencies if entry["point"] == point]
        own, longest = entries[0]["host"]["median"], max(entry["host"]["p99"] for entry in entries)
        yield {
            "point": point,
            "rows": [
                {
                    "what": entry["subject"],
                    **{name: _ms(entry["host"][key]) for name, key in PERCENTILES},
                    "device": _ms(entry["device"]["median"]),
                    "ratio": f"{entry['host']['median'] / own:.2f}",
                    "picture": range_picture(*(entry["host"][k] / longest for k in ("least", "median", "p90", "p99"))),
                }
                for entry in entries
            ],
        }


def _in_turn(facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for point in facts.get("points", ()):
        yield {
            **point,
            "processes": facts["processes"],
            "baseline": Path(facts["baseline"]).name,
            "picture": strip_picture({"earlier": point["old"], "this": point["new"]}),
        }


def _histories(report: CheckReport) -> Iterator[dict[str, Any]]:
    """The medians of the kept baselines at each point that this check measured too, this one last."""
    baselines: Sequence[Mapping[str, Any]] = report.extras.get("history", ())
    for name, now in report.extras.get("measured", {}).items():
        if not name.startswith(LATENCY):
            continue
        earlier = [(str(e["when"]), float(e["measured"][name])) for e in baselines if name in e["measured"]]
        if earlier:
            series = [*earlier, ("now", float(now["value"]))]
            yield {
                "point": name.removeprefix(LATENCY),
                "picture": history_picture(series),
                "count": len(earlier),
                "rows": [(when, f"{value:.3g} ms") for when, value in series],
            }


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g}"
