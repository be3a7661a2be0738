"""Building in a process of its own, for a TensorRT that cannot be told to stop (8.6 has no progress monitor).

Ctrl-C then ends that process, and a crash inside the builder becomes an error instead of the end of everything.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from trtconv.backends.protocol import BuiltEngine, EngineSettings
from trtconv.core.errors import TrtconvError
from trtconv.core.progress import Progress, SilentProgress

_TICK_S = 0.2


def build_isolated(family: str, settings: EngineSettings, progress: Progress) -> BuiltEngine:
    """What `TensorRTBackend.build` returns or raises, made in a child process. Ctrl-C kills it and is raised again."""
    with tempfile.TemporaryDirectory(prefix="trtconv-build-") as folder:
        place = Path(folder)
        (place / "settings").write_bytes(pickle.dumps((family, settings)))
        # Kernels are then loaded when they are first tried, which 8.6 itself recommends at every start.
        environment = {
            "CUDA_MODULE_LOADING": "LAZY",
            **os.environ,
            "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        }
        with open(place / "log", "wb") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "trtconv.backends.isolated", folder], env=environment, stdout=log, stderr=log
            )
        _wait(child, progress)
        if child.returncode or not (place / "result").exists():
            words = (place / "log").read_text(errors="replace").strip().splitlines()
            raise TrtconvError(
                f"the builder of {family} ended with {_ending(child.returncode)}", details=words[-8:],
                hint="see `trtconv doctor`; is the driver new enough, is there memory left?",
            )  # fmt: skip
        # Written by our own child a moment ago, in a folder that only this user can write.
        result: BuiltEngine | BaseException = pickle.loads((place / "result").read_bytes())
    if isinstance(result, BaseException):
        raise result
    return result


def _wait(child: subprocess.Popen[bytes], progress: Progress) -> None:
    start = time.monotonic()
    try:
        while child.poll() is None:
            progress.phase(f"building, {time.monotonic() - start:.0f} s")
            time.sleep(_TICK_S)
    except BaseException:
        child.kill()
        child.wait()
        raise


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def main(folder: Path) -> None:
    """The child: build, and write the result or the error."""
    import signal

    from trtconv.backends.tensorrt_backend import TensorRTBackend

    # The parent hears Ctrl-C as well and ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    family, settings = pickle.loads((folder / "settings").read_bytes())
    result: BuiltEngine | TrtconvError
    try:
        result = TensorRTBackend(family).build_here(settings, SilentProgress()).detached()
    except TrtconvError as error:
        result = error
    (folder / "result.part").write_bytes(pickle.dumps(result))
    os.replace(folder / "result.part", folder / "result")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
