"""The table of `plugins.engines`: engines with the plugin beside native ones and torch, as ratios."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.record import write_result

TOLERANCE = {"float32": 1e-5, "float16": 2e-3}
COMMANDS = "plugins/engine_models.py; plugins/engines.py build, build-nets, engines, torch, nets, table"


def table(output: Path, engine_file: Path, torch_file: Path, net_file: Path | None) -> None:
    one, other = (json.loads(p.read_text()) for p in (engine_file, torch_file))
    copy = max(one["copy_bytes_per_second"], other["copy_bytes_per_second"])
    rows = []
    for row in one["rows"]:
        pair = next((r for r in other["rows"] if (r["case"], r["dtype"]) == (row["case"], row["dtype"])), {})
        plugin, native = row["engines"]["plugin"], row["engines"]["native"]
        ms, ours = plugin.get("ms"), {**row}
        if ms:
            ours["copy_ratio"] = plugin["bytes"] / (ms * 1e-3) / copy
            ours["native_over_plugin"] = native["ms"] / ms if "ms" in native else None
            ours["compile_graph_over_plugin"] = pair["compile_graph_ms"] / ms if pair else None
        ours |= {k: v for k, v in pair.items() if k not in row}
        ours["within_tolerance"] = plugin.get("relative_error", 1.0) <= TOLERANCE[row["dtype"]]
        rows.append(ours)
        print(
            f"{row['case']} {row['dtype']}: plugin {_ms(ms)} native {_ms(native.get('ms'))} "
            f"torch {_ms(pair.get('compile_graph_ms'))} copy ratio {ours.get('copy_ratio', 0):.3f}"
        )
    machine = {k: v for k, v in {**other, **one}.items() if k not in ("rows", "copy_bytes_per_second")}
    whole = json.loads(net_file.read_text())["rows"] if net_file else []
    record = {**machine, "command": COMMANDS, "copy_bytes_per_second": copy, "rows": rows, "nets": whole}
    write_result(output, record)


def _ms(value: float | None) -> str:
    return "none" if value is None else f"{value:.4f}"
