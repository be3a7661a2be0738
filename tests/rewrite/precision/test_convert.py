"""Typing a graph as FP16 or BF16: right to the last rounding, valid, typed as TensorRT wants it, and repeatable.

Numbers come from ONNX Runtime with half precision emulated, since its own half graphs on a CPU neither round nor
overflow between two nodes. TensorRT-RTX parses and builds the same graphs: its strongly typed network is the judge of
the types.
"""

from __future__ import annotations

import importlib.util
import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from tests.rewrite import precision_cases as cases
from tests.rewrite.harness import all_nodes
from tests.rewrite.precision_cases import NETS, Net, error, f32, i64, normal, run
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import InvalidRequestError
from trtconv.core.requests import BuildRequest
from trtconv.core.shape_space.space import DimRange, ShapeSpace
from trtconv.rewrite.precision import BLOCK_OPS, convert_precision

HALF = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
# Relative to the largest magnitude: a few roundings of 11 bits, or of 8.
TOLERANCE = {"fp16": 2e-3, "bf16": 2e-2}


def convertible(net: Net, precision: str) -> bool:
    return precision == "fp16" or net.opset >= 13


MATRIX = [pytest.param(n, p, id=f"{n}-{p}") for n in NETS for p in HALF if convertible(n, p)]


@pytest.mark.parametrize(("net", "precision"), MATRIX)
def test_computes_the_same(net, precision):
    model = net.model()
    typed = convert_precision(model, precision).model
    expected, actual = run(model, net.feed), run(typed, net.feed)
    for name, want in expected.items():
        assert actual[name].dtype == want.dtype
        if want.dtype.kind == "f":
            assert error(want, actual[name]) < TOLERANCE[precision], name
        else:
            assert np.array_equal(want, actual[name])


@pytest.mark.parametrize(("net", "precision"), MATRIX)
def test_is_valid_kept_and_repeatable(net, precision):
    model = net.model()
    model.metadata_props.add(key="trtconv.space", value="N=1:2:4")
    for node in model.graph.node:
        node.metadata_props.add(key="trtconv.module", value=f"layer.{node.name}")
    before = model.SerializeToString(deterministic=True)
    typed = convert_precision(model, precision).model
    assert model.SerializeToString(deterministic=True) == before, "the given model was changed"
    onnx.checker.check_model(typed, full_check=True)
    assert list(typed.graph.input) == list(model.graph.input)
    assert list(typed.graph.output) == list(model.graph.output)
    assert list(typed.metadata_props) == list(model.metadata_props)
    assert all(any(p.key == "trtconv.module" for p in n.metadata_props) for n in typed.graph.node)
    names = [n.name for n in all_nodes(typed.graph) if n.name]
    assert len(names) == len(set(names))
    again = convert_precision(net.model(), precision).model
    del again.metadata_props[:], typed.metadata_props[:]
    for node in all_nodes(typed.graph):
        rest = [p for p in node.metadata_props if p.key != "trtconv.module"]
        del node.metadata_props[:]
        node.metadata_props.extend(rest)
    assert again.SerializeToString(deterministic=True) == typed.SerializeToString(deterministic=True)


@pytest.mark.parametrize("net", NETS, ids=str)
def test_onnxruntime_takes_the_fp16_graph_as_it_is(net):
    typed = convert_precision(net.model(), "fp16").model
    for optimize in (False, True):
        outputs = OnnxRuntimeRunner(typed.SerializeToString(), optimize=optimize, threads=1)(net.feed)
        assert all(not np.isnan(v).any() for v in outputs.values())


@pytest.mark.skipif(importlib.util.find_spec("tensorrt_rtx") is None, reason="needs the package tensorrt-rtx-cu13")
@pytest.mark.parametrize(("net", "precision"), MATRIX)
def test_tensorrt_rtx_builds_it(net, precision, tmp_path):
    from trtconv.backends.tensorrt.manifest import read_engine_manifest
    from trtconv.build import build_engine

    typed = convert_precision(net.model(), precision)
    if not typed.nodes[precision]:
        pytest.skip("nothing of it is half precision")
    path = tmp_path / "model.onnx"
    onnx.save(typed.model, str(path))
    sizes = ShapeSpace(tuple((d, DimRange(2, 5, 9)) for d in _dims(typed.model)))
    result = build_engine(
        BuildRequest(path, tmp_path / "m.engine", dynamic=sizes, backend="tensorrt-rtx", precision=precision)
    )
    types = read_engine_manifest(result.engine).types
    assert types[{"fp16": "float16", "bf16": "bfloat16"}[precision]] > 0


def _dims(model: onnx.ModelProto) -> tuple[str, ...]:
    dims = {d.dim_param: None for v in model.graph.input for d in v.type.tensor_type.shape.dim if d.dim_param}
    return tuple(dims)


def test_l2norm_keeps_its_zero_pixel_and_its_large_values():
    """In half arithmetic 512 channels of size 30 overflow and the epsilon of 1e-10 is zero: NaN at the zero pixel."""
    net = cases.L2NORM
    typed = convert_precision(net.model(), "fp16")
    assert not np.isnan(run(typed.model, net.feed)["y"]).any()
    assert typed.kinds().keys() == {"range", "epsilon"}
    everything_half = convert_precision(_without_guards(net.model()), "fp16", block_ops=frozenset()).model
    naive = run(everything_half, net.feed)["y"]
    assert not np.isfinite(naive).all() or error(run(net.model(), net.feed)["y"], naive) > 0.1


def _without_guards(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same norm without its epsilon, which would keep it in FP32 by itself."""
    for tensor in model.graph.initializer:
        if tensor.name == "eps":
            tensor.CopyFrom(numpy_helper.from_array(f32(0), "eps"))
    return model


def test_rounding_is_emulated_and_not_skipped():
    """The emulation must show what ONNX Runtime's own half graph hides."""
    net = Net("square", "float[2] x", "float[2] y", "a = Mul(x, x)\n y = Sqrt(a)", {"x": f32([300, 2])})
    typed = convert_precision(net.model(), "fp16").model
    assert np.isinf(run(typed, net.feed)["y"][0])
    assert run(typed, net.feed)["y"][1] == 2


def test_masks_stay_masks_where_everything_is_masked():
    """-3.4e38 plus a score is -3.4e38 for every score: a row that is masked everywhere is uniform, and stays so."""
    net = cases.ATTENTION
    typed = convert_precision(net.model(), "fp16")
    assert "overflow" in typed.kinds()
    assert error(run(net.model(), net.feed)["y"][1], run(typed.model, net.feed)["y"][1]) < 2e-3


def test_thresholds_are_not_rounded_and_maxima_are_still_found():
    """`x > 0.3` next to 0.3 keeps its answer; `x == max` compares halves with halves, else it would never hold."""
    x = f32([[0.30001, 0.29999, 0.3, 5.0001], [0.29995, 0.30005, 2.0001, -1]])
    net = Net(
        "decisions",
        "float[2,4] x",
        "bool[2,4] above, bool[2,4] top, float[2,4] y",
        "above = Greater(x, limit)\n m = ReduceMax<axes=[-1]>(x)\n top = Equal(x, m)\n f = Floor(x)\n y = Sub(x, f)",
        {"x": x},
        {"limit": f32(0.3)},
    )
    typed = convert_precision(net.model(), "fp16")
    assert [(k.op, k.kind) for k in typed.fp32_nodes] == [("Greater", "decisions"), ("Floor", "decisions")]
    actual = run(typed.model, net.feed)
    assert np.array_equal(actual["above"], x > np.float32(0.3))
    assert actual["top"].sum() == 2


def test_positions_stay_inside():
    """Clipped to 30.999 and rounded down, then one more: in FP16 30.999 is 31, and 32 is out of bounds."""
    net = Net(
        "positions",
        "float[32] x, float[5] at",
        "float[5] y",
        """
        t = Tanh(at)
        s = Mul(t, size)
        c = Clip(s, zero, last)
        f = Floor(c)
        w = Sub(c, f)
        i = Cast<to=7>(f)
        j = Add(i, one)
        a = Gather(x, i)
        b = Gather(x, j)
        d = Sub(b, a)
        m = Mul(d, w)
        y = Add(a, m)
        """,
        {"x": normal(32), "at": f32([-1, 0.5, 0.9, 3, 9])},
        {"size": f32(31), "zero": f32(0), "last": f32(30.999), "one": i64(1)},
    )
    typed = convert_precision(net.model(), "fp16")
    assert {k.op for k in typed.fp32_nodes} >= {"Tanh", "Mul", "Clip", "Floor", "Sub"}
    assert error(run(net.model(), net.feed)["y"], run(typed.model, net.feed)["y"]) < 2e-3


def test_a_residual_stream_is_not_drawn_into_fp32():
    """TopK reads the end of a stream of sums; only what belongs to it may be FP32."""
    body = "".join(f" c{i} = Relu(h{i})\n g{i} = MatMul(c{i}, w)\n h{i + 1} = Add(h{i}, g{i})\n" for i in range(6))
    net = Net(
        "stream",
        "float[2,8] x",
        "float[2,3] v, float[2,8] y",
        f"h0 = MatMul(x, w)\n{body} v, i = TopK(h6, k)\n y = MatMul(h6, w)",
        {"x": normal(2, 8)},
        {"w": normal(8, 8, scale=0.3), "k": i64([3])},
    )
    assert [k.op for k in convert_precision(net.model(), "fp16").fp32_nodes] == ["TopK"]


def test_sums_that_run_on_are_subtracted_in_fp32():
    """A box filter by running sums: differences of large numbers, through slices."""
    net = Net(
        "box", "float[1,400] x", "float[1,390] y",
        """
        c = CumSum(x, axis)
        late = Slice(c, ten, end, one)
        early = Slice(c, zero, minus_ten, one)
        d = Sub(late, early)
        y = Relu(d)
        """,
        {"x": np.abs(normal(1, 400, scale=10))},
        {"axis": i64(1), "ten": i64([10]), "end": i64([400]), "zero": i64([0]), "minus_ten": i64([-10]),
         "one": i64([1])},
    )  # fmt: skip
    typed = convert_precision(net.model(), "fp16").model
    assert error(run(net.model(), net.feed)["y"], run(typed, net.feed)["y"]) < 1e-3


def test_asked_for_and_blocked():
    net = cases.EINSUM
    assert convert_precision(net.model(), "fp16", block_ops=BLOCK_OPS | {"Einsum"}).nodes["fp32"] == 1
    remainder = convert_precision(net.model(), "fp16", keep_nodes=["n0_Einsum"])
    assert [(k.node, k.kind) for k in remainder.fp32_nodes] == [("n0_Einsum", "asked")]
    with pytest.raises(InvalidRequestError, match="Did you mean 'n0_Einsum'"):
        convert_precision(net.model(), "fp16", keep_nodes=["n0_einsum"])


def test_bad_requests():
    model = cases.CONV.model()
    with pytest.raises(InvalidRequestError, match="int8"):
        convert_precision(model, "int8")
    model.graph.initializer[0].data_location = TensorProto.EXTERNAL
    with pytest.raises(InvalidRequestError, match="on disk"):
        convert_precision(model, "fp16")
    unsorted = cases.CONV.model()
    nodes = list(unsorted.graph.node)
    del unsorted.graph.node[:]
    unsorted.graph.node.extend(reversed(nodes))
    with pytest.raises(InvalidRequestError, match="no node before it makes"):
        convert_precision(unsorted, "fp16")
    with pytest.raises(InvalidRequestError, match="nothing in FP32"):
        convert_precision(Net("i", "int64[2] x", "int64[2] y", "y = Neg(x)", {}).model(), "fp16")
    with pytest.raises(InvalidRequestError, match="BF16 needs a graph of opset 22"):
        convert_precision(cases.OLD_CLIP.model(), "bf16")
    norm = Net("gn", "float[1,4,3] x", "float[1,4,3] y", "y = GroupNormalization<num_groups=2>(x, s, s)", {},
               {"s": f32([1, 1])}, opset=18)  # fmt: skip
    with pytest.raises(InvalidRequestError, match="before opset 21"):
        convert_precision(norm.model(), "bf16")


@pytest.mark.slow
def test_linear_in_the_number_of_nodes():
    def seconds(count: int) -> float:
        body = "a0 = MatMul(x, w)\n" + "\n".join(
            f" b{i} = Mul(a{i}, s)\n c{i} = Exp(b{i})\n a{i + 1} = Add(c{i}, a{i})" for i in range(count)
        )
        net = Net("chain", "float[2,4] x", "float[2,4] y", f"{body}\n y = Relu(a{count})", {},
                  {"w": normal(4, 4), "s": f32(0.1)})  # fmt: skip
        model = net.model()
        start = time.process_time()
        convert_precision(model, "fp16")
        return time.process_time() - start

    seconds(10)
    # The least of three: the collector walks through what other tests of the process left.
    small, large = (min(seconds(count) for _ in range(3)) for count in (300, 3000))
    assert large < 30 * max(small, 0.02)
