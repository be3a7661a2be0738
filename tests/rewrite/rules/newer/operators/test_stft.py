# ruff: noqa: E501 - the text of a model stands on one line
"""Short-time Fourier transforms."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, runner
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model
from trtconv.rewrite.rules.newer.operators.stft import RULE, fourier_rows

SIZES = ({"N": 2, "T": 64}, {"N": 1, "T": 67}, {"N": 3, "T": 211})
SOUND = {
    "inputs": "float[N,T,1] x",
    "sizes": SIZES,
    "target": "tensorrt==8.6",
    "absent": ("STFT",),
    "ranges": {"x": (-1, 1)},
}


def hann(length):
    """An edit that puts a window `w` of this length into the model."""

    def edit(model):
        window = np.hanning(length + 1)[:-1].astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(window, "w"))

    return edit


def stft(attributes="", inputs="x, s, w, l"):
    return f"y = STFT{attributes}({inputs})"


CASES = [
    Case("window", stft(), constants="int64 s = {8}, int64 l = {16}", edit=hann(16), **SOUND),
    Case("window alone", stft(inputs="x, s, w"), constants="int64 s = {5}", edit=hann(16), **SOUND),
    Case("no window", stft(inputs="x, s, , l"), constants="int64 s = {4}, int64 l = {32}", **SOUND),
    Case("all bins", stft("<onesided=0>"), constants="int64 s = {8}, int64 l = {16}", edit=hann(16), **SOUND),
    Case("a step beyond the frame", stft(), constants="int64 s = {21}, int64 l = {16}", edit=hann(16), **SOUND),
    Case("no power of two", stft(), constants="int64 s = {10}, int64 l = {24}", edit=hann(24), **SOUND),
    Case("an odd length", stft(), constants="int64 s = {7}, int64 l = {15}", edit=hann(15), **SOUND),
    Case("tensorrt==10", stft(), constants="int64 s = {8}, int64 l = {16}", edit=hann(16), **(SOUND | {"target": "tensorrt==10"})),
    Case("complex", stft("<onesided=0>"), constants="int64 s = {8}, int64 l = {16}", edit=hann(16), **(SOUND | {"inputs": "float[N,T,2] x"})),
]  # fmt: skip
NEAR = {k: v for k, v in SOUND.items() if k != "absent"}
NEAR_MISSES = [
    Case("a step of the input", stft(), constants="int64 l = {16}", edit=hann(16), **(NEAR | {"inputs": "float[N,T,1] x, int64 s"}), skip="step"),
    Case("a window of the input", stft(), constants="int64 s = {8}, int64 l = {16}", **(NEAR | {"inputs": "float[N,T,1] x, float[16] w"}), skip="window"),
    Case("double", stft(inputs="x, s, , l"), constants="int64 s = {8}, int64 l = {16}", **(NEAR | {"inputs": "double[N,T,1] x", "outputs": "double[a,b,c,d] y"}), skip="FP32"),
    Case("very long frames", stft(inputs="x, s, , l"), constants="int64 s = {512}, int64 l = {4096}", **NEAR, skip="2048"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    if case.name == "complex" and tuple(map(int, onnxruntime.__version__.split(".")[:2])) < (1, 23):
        pytest.skip("this ONNX Runtime gives infinities for the transform of a complex signal")
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


@pytest.mark.parametrize("length", [15, 16, 400, 1000, 2048])
def test_the_sums_are_those_of_fp64(length):
    case = Case(
        "sums", stft(), constants=f"int64 s = {{{length // 4}}}, int64 l = {{{length}}}", edit=hann(length), **SOUND
    )
    model = model_of(case)
    model.metadata_props.add(key=SPACE_KEY, value="N=1:1:2 T=2050:2050:4100")
    assert apply(model, (RULE,), "tensorrt==8.6").entries
    x = np.random.default_rng(0).standard_normal((2, 4100)).astype(np.float32)
    window = np.hanning(length + 1)[:-1].astype(np.float32)
    frames = np.stack([x[:, i : i + length] for i in range(0, 4100 - length + 1, length // 4)], 1) * window.astype(
        float
    )
    truth = np.fft.rfft(frames)
    actual = runner(model)({"x": x[..., None]})["y"]
    assert actual.shape == (*truth.shape, 2)
    scale = np.sqrt((np.abs(truth) ** 2).mean())
    assert np.abs(actual[..., 0] + 1j * actual[..., 1] - truth).max() < 2e-5 * scale


def test_quarter_turns_are_exact():
    rows = fourier_rows(np.ones(400, np.float32), onesided=True)[:, 0]
    # The first and the middle bin of real samples are real.
    assert not rows[[201, 401]].any()
    assert (rows[100, ::2] == np.tile([1, -1], 100)).all()
    assert not rows[100, 1::2].any()


def test_not_needed_where_the_parser_has_it():
    assert not RULE.needed(parse_target("tensorrt-rtx"))
    assert not RULE.needed(parse_target("tensorrt==11"))


def test_the_convolution_stays_in_fp32_as_the_transform_did(tmp_path):
    case = Case("half", stft(), constants="int64 s = {8}, int64 l = {16}", edit=hann(16), **SOUND)
    path = tmp_path / "model.onnx"
    path.write_bytes(model_of(case).SerializeToString())
    request = RewriteRequest(path, tmp_path / "half.onnx", parse_target("tensorrt==8.6"), precision="fp16")
    model = onnx.load(str(rewrite_model(request, SilentProgress()).model))
    types = {t.name: t.data_type for t in model.graph.initializer}
    (conv,) = [n for n in model.graph.node if n.op_type == "Conv"]
    assert types[conv.input[1]] == onnx.TensorProto.FLOAT
