"""Which installed TensorRT does the work."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.errors import InvalidRequestError, MissingDependencyError, did_you_mean

if TYPE_CHECKING:
    from trtconv.backends.protocol import Backend

BACKENDS = ("tensorrt", "tensorrt-rtx")


def choose_backend(name: str = "auto") -> Backend:
    """The backend called `name`.

    `auto` takes `tensorrt` where it is installed and a GPU is present, else `tensorrt-rtx`, which builds without
    one. Raises MissingDependencyError with the install command, InvalidRequestError for an unknown name.
    """
    from trtconv.backends.tensorrt.backend import TensorRTBackend

    if name == "auto":
        return TensorRTBackend(_automatic())
    if name not in BACKENDS:
        raise InvalidRequestError(
            f"no backend is called '{name}'{did_you_mean(name, BACKENDS)}", hint="one of auto, " + ", ".join(BACKENDS)
        )
    return TensorRTBackend(name)


def backend_of(engine: Path) -> Backend:
    """The backend that the plan header of `engine` asks for. Raises as `choose_backend` and `read_plan_header` do."""
    from trtconv.backends.tensorrt.plan_header import read_plan_header

    return choose_backend(read_plan_header(engine).family)


def _automatic() -> str:
    from trtconv.backends.cuda.driver import probe_cuda
    from trtconv.backends.tensorrt.library import INSTALL, MODULES

    installed = [name for name in BACKENDS if find_spec(MODULES[name]) is not None]
    if "tensorrt" in installed and ("tensorrt-rtx" not in installed or probe_cuda().gpus):
        return "tensorrt"
    if "tensorrt-rtx" in installed:
        return "tensorrt-rtx"
    raise MissingDependencyError(
        "neither TensorRT nor TensorRT-RTX is installed",
        hint=f"without a GPU: {INSTALL['tensorrt-rtx']}; with one: {INSTALL['tensorrt']}",
    )
