"""What a builder's lines become: the error's kind, the node, the line of the PyTorch code."""

from pathlib import Path

import pytest

from tests.backends.onnx_models import refused_net
from trtconv.backends.protocol import Capabilities, NodeProblem
from trtconv.backends.tensorrt.builder.problems import build_failure, named_nodes, unparsed, unsupported_error
from trtconv.backends.tensorrt.messages import Messages
from trtconv.core.errors import TrtconvError, UnsupportedError
from trtconv.core.model.file import load_model

EIGHT = Capabilities("tensorrt", "8.6.0", 8, True, True, False)


@pytest.fixture
def model(tmp_path):
    return load_model(refused_net(tmp_path / "m.onnx"))


@pytest.mark.parametrize(
    ("line", "kind", "words"),
    [
        (
            "10: Could not find any implementation for node {ForeignNode[det0...unique0]}.",
            UnsupportedError,
            "net.py:31",
        ),
        ("unique0: (NON_ZERO) has no runners that implement it", UnsupportedError, "net.py:44"),
        ("2: [virtualMemoryBuffer.cpp] OutOfMemory (no further information)", TrtconvError, "--workspace"),
        ("[defaultAllocator.cpp] cudaMalloc failed: out of memory for det0", TrtconvError, "--workspace"),
        ("2: Internal Error (Assertion failed. )", TrtconvError, "-v"),
        ("Error Code 4: kOPT values for profile 0 of det0 are not self-consistent", TrtconvError, "net.py:31"),
    ],
)
def test_lines_of_a_failed_build(model, line, kind, words):
    error = build_failure((line,), model, Path("m.onnx"), EIGHT)
    assert type(error) is kind
    assert words in " ".join([error.message, error.hint or "", error.where or "", *error.details])


def test_a_build_that_says_nothing(model):
    words = "2: [graphOptimizer.cpp] Internal Error (Assertion residual->extent == output->extent failed. )"
    assert "resize-like-summand" in build_failure((words,), model, Path("m.onnx"), EIGHT).hint
    assert "gave no reason" in build_failure((), model, Path("m.onnx"), EIGHT).details[0]


def test_a_range_with_sizes_at_which_the_graph_is_undefined(model):
    line = "Error Code 4: Internal Error (kOPT values for profile 0 violate shape constraints: det0: 33 != 32)"
    error = build_failure((line,), model, Path("m.onnx"), EIGHT)
    assert "--align" in error.hint


def test_a_loop_with_a_slice_that_moves(model):
    line = (
        "[graphScope.cpp::makeScopeNodesContiguous::812] Error Code 2: Internal Error (Assertion newNodeOrder.size() "
        "== g.nodes.size() failed. In makeScopeNodesContiguous at /_src/optimizer/common/graphScope.cpp:812)"
    )
    error = build_failure((line,), model, Path("m.onnx"), EIGHT)
    assert "rows one by one" in error.hint


def test_libraries_that_a_plugin_makes_8_6_load(model):
    line = (
        "3: [libLoader.cpp::untypedSymbolAddress::364] Error Code 3: Internal Error (SymbolAddress for "
        "cublasGetProperty could not be loaded, check function name against library symbol)"
    )
    error = build_failure((line,), model, Path("m.onnx"), EIGHT)
    assert "tactic_sources=" in error.hint
    assert "cublasGetProperty" in error.details[0]


def test_a_node_whose_size_the_data_decide_is_told_with_the_way_out(model):
    for op, words in (("NonZero", "trtconv help data-dependent-sizes"), ("Conv", "trtconv rules")):
        error = unsupported_error([NodeProblem("plugin creator not found", "n0", op)], model, Path("m.onnx"), EIGHT)
        assert words in (error.hint or "")


def test_roi_align_left_for_a_library_that_no_wheel_has_is_told_with_the_way_out(model):
    line = "ModelImporter.cpp: Unable to open library: libnvinfer_vc_plugin.so.8 due to: cannot open shared object file"
    for error in (
        unparsed((line,), Path("m.onnx"), EIGHT),
        unsupported_error([NodeProblem(line, "n0", "RoiAlign")], model, Path("m.onnx"), EIGHT),
    ):
        assert "no wheel" in (error.hint or "")
        assert line in error.details[0]
    assert unparsed((), Path("m.onnx"), EIGHT).details == ("the parser gave no reason",)


def test_names_are_whole_words(model):
    assert [p.node for p in named_nodes("relu0 + [ONNX Layer: det0]", model)] == ["relu0", "det0"]
    assert not named_nodes("relu01 and xdet0", model)


def test_many_nodes_are_cut(model):
    error = unsupported_error([NodeProblem("no", f"n{i}", "Op") for i in range(60)], model, Path("m.onnx"), EIGHT)
    assert "60 nodes" in error.message
    assert error.details[-1] == "and 20 more"


def test_noise_is_left_out_and_lines_are_told_once():
    messages = Messages()
    for level, text in (
        ("error", "bad"),
        ("error", "bad"),
        ("error", "Thread context has not been set!"),
        ("warning", "hm"),
        ("info", "fine"),
    ):
        messages.add(level, text)
    assert messages.errors == ("bad",)
    assert messages.warnings == ("hm",)
