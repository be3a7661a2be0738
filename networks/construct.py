"""`python -m networks.construct PACKAGE RESULTS.jsonl NETWORK...`: make networks and run each once, converting none.

The package is imported once, and a child is forked for each network: a construction takes seconds where a conversion
takes minutes, so that an entry that its package no longer takes shows at once. A line per network:
`{"network", "status": "runs" | "fails", "message", "seconds", "parameters", "flat": outputs that are constant}`.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from typing import Any

SECONDS = 150
BYTES = 12 << 30


def construct(name: str) -> dict[str, Any]:
    """Make one network and run it at its usual sizes."""
    from networks.convert import load
    from networks.registry import all_networks
    from trtconv.core.shape_space.space import parse_space
    from trtconv.core.tensors import parse_tensor
    from trtconv.proof.points import SamplePoint, sample_inputs

    network = all_networks()[name]
    started = time.monotonic()
    module = load(name, network)
    point = SamplePoint("once", tuple(parse_space([network.space]).pick("opt").items()))
    outputs = module(sample_inputs([parse_tensor(t) for t in network.inputs], point))
    return {
        "network": name,
        "status": "runs",
        "message": "",
        "seconds": round(time.monotonic() - started, 2),
        "parameters": sum(p.numel() for p in module.module.parameters()),
        "flat": [n for n, v in outputs.items() if v.size and v.min() == v.max()],
    }


def construct_in_child(name: str) -> dict[str, Any]:
    """The same in a forked child, within limits of time and memory."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
        try:
            line = construct(name)
        except Exception as error:
            message = " ".join(str(getattr(error, "message", error)).split())[:500]
            line = {"network": name, "status": "fails", "message": f"{type(error).__name__}: {message}"}
        with os.fdopen(write, "w") as pipe:
            pipe.write(json.dumps(line))
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if text:
        outcome: dict[str, Any] = json.loads(text)
        return outcome
    return {
        "network": name,
        "status": "fails",
        "message": f"the process ended with {os.waitstatus_to_exitcode(status)}",
    }


def main() -> int:
    """Construct the networks that are named, and write a line for each."""
    import torch

    from networks.registry import all_networks
    from networks.torchvision_operators import define_operators

    package, results, names = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    torch.set_num_threads(1)
    library = define_operators()
    for module in getattr(importlib.import_module(f"networks.packages.{package}"), "IMPORTS", ()):
        importlib.import_module(module)
    for name in names or [n for n in all_networks() if n.split("/")[0] == package]:
        line = construct_in_child(name)
        with results.open("a") as out:
            out.write(json.dumps(line) + "\n")
        print(f"{line['status']:6} {line.get('seconds', 0.0):6.1f} s  {name}  {line['message'][:200]}", flush=True)
    del library
    return 0


if __name__ == "__main__":
    sys.exit(main())
