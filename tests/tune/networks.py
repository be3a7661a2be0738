"""A small network with one layer that INT8 cannot take, as an examiner sees it; no torch is needed."""

import numpy as np
import onnx
from onnx import numpy_helper, parser

from trtconv.core.data.samples import Sample, batches
from trtconv.core.data.split import split
from trtconv.core.model.file import signature
from trtconv.core.model.provenance import INPUTS_KEY, MODULE_KEY, SPACE_KEY
from trtconv.core.progress import SilentProgress
from trtconv.core.targets import parse_target
from trtconv.tune.candidates import CandidateModels
from trtconv.tune.measure import Examiner
from trtconv.tune.metrics.registry import METRICS
from trtconv.tune.state import SearchState

RTX = parse_target("tensorrt-rtx")
WIDTH, CLASSES = 32, 16
# One channel behind the scale reaches 3000 times as far as the others, and the next weight takes that back.
OUTLIER = 3000.0
TEXT = """
<ir_version: 9, opset_import: ["": 20]> g (float[N,32] x) => (float[N,16] y) {
 a = MatMul(x, wa) ra = Relu(a) b = MatMul(ra, wb) rb = Relu(b)
 wide = Mul(rb, gain) c = MatMul(wide, wc) rc = Relu(c) y = MatMul(rc, wd)
}
"""


def network():
    rng = np.random.default_rng(0)
    model = parser.parse_model(TEXT)
    gain = np.ones(WIDTH, np.float32)
    gain[5] = OUTLIER
    weights = {n: rng.normal(size=(WIDTH, CLASSES if n == "wd" else WIDTH)) / 6 for n in ("wa", "wb", "wc", "wd")}
    weights["wc"] /= gain[:, None]
    for name, value in {**weights, "gain": gain}.items():
        model.graph.initializer.append(numpy_helper.from_array(value.astype(np.float32), name))
    for node, module in zip(model.graph.node, ("a", "", "b", "", "", "c", "", "head"), strict=True):
        node.name = node.output[0]
        if module:
            node.metadata_props.add(key=MODULE_KEY, value=module)
    model.metadata_props.add(key=SPACE_KEY, value="N=1:8:32")
    model.metadata_props.add(key=INPUTS_KEY, value="x:float32[N,32]")
    return onnx.shape_inference.infer_shapes(model)


def samples(model, count=400):
    """Labels are what FP32 itself says, so that FP32 reaches 1."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(count, WIDTH)).astype(np.float32)
    weight = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    h = np.maximum(np.maximum(x @ weight["wa"], 0) @ weight["wb"], 0) * weight["gain"]
    y = np.maximum(h @ weight["wc"], 0) @ weight["wd"]
    return [Sample({"x": row}, int(label)) for row, label in zip(x, y.argmax(1), strict=True)]


def examiner(path, *, minutes=None, target=RTX, metric="top1"):
    model = network()
    parts = split(samples(model))
    described = signature(model)
    runs = tuple(batches(parts.calibration, described.inputs, described.space))
    models = CandidateModels(model, target, runs, "max", SilentProgress())
    text = {"search": parts.search, "judging": parts.judging}
    state = SearchState(path / "state.json", {"of": "the tests"})
    return Examiner(models, METRICS[metric], text, described.inputs, described.space, state, minutes)
