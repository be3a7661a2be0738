"""The latency of one file in a process of its own: `python -m trtconv.check.gate.one_process`, asked over a pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trtconv.core import errors
from trtconv.core.errors import TrtconvError
from trtconv.core.files.parent_process import end_with_parent, parent_arguments
from trtconv.core.files.python_child import import_path, run_module
from trtconv.core.requests import CheckRequest
from trtconv.core.trust.trust import EngineCode

MODULE = "trtconv.check.gate.one_process"
# In each process; their median is one observation.
REPEATS = 3


def process_medians(request: CheckRequest, points: Sequence[str]) -> Mapping[str, float]:
    """The median in milliseconds at each point, measured in a new process at the inputs of the request's reference.

    Raises what that process raises, and TrtconvError when it dies.
    """
    environment = {**os.environ, "PYTHONPATH": import_path()}
    with subprocess.Popen(
        [*run_module(MODULE), *parent_arguments()],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            out, log = child.communicate(json.dumps(_question(request, points)))
        except BaseException:
            child.kill()
            raise
    lines = out.strip().splitlines()
    if child.returncode or not lines:
        raise TrtconvError(
            f"the process that measured '{request.subject}' ended with code {child.returncode}",
            details=log.strip().splitlines()[-8:],
            hint="`trtconv bench` on that file may tell more",
        )
    answer = json.loads(lines[-1])
    if "error" in answer:
        kind: type[TrtconvError] = getattr(errors, answer["error"], TrtconvError)
        raise kind(answer["message"], hint=answer["hint"])
    return {point: float(value) for point, value in answer["medians"].items()}


def _question(request: CheckRequest, points: Sequence[str]) -> dict[str, Any]:
    return {
        "subject": str(request.subject),
        "reference": str(request.reference) if request.reference else None,
        "plugins": [str(path) for path in request.plugins],
        "foreign": request.foreign,
        "code": [name for name in ("host", "plugins") if getattr(request.code, name)],
        "points": list(points),
    }


def answer_question(question: Mapping[str, Any]) -> dict[str, Any]:
    """What the child answers: the medians, or the error that it met."""
    from trtconv.check.gate.measure import latency_runs
    from trtconv.check.gate.measured import measurement

    request = CheckRequest(
        Path(question["subject"]),
        reference=Path(question["reference"]) if question["reference"] else None,
        plugins=tuple(Path(path) for path in question["plugins"]),
        foreign=question["foreign"],
        code=EngineCode(**dict.fromkeys(question["code"], True)),
    )
    try:
        return {"medians": {p: measurement(latency_runs(request, p, REPEATS)).value for p in question["points"]}}
    except TrtconvError as error:
        return {"error": type(error).__name__, "message": error.message, "hint": error.hint}


def main() -> None:
    """Answer the one question on stdin with one line on stdout."""
    end_with_parent(sys.argv[1:])
    sys.stdout.write(json.dumps(answer_question(json.loads(sys.stdin.read()))) + "\n")


if __name__ == "__main__":
    main()
