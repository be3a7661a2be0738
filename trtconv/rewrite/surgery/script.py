"""Running a surgery script: `file.py:function` takes a graph-surgeon graph and changes it, or returns another one."""

from __future__ import annotations

import io
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import onnx_graphsurgeon as gs
from onnx_graphsurgeon.ir.tensor import LazyValues

from trtconv.core.errors import InvalidRequestError, TrtconvError, did_you_mean
from trtconv.core.files.python_file import load_python

HINT = "see `trtconv help run-a-surgery-script`"


@dataclass(frozen=True)
class Script:
    """A function of the user's and the file that it is in; `str` is the name under which the ledger has it."""

    file: Path
    name: str
    function: Callable[[gs.Graph], Any]

    def __str__(self) -> str:
        return f"{self.file.name}:{self.name}"


class OnDisk(LazyValues):  # type: ignore[misc]
    """The values of a tensor whose weights are in a file beside the model and are not read."""

    def load(self) -> Any:
        """Raise TrtconvError: the weights may be larger than the memory."""
        raise TrtconvError(
            f"the values of '{self.tensor.name}' are in a file beside the model, which a rewrite does not read",
            hint="save the model with its weights inside, or leave this tensor as it is",
        )


def load_script(spec: str) -> Script:
    """The script that `file.py:function` names. Raises InvalidRequestError when there is none."""
    path, colon, name = spec.rpartition(":")
    if not colon or not path or not name:
        raise InvalidRequestError(f"--script takes file.py:function, got '{spec}'", hint=HINT)
    module = load_python(Path(path), "surgery script")
    function = getattr(module, name, None)
    if not callable(function):
        names = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise InvalidRequestError(f"'{path}' has no function '{name}'{did_you_mean(name, names)}", hint=HINT)
    return Script(Path(path), name, function)


def round_trip(model: onnx.ModelProto) -> onnx.ModelProto:
    """What graph-surgeon makes of a model that nobody touched. Raises TrtconvError for one that it cannot write."""
    try:
        with redirect_stdout(io.StringIO()):
            return gs.export_onnx(gs.import_onnx(model), do_type_check=False)
    except Exception as error:
        raise TrtconvError(
            f"graph-surgeon cannot read or write this model: {type(error).__name__}: {error}",
            hint="run without --script; rules of your own see every model",
        ) from error


def import_graph(model: onnx.ModelProto) -> gs.Graph:
    """The model as a graph-surgeon graph, which shares the messages of its weights. Nothing is read from disk."""
    # What it warns of is put back afterwards.
    with redirect_stdout(io.StringIO()):
        graph = gs.import_onnx(model)
    for scope in (graph, *graph.subgraphs(recursive=True)):
        for tensor in scope.tensors().values():
            values = getattr(tensor, "_values", None)
            if isinstance(values, LazyValues) and tensor.data_location == onnx.TensorProto.EXTERNAL:
                tensor._values = OnDisk(values.tensor)
    return graph


def run_script(script: Script, graph: gs.Graph) -> gs.Graph:
    """The graph that the script leaves behind: the one it returned, else the one it was given.

    What the script and graph-surgeon print goes to stderr. Raises TrtconvError that names the line at which it failed.
    """
    try:
        with redirect_stdout(sys.stderr):
            result = script.function(graph)
    except TrtconvError as error:
        raise TrtconvError(
            f"the script {script} fails: {error.message}", hint=error.hint, where=_line(script, error)
        ) from error
    except (Exception, SystemExit) as error:
        words = f"the script {script} fails: {type(error).__name__}: {error}"
        raise TrtconvError(words, hint=HINT, where=_line(script, error)) from error
    if result is None:
        return graph
    if not isinstance(result, gs.Graph):
        raise TrtconvError(
            f"the script {script} returned {type(result).__name__}, not a graph-surgeon graph or None",
            hint="change the graph in place, or return a gs.Graph; trtconv exports it",
        )
    return result


def export_graph(script: Script, graph: gs.Graph) -> onnx.ModelProto:
    """The graph as ONNX. Raises TrtconvError when graph-surgeon cannot write what the script left behind."""
    try:
        with redirect_stdout(sys.stderr):
            return gs.export_onnx(graph, do_type_check=False)
    except Exception as error:
        raise TrtconvError(
            f"what the script {script} leaves behind cannot be written as ONNX: {type(error).__name__}: {error}",
            hint=HINT,
        ) from error


def _line(script: Script, error: BaseException) -> str | None:
    """The last line of the script's own file in the error's traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if Path(f.filename).resolve() == script.file.resolve()]
    return f"{script.file}:{own[-1].lineno}" if own else None
