"""Ifs inside Ifs, named with what decides them."""

import onnx

from tests.foreign.models import conv_net, rate_net
from trtconv.backends.protocol import Capabilities
from trtconv.backends.tensorrt.builder.nested_ifs import fixing_hint, nested_error, nested_ifs
from trtconv.backends.tensorrt.builder.problems import build_failure, named_nodes
from trtconv.core.errors import UnsupportedError

RTX = Capabilities("tensorrt-rtx", "1.7", 11, False, False, False)
LINES = ("[graphScope.cpp::analyze::471] Assertion tScope.getType() != ScopeType::kUNDEFINED failed.",)


def test_the_error_names_both_and_what_to_add(tmp_path):
    path = rate_net(tmp_path / "m.onnx")
    model = onnx.load(path)
    assert [(n.outer, n.inner) for n in nested_ifs(model)] == [("outer", "inner")]
    error = build_failure(LINES, model, path, RTX)
    assert isinstance(error, UnsupportedError)
    assert "the If 'inner' inside the If 'outer'" in error.message
    assert "add --input 'sr:int64[]=16000:16000'" in error.hint


def test_other_failures_keep_their_words(tmp_path):
    path = conv_net(tmp_path / "m.onnx")
    model = onnx.load(path)
    assert nested_error(model, "tensorrt-rtx 1.7", path) is None
    assert fixing_hint(model) == ""
    assert "graphScope" in build_failure(LINES, model, path, RTX).details[0]


def test_an_operation_of_myelin_is_that_of_the_node_it_is_named_after(tmp_path):
    path = conv_net(tmp_path / "m.onnx")
    model = onnx.load(path)
    node = model.graph.node[0]
    line = f"Myelin (Error during shape inference of y = op(x), scales=(), name={node.name}_resize)"
    assert [p.node for p in named_nodes(line, model)] == [node.name]
    assert named_nodes(line.replace(node.name, f"{node.name}s"), model) == ()
