"""Models and engines for the tests of the gate: exported once, changed as a fault would, built and checked."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
MODULE = HERE / "gate_module.py"
SPACE = ("N=1:2:4", "H=16:32:48%8", "W=16:32:64%8")
FILES_VARIABLE = "TRTCONV_GATE_FILES"
REPORTS = ("json", "junit", "sarif", "html", "markdown")
LEAKY = """
from trtconv.rewrite.engine.rule import Found, Rule


def find(graph, node):
    return Found((node,), lambda g: g.op("LeakyRelu", node.inputs[0]))


RULES = (Rule(name="leaky", why="Keeps the gradient.", ops=("Relu",), find=find, before="Relu", after="LeakyRelu"),)
"""


def line(word: str) -> int:
    """The line of the module that ends in `# line: word`."""
    lines = MODULE.read_text().splitlines()
    return next(i for i, text in enumerate(lines, 1) if text.endswith(f"# line: {word}"))


def call(*words: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command, run in this process."""
    from trtconv.cli.main import run

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run([str(w) for w in words])
            code = 0
        except SystemExit as ended:
            code = int(ended.code or 0)
    return code, out.getvalue(), err.getvalue()


def exported(name: str, folder: Path) -> Path:
    """A folder with model.onnx and its reference: from the folder of FILES_VARIABLE, or made here where torch is."""
    folder_name = os.environ.get(FILES_VARIABLE)
    if folder_name:
        return Path(folder_name) / name
    if find_spec("torch") is None:
        # The Python that TensorRT 8.6 runs in may lack it: the exports are brought along then.
        pytest.skip(f"needs torch, or {FILES_VARIABLE} with what it exported (tests/gpu/gate_module.py)")
    words = ["export", f"{MODULE}:make_{name}", "-o", str(folder / name / "model.onnx")]
    words += ["--input", "images:float32[N,3,H,W]", "--dynamic", *SPACE]
    subprocess.run([sys.executable, "-m", "trtconv", *words], check=True, cwd=ROOT)
    return folder / name


@dataclass(frozen=True)
class Verdict:
    """What a check said: exit code, terminal, JSON report, and the first SARIF result's line (0: it has none)."""

    code: int
    text: str
    report: dict[str, Any]
    line: int
    message: str

    @property
    def errors(self) -> list[str]:
        """Messages of the report's findings of level error."""
        return [f["message"] for f in self.report["findings"] if f["level"] == "error"]


@dataclass(frozen=True)
class Workshop:
    """Builds with one timing cache and writes every verdict's reports into one folder."""

    root: Path
    reports: Path

    def copy_of(self, name: str, source: Path) -> Path:
        """A folder with what was exported, for one fault."""
        folder = self.root / name
        shutil.copytree(source, folder)
        return folder

    def rewrite(self, folder: Path, *options: object) -> Path:
        """`trtconv rewrite` for TensorRT 8.6, which every later version takes too."""
        output = folder / "model.trt.onnx"
        code, _, err = call("rewrite", folder / "model.onnx", "-o", output, "--target", "tensorrt==8.6", *options)
        assert code == 0, err
        return output

    def build(self, folder: Path, *options: object) -> Path:
        """`trtconv build --dynamic`; the engine."""
        code, _, err = self.try_build(folder, *options)
        assert code == 0, err
        return folder / "model.engine"

    def try_build(self, folder: Path, *options: object) -> tuple[int, str, str]:
        """The same, whatever comes out."""
        return call(
            "build", folder / "model.trt.onnx", "-o", folder / "model.engine", "--dynamic", "--backend", "tensorrt",
            "--timing-cache", self.root / "timing.cache", "--no-cache", *options,
        )  # fmt: skip

    def check(self, name: str, engine: Path, *options: object) -> Verdict:
        """`trtconv check` with all reports."""
        folder = self.reports / name
        folder.mkdir(parents=True, exist_ok=True)
        files = {kind: folder / f"report.{kind}" for kind in REPORTS}
        words = [w for kind, path in files.items() for w in (f"--{kind}", path)]
        if FILES_VARIABLE in os.environ:
            # They were exported on another machine, from a copy of the sources that is not here.
            words.append("--no-source-check")
        code, out, err = call("check", engine, *words, *options)
        (folder / "terminal.txt").write_text(out + err)
        sarif = json.loads(files["sarif"].read_text())["runs"][0]["results"]
        return Verdict(
            code,
            out + err,
            json.loads(files["json"].read_text()),
            _line(sarif[0]) if sarif else 0,
            sarif[0]["message"]["text"] if sarif else "",
        )


def _line(result: dict[str, Any]) -> int:
    places = result.get("locations") or [{}]
    location = places[0].get("physicalLocation", {})
    wrong = location and not location["artifactLocation"]["uri"].endswith("tests/gpu/gate_module.py")
    return 0 if wrong else location.get("region", {}).get("startLine", 0)


def change(path: Path, edit: Any) -> None:
    """Load an ONNX file, edit its graph, write it back."""
    model = onnx.load(str(path))
    edit(model.graph)
    onnx.save(model, str(path))


def source_of(node: onnx.NodeProto) -> str:
    """The line that the node is from."""
    return next((p.value for p in node.metadata_props if p.key == "trtconv.source"), "")


def wrong_epsilon(graph: onnx.GraphProto) -> None:
    """0.05 where the module has 1e-10."""
    add = next(n for n in graph.node if n.op_type == "Add" and source_of(n).endswith(f":{line('epsilon')}"))
    graph.initializer.append(numpy_helper.from_array(np.array(0.05, np.float32), "wrong_epsilon"))
    add.input[1] = "wrong_epsilon"


def baked_size(graph: onnx.GraphProto) -> None:
    """The traced size of the flattened axis as a constant in the Reshape."""
    reshape = next(n for n in graph.node if n.output[0] == graph.output[0].name)
    assert reshape.op_type == "Reshape"
    graph.initializer.append(numpy_helper.from_array(np.array([0, 0, 16 * 16], np.int64), "baked"))
    reshape.input[1] = "baked"


def baked_crop(graph: onnx.GraphProto) -> None:
    """The traced width as the end of a Slice before the Reshape."""
    reshape = next(n for n in graph.node if n.output[0] == graph.output[0].name)
    for name, value in (("from", 0), ("to", 200), ("axis", 2)):
        graph.initializer.append(numpy_helper.from_array(np.array([value], np.int64), f"crop_{name}"))
    cropped = helper.make_node("Slice", ["whole", "crop_from", "crop_to", "crop_axis"], [reshape.output[0]], "crop")
    cropped.metadata_props.extend(reshape.metadata_props)
    reshape.output[0] = "whole"
    graph.node.append(cropped)


def slower(graph: onnx.GraphProto, times: int = 8) -> None:
    """The same function with convolutions by the identity behind each Relu."""
    channels = 16
    eye = np.zeros((channels, channels, 3, 3), np.float32)
    eye[range(channels), range(channels), 1, 1] = 1.0
    graph.initializer.append(numpy_helper.from_array(eye, "eye"))
    nodes = []
    for node in list(graph.node):
        nodes.append(node)
        if node.op_type == "Relu":
            last, final = f"{node.output[0]}_eye0", node.output[0]
            node.output[0] = last
            for index in range(1, times + 1):
                out = final if index == times else f"{final}_eye{index}"
                nodes.append(helper.make_node("Conv", [last, "eye"], [out], f"{node.name}_eye{index}", pads=[1] * 4))
                last = out
    del graph.node[:]
    graph.node.extend(nodes)
