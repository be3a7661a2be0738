import onnx
import pytest
from onnx import TensorProto, helper

from trtconv.check.target.undefined_sizes import find_undefined_sizes, probe_dims, probe_sizes
from trtconv.core.model.file import save_model, set_metadata
from trtconv.core.model.provenance import SOURCE_KEY, SPACE_KEY
from trtconv.core.progress import SilentProgress
from trtconv.core.shape_space.space import DimRange, parse_range


def probing(defined):
    def probe(sizes):
        return None if defined(**sizes) else f"undefined at {sizes}"

    return probe


@pytest.mark.parametrize("multiple", [2, 3, 8, 12, 32])
def test_the_multiple_is_found(multiple):
    dims = {"H": parse_range(f"{multiple * 3}:{multiple * 8}:{multiple * 20}")}
    (undefined,), notes = probe_dims(probing(lambda H: H % multiple == 0), dims)
    assert undefined.rule == f"it is defined only for multiples of {multiple}"
    assert f"%{multiple}" in undefined.hint
    assert not notes


def test_a_multiple_on_top_of_a_multiple():
    (undefined,), _ = probe_dims(probing(lambda H: H % 32 == 0), {"H": parse_range("32:64:640%8")})
    assert undefined.rule.endswith("multiples of 32")


@pytest.mark.parametrize("least", [17, 100, 33])
def test_the_least_size_is_found(least):
    dims = {"N": parse_range("1:2:4"), "H": parse_range("9:200:500")}
    (undefined,), _ = probe_dims(probing(lambda N, H: least <= H), dims)
    assert undefined.dim == "H"
    assert undefined.rule == f"it is defined from {least} on"


def test_the_largest_size_is_found():
    (undefined,), _ = probe_dims(probing(lambda T: T <= 77), {"T": parse_range("1:16:256")})
    assert undefined.rule == "it is defined up to 77"


def test_two_dims_that_have_to_be_equal():
    dims = {"H": parse_range("8:16:64"), "W": parse_range("8:16:64")}
    undefined, _ = probe_dims(probing(lambda H, W: H == W), dims)
    assert [f.rule for f in undefined] == ["it is defined only where H equals W", "it is defined only where W equals H"]


def test_what_no_rule_explains_is_said_as_it_is():
    (undefined,), _ = probe_dims(probing(lambda H: H not in (9, 12)), {"H": parse_range("8:16:64")})
    assert undefined.rule.startswith("no simple rule")
    assert "9, 12" in undefined.hint


def test_nothing_is_found_where_all_is_defined():
    assert probe_dims(probing(lambda H: True), {"H": parse_range("1:16:640")}) == ((), ())


def test_a_graph_that_fails_everywhere():
    (undefined,), _ = probe_dims(probing(lambda H: False), {"H": parse_range("1:16:640")})
    assert undefined.dim == "every dim"


def test_when_time_is_over_the_rest_is_named():
    undefined, notes = probe_dims(probing(lambda H: True), {"H": parse_range("1:16:640")}, limit_s=-1.0)
    assert not undefined
    assert "were not tried" in notes[0]


@pytest.mark.parametrize("rng", [DimRange(1, 1, 1), DimRange(5, 6, 7), DimRange(32, 320, 1280, 32)])
def test_probed_sizes_are_in_the_range(rng):
    sizes = probe_sizes(rng)
    assert {rng.min, rng.max} <= set(sizes)
    assert all(s in rng for s in sizes)
    assert len(sizes) < 40


def test_a_graph_with_a_baked_reshape_is_named_at_its_line(tmp_path):
    """x [N, T] -> Reshape to [N, -1, 6]: undefined unless 6 divides T."""
    node = helper.make_node("Reshape", ["x", "shape"], ["y"], "window")
    node.metadata_props.add(key=SOURCE_KEY, value="net.py:31")
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "T"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", "P", 6])],
        [helper.make_tensor("shape", TensorProto.INT64, [3], [0, -1, 6])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    set_metadata(model, SPACE_KEY, "N=1:2:4 T=6:12:60")
    onnx.checker.check_model(model)
    save_model(model, tmp_path / "m.onnx")
    (finding,), notes = find_undefined_sizes(tmp_path / "m.onnx", SilentProgress())
    assert not notes
    assert finding.source == "net.py:31"
    assert finding.node == "window"
    assert "multiples of 6" in finding.message
    assert "T=6:12:60%6" in finding.hint
