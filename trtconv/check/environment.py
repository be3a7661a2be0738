"""With what and on what a check ran."""

from __future__ import annotations

import os
import platform

from trtconv.backends.cuda.driver import probe_cuda


def environment(*, engine: bool = False) -> dict[str, str]:
    """Versions of what took part in a check, and the GPU for an engine."""
    import trtconv

    facts = {
        "trtconv": trtconv.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    state = probe_cuda() if engine else None
    if state is not None and state.gpus:
        gpu = state.gpus[0]
        facts |= {"gpu": gpu.name, "compute capability": gpu.compute_capability, "driver": state.driver}
    if not engine:
        facts["cpu"] = processor()
    return facts


def processor() -> str:
    """The CPU's name and the number of its cores, for latencies that only compare on the same machine."""
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            name = next((line.partition(":")[2].strip() for line in stream if line.startswith("model name")), name)
    except OSError:
        pass
    return f"{name} x {os.cpu_count() or 1}"
