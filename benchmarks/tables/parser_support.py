"""Ask an installed TensorRT's ONNX parser for every operator: tables/parser_support.py BACKEND JSON

BACKEND is `tensorrt-rtx` (runs anywhere) or `tensorrt` (needs a GPU). Two questions: does the parser have an importer
(`supports_operator`), and does it take each node test of the ONNX project (shipped in the onnx wheel)? Each test is
parsed as it is, with its inputs as network inputs, and once more with the inputs that its test data gives as constants,
since many importers want a shape or a scalar to be one. Work is done in child processes: a parser that ends the process
costs one test. `benchmarks/tables/support_tables.py` makes check/support/*.json from the result.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

ROOT = Path(__file__).parents[2]
# Inputs with up to so many elements become constants in the second question: sizes, axes, scales, a random seed.
SMALL = 64
LIMIT_S = 500.0


def node_tests() -> list[tuple[str, onnx.ModelProto, list[np.ndarray | None]]]:
    """Name, model and the first set of inputs of every node test; None for an input that is no tensor."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = load_model_tests(kind="node")
    return [(t.name, t.model or onnx.load(str(Path(t.model_dir) / "model.onnx")), _inputs(t)) for t in tests]


def _inputs(test: object) -> list[np.ndarray | None]:
    held = getattr(test, "data_sets", None)
    if held:
        return [_array(v) for v in held[0][0]]
    folder = Path(str(getattr(test, "model_dir", ""))) / "test_data_set_0"
    rows: list[np.ndarray | None] = []
    for index in range(len(list(folder.glob("input_*.pb")))):
        tensor = onnx.TensorProto()
        try:
            tensor.ParseFromString((folder / f"input_{index}.pb").read_bytes())
            rows.append(_array(tensor))
        except Exception:
            rows.append(None)
    return rows


def _array(value: object) -> np.ndarray | None:
    try:
        array = numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value
    except Exception:
        return None
    return array if isinstance(array, (np.ndarray, np.generic)) else None


def frozen(model: onnx.ModelProto, inputs: list[np.ndarray | None]) -> onnx.ModelProto | None:
    """The model with its small inputs after the first as constants; None when there are none."""
    overridable = onnx.ModelProto()
    overridable.CopyFrom(model)
    small = [
        (v.name, a)
        for v, a in list(zip(model.graph.input, inputs, strict=False))[1:]
        if a is not None and np.asarray(a).size <= SMALL and np.asarray(a).dtype.kind in "iufb"
    ]
    if not small:
        return None
    names = {n for n, _ in small}
    rest = [v for v in overridable.graph.input if v.name not in names]
    del overridable.graph.input[:]
    overridable.graph.input.extend(rest)
    try:
        overridable.graph.initializer.extend(numpy_helper.from_array(np.asarray(a), n) for n, a in small)
    except ValueError:
        return None
    return overridable


class OneBuilder:
    """A TensorRT module that makes its builder once: 8.6 takes a second or more for each."""

    def __init__(self, trt: object) -> None:
        self._trt, self._builder = trt, None

    def __getattr__(self, name: str) -> object:
        return getattr(self._trt, name)

    def Builder(self, logger: object) -> object:
        """The one builder."""
        self._builder = self._builder or self._trt.Builder(logger)
        return self._builder


def child(backend: str, folder: Path) -> None:
    """Answer question after question in files, so that what was answered is kept when the process ends."""
    from trtconv.backends.tensorrt.backend import TensorRTBackend, ask_parser
    from trtconv.backends.tensorrt.messages import logger_of

    chosen = TensorRTBackend(backend)
    capabilities = chosen.capabilities()
    trt = OneBuilder(chosen._trt)
    if capabilities.needs_gpu_to_build:
        from trtconv.backends.cuda.context import PrimaryContext
        from trtconv.backends.cuda.driver import require_cuda

        # For the life of this process, which does nothing else.
        PrimaryContext(require_cuda("asking the parser").index).scope.__enter__()
    for path in sorted(folder.glob("*.onnx"), key=lambda p: (p.suffixes[0] != ".as_is", p.name)):
        answer = path.with_suffix(".json")
        if answer.exists() or path.with_suffix(".begun").exists():
            continue
        path.with_suffix(".begun").touch()
        with logger_of(trt).collect():
            try:
                problems = ask_parser(trt, capabilities, onnx.load(str(path)), path)
                words = "; ".join(p.message for p in problems)
                answer_row = {"taken": False, "message": words[:160]} if problems else {"taken": True}
            except Exception as error:
                answer_row = {"taken": False, "message": f"{type(error).__name__}: {error}"[:160]}
        answer.write_text(json.dumps(answer_row))


def importers(backend: str) -> tuple[dict[str, bool], str]:
    """`supports_operator` for every operator of ONNX's own domain, and the version."""
    from trtconv.backends.tensorrt.backend import TensorRTBackend
    from trtconv.backends.tensorrt.builder.network import create_network
    from trtconv.backends.tensorrt.messages import logger_of

    chosen = TensorRTBackend(backend)
    capabilities = chosen.capabilities()
    trt, logger = chosen._trt, logger_of(chosen._trt)
    _builder, network = create_network(trt, capabilities, logger)
    parser = trt.OnnxParser(network, logger)
    ops = sorted({s.name for s in onnx.defs.get_all_schemas_with_history() if s.domain == ""})
    return {op: bool(parser.supports_operator(op)) for op in ops}, capabilities.version


def ask_all(backend: str, models: dict[str, onnx.ModelProto], limit_s: float) -> dict[str, dict[str, object]]:
    """An answer for each model; a process that ended says so in the answer of the model it was at."""
    with tempfile.TemporaryDirectory(prefix="parser-support-") as name:
        folder = Path(name)
        for key, model in models.items():
            (folder / f"{key}.onnx").write_bytes(model.SerializeToString())
        end = time.monotonic() + limit_s
        while time.monotonic() < end and len(list(folder.glob("*.json"))) < len(models):
            words = [sys.executable, "-m", __spec__.name, "child", backend, name]
            try:
                process = subprocess.run(
                    words, capture_output=True, timeout=max(1.0, end - time.monotonic()), check=False
                )
            except subprocess.TimeoutExpired:
                break
            begun = [p for p in folder.glob("*.begun") if not p.with_suffix(".json").exists()]
            for path in begun:
                said = {"taken": False, "message": f"the parser ended the process with code {process.returncode}"}
                path.with_suffix(".json").write_text(json.dumps(said))
            if not begun and process.returncode:
                raise SystemExit(process.stderr.decode(errors="replace")[-600:])
        return {k: json.loads((folder / f"{k}.json").read_text()) for k in models if (folder / f"{k}.json").exists()}


def main(backend: str, output: Path) -> None:
    supported, number = importers(backend)
    models: dict[str, onnx.ModelProto] = {}
    ops: dict[str, list[str]] = {}
    for name, model, inputs in node_tests():
        domains = {n.domain for n in model.graph.node}
        if domains - {"", "ai.onnx"} or model.functions:
            continue
        ops[name] = sorted({n.op_type for n in model.graph.node})
        models[f"{name}.as_is"] = model
        fixed = frozen(model, inputs)
        if fixed is not None:
            models[f"{name}.fixed"] = fixed
    answers = ask_all(backend, models, LIMIT_S)
    tests = {}
    for name, used in ops.items():
        opset = next(o.version for o in models[f"{name}.as_is"].opset_import if o.domain in ("", "ai.onnx"))
        own_answers = {k: answers[f"{name}.{k}"] for k in ("as_is", "fixed") if f"{name}.{k}" in answers}
        tests[name] = {"ops": used, "opset": opset, **own_answers}
    facts = {
        "date": time.strftime("%Y-%m-%d"),
        "command": f"python -m benchmarks tables.parser_support {backend} JSON",
        "parser": f"{backend} {number}",
        "onnx": version("onnx"),
        "python": platform.python_version(),
    }
    lines = ",\n".join(f"  {json.dumps(n)}: {json.dumps(t)}" for n, t in tests.items())
    head = "".join(f" {json.dumps(k)}: {json.dumps(v)},\n" for k, v in {**facts, "importers": supported}.items())
    output.write_text("{\n" + head + ' "tests": {\n' + lines + "\n }\n}\n")
    accepted = sum(any(t.get(k, {}).get("taken") for k in ("as_is", "fixed")) for t in tests.values())
    print(f"{facts['parser']}: {sum(supported.values())} importers, {accepted} of {len(tests)} node tests taken")


if __name__ == "__main__":
    if sys.argv[1] == "child":
        child(sys.argv[2], Path(sys.argv[3]))
    else:
        main(sys.argv[1], Path(sys.argv[2]))
