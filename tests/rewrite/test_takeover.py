"""`--rewritten`: a precision from an earlier rewrite is, to the byte, what a rewrite of its own writes."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
from onnx import external_data_helper, numpy_helper

from tests.rewrite.harness import Case, model_of
from tests.rewrite.test_room import ask, with_space
from trtconv.core.errors import InvalidRequestError
from trtconv.core.ledger.reading import read_ledger
from trtconv.core.ledger.writing import write_ledger
from trtconv.core.precision import BF16, FP16, FP32, INT8
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.requests.rewrite import FORMS_BY_PRECISION, precision_decides_rules
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model
from trtconv.rewrite.engine.explain import diff_lines, explain_lines
from trtconv.rewrite.rules import RULES

# A norm that is rewritten, and FP64 that has to stay FP32 in a half precision.
MIXED = Case(
    "norm and FP64",
    """q = Pow(x, two) s = ReduceSum(q, axis) n = Sqrt(s) d = Add(n, eps) v = Div(x, d)
       e = Cast<to=11>(v) f = Mul(e, wide) g = Cast<to=1>(f) y = Add(g, x)""",
    "float[N,8,9,W] x",
    constants="int64[1] axis = {1}, float two = {2.0}, float eps = {1e-10}, double wide = {1.25}",
)
TARGET = "tensorrt==8.6"


def made(folder: Path, **options):
    """A rewrite in FP32 of MIXED, and a request for what is to be made from it."""
    model = with_space(model_of(MIXED))
    for node in model.graph.node:
        node.name = node.output[0]
    result = ask(model, folder, target=TARGET, precision=FP32.name, **options)
    request = RewriteRequest(folder / "m.onnx", folder / "typed" / "m.trt.onnx", parse_target(TARGET))
    return replace(request, precision=FP16.name, rewritten=result.model), result


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return made(tmp_path_factory.mktemp("base"))


@pytest.fixture
def copied(base, tmp_path):
    """The same in a folder of the test's own."""
    request, _ = base
    folder = tmp_path / "copied"
    shutil.copytree(request.model.parent, folder)
    return replace(
        request,
        model=folder / "m.onnx",
        rewritten=folder / "m.trt.onnx",
        output=folder / "typed" / "m.trt.onnx",
    )


def rewrite(request):
    return rewrite_model(request, SilentProgress())


def files(result):
    return result.model.read_bytes(), result.ledger.read_bytes()


@pytest.mark.parametrize("precision", [FP16.name, FP32.name])
def test_to_the_byte_what_a_rewrite_of_its_own_writes(base, tmp_path, precision, monkeypatch):
    request, earlier = base
    own = rewrite(replace(request, precision=precision, rewritten=None, output=tmp_path / "m.trt.onnx"))
    monkeypatch.setattr("trtconv.rewrite.room.rewrite_graph", None)
    typed = rewrite(replace(request, precision=precision, output=tmp_path / "typed" / "m.trt.onnx"))
    assert files(typed) == files(own)
    assert explain_lines(typed) == explain_lines(own)
    assert diff_lines(typed) == diff_lines(own)
    assert typed.entries == earlier.entries != ()
    ledger = json.loads(typed.ledger.read_text())
    assert ledger["whole_graph"]["passed"] is True
    assert ledger["float64_nodes"] == ["f"]
    if precision == FP16.name:
        assert any("stay fp32 (1 asked" in note for note in typed.notes), typed.notes


def test_weights_on_disk(copied):
    model = onnx.load(copied.model)
    for tensor in model.graph.initializer:
        if tensor.name != "wide":
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
            external_data_helper.set_external_data(tensor, "m.data")
    onnx.save(model, copied.model)
    assert (copied.model.parent / "m.data").stat().st_size
    rewrite(replace(copied, output=copied.rewritten, precision=FP32.name, rewritten=None))
    own = files(rewrite(replace(copied, rewritten=None)))
    assert files(rewrite(copied)) == own
    elsewhere = copied.model.parent.parent / "elsewhere"
    shutil.copytree(copied.model.parent, elsewhere)
    assert files(rewrite(replace(copied, rewritten=elsewhere / "m.trt.onnx"))) == own
    weights = bytearray((elsewhere / "m.data").read_bytes())
    weights[0] ^= 1
    (elsewhere / "m.data").write_bytes(weights)
    with pytest.raises(InvalidRequestError, match="other weights"):
        rewrite(replace(copied, rewritten=elsewhere / "m.trt.onnx"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": parse_target("tensorrt==10")}, "it is for tensorrt==8.6"),
        ({"skip": (RULES[0].name,)}, "its skip is"),
        ({"proof": False}, "its proof is True"),
        ({"nms": "topk"}, "its nms is native"),
        ({"rule_files": (Path(__file__),)}, "with other rules"),
        ({"space": parse_space(["N=1:2:7"])}, "other ranges"),
        ({"precision": INT8.name, "data": __file__ + ":made"}, "other rules fire for int8"),
        ({"plugins": "auto"}, "other rules fire for fp16"),
        ({"keep_fp32": ("nobody",)}, "no node is called 'nobody'"),
        ({"rewritten": Path("gone.trt.onnx")}, r"gone\.trt\.onnx"),
    ],
)
def test_what_cannot_be_taken_over_is_refused_and_nothing_is_written(copied, options, message):
    with pytest.raises(InvalidRequestError, match=message):
        rewrite(replace(copied, **options))
    assert not copied.output.exists()


def test_a_node_that_is_to_stay_fp32_is_no_matter_of_the_rules(copied):
    rewrite(replace(copied, keep_fp32=("y",)))
    assert json.loads(copied.output.with_name("m.rewrites.json").read_text())["options"]["keep_fp32"] == ["y"]


def test_what_was_changed_or_typed_already_is_refused(copied):
    rewrite(copied)
    ledger = copied.rewritten.with_name("m.rewrites.json")
    with pytest.raises(InvalidRequestError, match="it is in fp16"):
        rewrite(replace(copied, rewritten=copied.output, output=copied.output.with_name("n.trt.onnx")))
    text = ledger.read_text()
    for field, value, message in (
        ("trtconv", "0.0.1", r"trtconv 0\.0\.1 wrote it"),
        ("sha256", "0" * 64, "it was changed after its ledger"),
        ("read", (), r"another 'm\.onnx'"),
    ):
        write_ledger(ledger, replace(read_ledger(ledger), **{field: value}))
        with pytest.raises(InvalidRequestError, match=message):
            rewrite(copied)
        ledger.write_text(text)
    ledger.write_text(text.replace('"notes"', '"remarks"'))
    with pytest.raises(InvalidRequestError, match="was changed after it was written"):
        rewrite(copied)
    ledger.write_text(text)
    with open(copied.model, "ab") as stream:
        stream.write(b"\x0a\x00")
    with pytest.raises(InvalidRequestError, match=r"another 'm\.onnx'"):
        rewrite(copied)


def test_the_base_is_no_output(copied):
    with pytest.raises(InvalidRequestError):
        rewrite(replace(copied, output=copied.rewritten))
    assert onnx.load(copied.rewritten).graph.node


@pytest.mark.parametrize(
    ("precision", "plugins", "target", "decides"),
    [
        (FP16.name, "never", TARGET, False),
        (BF16.name, "L2Norm", "tensorrt==11", False),
        (FP16.name, "L2Norm, auto", TARGET, True),
        (FP16.name, "auto", "tensorrt-rtx", False),
        (INT8.name, "never", "tensorrt-rtx", True),
        (FP16.name, "TrtconvChannelGate", TARGET, True),
        (FP32.name, "TrtconvChannelGate", TARGET, False),
    ],
)
def test_which_precisions_decide_rules(precision, plugins, target, decides):
    assert precision_decides_rules(precision, plugins, parse_target(target)) is decides


def test_the_plugins_with_forms_by_precision_are_those_of_the_rules():
    assert frozenset(r.plugin for r in RULES if r.plugin and r.precisions) == FORMS_BY_PRECISION
