"""What `--plugins auto` decides by: trtconv/plugins/measurements.json, made of results in benchmarks/results.

    python -m benchmarks plugins.measurements [RESULTS.json ...]      default: plugins_engines*.json there

plugins_engines*.json are of `plugins/engines.py table`: engines with the plugin and with TensorRT's native layers,
measured in one run on one machine. Where a row has no engine with the plugin, the time of its kernel alone stands in,
and the measurement says so. A row without both times is left out. Of a case that was measured twice an engine wins over
a kernel, then the newer date.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.plugins.shapes import CASES

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "trtconv" / "plugins" / "measurements.json"
OP_TYPES = {
    "attention": "TrtconvAttention",
    "l2norm": "TrtconvL2Norm",
    "instance_norm": "TrtconvInstanceNorm",
    "reflection_pad": "TrtconvReflectionPad",
    "adaptive_pool": "TrtconvAdaptivePool",
    "depthwise_conv": "TrtconvDepthwiseConv",
    "depthwise_conv_layer_norm": "TrtconvDepthwiseConvLayerNorm",
}


def measurements(files: list[Path]) -> list[dict[str, Any]]:
    """The rows of all files, sorted by plugin, TensorRT, type and bytes. Raises ValueError for an unknown case."""
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for path in files:
        data = json.loads(path.read_text())
        for row in data["rows"]:
            result = measurement(row, data, path.name)
            if result is not None:
                key = (result["op_type"], result["dtype"], row["case"], result["gpu"], result["tensorrt"])
                if key not in rows or _weight(rows[key]) <= _weight(result):
                    rows[key] = result
    order = ("op_type", "tensorrt", "dtype", "bytes", "gpu")
    return sorted(rows.values(), key=lambda m: [m[k] for k in order])


def measurement(row: dict[str, Any], data: dict[str, Any], source: str) -> dict[str, Any] | None:
    """One row as `trtconv.plugins.measured.Measurement` has it; None without a time of plugin or native form."""
    engines = row["engines"]
    plugin, native = (engines.get(form, {}).get("ms") for form in ("plugin", "native"))
    form = "kernel" if plugin is None else "engine"
    plugin = row.get("kernel_ms") if plugin is None else plugin
    if plugin is None or native is None:
        return None
    case = next((c for c in CASES if c.name == row["case"]), None)
    if case is None:
        raise ValueError(f"{source}: no case of plugins/shapes.py is called {row['case']}")
    return {
        "op_type": OP_TYPES[case.op],
        "dtype": row["dtype"],
        "shape": list(case.shape),
        "bytes": int(row["bytes"]),
        "plugin_ms": round(float(plugin), 6),
        "native_ms": round(float(native), 6),
        "plugin_form": form,
        "gpu": data["gpu"],
        "tensorrt": data["tensorrt"],
        "date": data["date"],
        "source": source,
    }


def _weight(result: dict[str, Any]) -> tuple[bool, str]:
    return result["plugin_form"] == "engine", result["date"]


def text_of(files: list[Path]) -> str:
    """The whole file: one measurement on a line."""
    lines = ",\n".join("  " + json.dumps(m) for m in measurements(files))
    return f'{{"measurements": [\n{lines}\n]}}\n' if lines else '{"measurements": []}\n'


def default_files() -> list[Path]:
    """The results that are committed."""
    return sorted((ROOT / "benchmarks" / "results").glob("plugins_engines*.json"))


def main() -> None:
    files = [Path(w) for w in sys.argv[1:]] or default_files()
    OUTPUT.write_text(text_of(files))
    print(f"{OUTPUT}: {len(measurements(files))} measurements of {', '.join(p.name for p in files) or 'no file'}")


if __name__ == "__main__":
    main()
