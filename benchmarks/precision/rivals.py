"""nvidia-modelopt's INT8 graphs of the digits networks as TensorRT 8.6 takes them, for `gpu_run`: KIT SITE [KIND ...]

KIT and SITE are those of `modelopt_side`. Their quantiser starts from the graph that trtconv rewrote for 8.6 and brings
it to opset 19, in which axes of a reduction are inputs; 8.6 reads them as attributes of opset 17. Nothing else changes.
"""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
from onnx import helper, numpy_helper

from benchmarks.precision.cases import CASES, Case
from benchmarks.precision.modelopt_side import calibration_rows, quantise_theirs

OPSET, IR_VERSION = 17, 8
REDUCTIONS = ("ReduceMax", "ReduceMean", "ReduceMin")


def lower_opset(path: Path) -> None:
    """The file with its reductions as opset 17 has them, in place."""
    model = onnx.load(str(path))
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    constants |= {
        n.output[0]: numpy_helper.to_array(n.attribute[0].t) for n in model.graph.node if n.op_type == "Constant"
    }
    for node in model.graph.node:
        if node.op_type in REDUCTIONS and len(node.input) > 1:
            node.attribute.append(helper.make_attribute("axes", [int(a) for a in constants[node.input[1]]]))
            del node.input[1:]
    for opset in model.opset_import:
        if not opset.domain:
            opset.version = OPSET
    model.ir_version = IR_VERSION
    onnx.checker.check_model(model)
    onnx.save(model, str(path))


def prepare(case: Case, folder: Path, site: Path) -> None:
    """`modelopt.onnx` beside the files of `gpu_prepare`, calibrated with the samples that trtconv has."""
    lower_opset(
        quantise_theirs(folder, calibration_rows(case, folder), site, model="fp32.onnx", high_precision_dtype="fp32")
    )


if __name__ == "__main__":
    for kind in sys.argv[3:] or CASES:
        prepare(CASES[kind], Path(sys.argv[1]) / kind, Path(sys.argv[2]))
        print(kind, flush=True)
