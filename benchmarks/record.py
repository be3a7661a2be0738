"""The record of a measurement: what it was made with, and the JSON file that keeps it."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # unpacked by hand, as TensorRT without its libraries' packages is
        try:
            return str(import_module(package).__version__)
        except ImportError:
            return ""


def machine(*packages: str) -> dict[str, Any]:
    """Date, GPU and driver if any, the versions of `packages` that are installed here, and the running command."""
    from trtconv.backends.cuda.driver import probe_cuda

    state = probe_cuda()
    record: dict[str, Any] = {"date": time.strftime("%Y-%m-%d")}
    if state.gpus:
        record |= {"gpu": state.gpus[0].name, "cuda_driver": state.driver}
    for package in packages:
        if text := _version(package):
            record[package] = text
    # Folders are those of the machine that measured: only their last part says anything.
    script = Path(sys.argv[0])
    words = [f"{script.parent.name}.{script.stem}", *(Path(w).name for w in sys.argv[1:])]
    return {**record, "command": shlex.join(["python", "-m", "benchmarks", *words])}


def write_result(path: Path, data: Mapping[str, Any]) -> None:
    """Write one result; a benchmark that is stopped half-way leaves the previous state of the file."""
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text(json.dumps(data, indent=1) + "\n")
    temporary.replace(path)
