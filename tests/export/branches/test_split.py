"""Branches on sizes that fall into three: Ifs side by side where every part runs everywhere, nested where not."""

from types import SimpleNamespace

import numpy as np
import onnx
import pytest

pytest.importorskip("torch")

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.export.branches.joined.cuts import Cut
from trtconv.export.branches.joined.graphs import join
from trtconv.export.branches.split import _runs

THREE = """
class Three(nn.Module):
    def forward(self, x):
        if x.shape[1] < 30:
            return x.mean(1) + 1
        if x.shape[1] < 50:
            return {middle}
        return x.mean(1).relu()


def make():
    return Three().eval()
"""


def traced(space, batch, size, tensor="x:float32[N,T,4]"):
    """A trace of an input at these sizes."""
    specs = (parse_tensor(tensor),)
    return SimpleNamespace(specs=specs, space=space, sizes=(("N", batch), ("T", size)), region=())


def export_three(write_module, export, middle):
    result = export(f"{write_module(THREE.format(middle=middle))}:make", ["x:float32[N,T,4]"], "N=1:2:3 T=11:40:70")
    runner = OnnxRuntimeRunner(result.model)
    graph = onnx.load(result.model).graph
    return graph, lambda size: runner({"x": np.full((2, size, 4), -2, np.float32)})["output"][0, 0]


def test_parts_that_run_at_every_size_stand_side_by_side(write_module, export):
    graph, at = export_three(write_module, export, "x.mean(1) * 3")
    assert [n.op_type for n in graph.node].count("If") == 2
    assert [at(t) for t in (11, 29, 30, 49, 50, 70)] == [-1, -1, -6, -6, 0, 0]


SINKS = """
class Sinks(nn.Module):
    def forward(self, x):
        if x.shape[1] > 12:
            x = x[:, -12:]
        p = torch.arange(x.shape[1], dtype=x.dtype)
        return x * p, p
"""


def test_an_output_that_is_a_constant_on_one_side(write_module, export):
    result = export(f"{write_module(SINKS)}:Sinks", ["x:float32[N,T]"], "N=1:2:3 T=2:12:40")
    runner = OnnxRuntimeRunner(result.model)
    for size in (2, 12, 13, 40):
        outputs = runner({"x": np.ones((2, size), np.float32)})
        np.testing.assert_array_equal(outputs["output_1"], np.arange(min(size, 12)))


PART = """<ir_version: 8, opset_import: ["" : 18]>
part (float[N,T,4] x) => (float[N,U,4] output)
<int64 axis = {{1}}, int64 last = {{49}}, int64[3] to = {{-1,30,4}}, int64[1] ax = {{1}}, int64[1] from = {{0}},
 int64[1] end = {{30}}>
{{ {body} }}"""
CHOICE = """s = Shape(x) n = Gather<axis=0>(s, axis) low = LessOrEqual(n, last)
output = If(low)<then_branch = a () => (float[N,U,4] p) {{ q = Slice(x, from, end, ax) p = Reshape(q, to) }},
else_branch = b () => (float[N,U,4] r) {{ r = Relu(x) }}>"""


def test_a_part_that_fails_outside_of_its_sizes_is_nested(tmp_path):
    """The middle part takes 30 steps, which sizes up to 29 do not have."""
    space = parse_space(["N=2 T=11:40:70"])
    trace = traced(space, 2, 33)
    low, high, both = (tmp_path / f"{n}.onnx" for n in ("low", "high", "both"))
    for path, body in ((low, "output = Neg(x)"), (high, CHOICE.format())):
        model = onnx.parser.parse_model(PART.format(body=body))
        for index, node in enumerate(model.graph.node):
            node.name = f"node_{index}"
        onnx.save(model, path)
    join(low, high, Cut("T", 29), trace, both)
    assert [n.op_type for n in onnx.load(both).graph.node].count("If") == 2
    assert not _runs(both, trace, [])
    join(low, high, Cut("T", 29), trace, both, nested=True)
    assert [n.op_type for n in onnx.load(both).graph.node].count("If") == 1
    assert _runs(both, trace, [])
    runner = OnnxRuntimeRunner(both)
    for size, steps, value in ((11, 11, 2), (29, 29, 2), (30, 30, -2), (49, 30, -2), (50, 50, 0)):
        out = runner({"x": np.full((2, size, 4), -2, np.float32)})["output"]
        assert out.shape == (2, steps, 4)
        assert (out == value).all()


def test_a_part_with_nested_parts_keeps_its_names_apart(tmp_path):
    """An If in a branch has values of its own, which are called like those of the branch once it gets a prefix."""
    trace = traced(parse_space(["N=2 T=11:40:70"]), 2, 33)
    paths = [tmp_path / f"{n}.onnx" for n in ("low", "high", "both", "again")]
    for path, body in zip(paths, ("output = Neg(x)", "output = Relu(x)"), strict=False):
        onnx.save(onnx.parser.parse_model(PART.format(body=body)), path)
    low, high, both, again = paths
    join(low, high, Cut("T", 40), trace, both, nested=True)
    join(low, both, Cut("T", 20), trace, again, nested=True)
    onnx.checker.check_model(onnx.load(again))
    runner = OnnxRuntimeRunner(again)
    for size, value in ((20, 2), (21, 2), (40, 2), (41, 0)):
        assert (runner({"x": np.full((2, size, 4), -2, np.float32)})["output"] == value).all()


def test_an_input_moves_though_a_part_holds_one_size(tmp_path):
    trace = traced(parse_space(["N=2 T=32:32:64%32"]), 2, 32)
    paths = [tmp_path / f"{n}.onnx" for n in ("low", "high", "both")]
    for path, body, size in zip(paths, ("output = Neg(x)", "output = Relu(x)"), (32, 64), strict=False):
        onnx.save(onnx.parser.parse_model(PART.format(body=body).replace("N,T,4", f"N,{size},4")), path)
    join(*paths[:2], Cut("T", 32), trace, paths[2], nested=True)
    assert onnx.load(paths[2]).graph.input[0].type.tensor_type.shape.dim[1].dim_param == "T"
    runner = OnnxRuntimeRunner(paths[2])
    for size, value in ((32, 2), (64, 0)):
        assert (runner({"x": np.full((2, size, 4), -2, np.float32)})["output"] == value).all()


def test_a_weight_and_a_value_of_one_name_stay_apart(tmp_path):
    """The parts of `low` hold two weights `k`, and in `high` a value is called so."""
    trace = traced(parse_space(["N=2 T=11:40:70"]), 2, 33)
    paths = [tmp_path / f"{n}.onnx" for n in ("first", "second", "low", "high", "whole")]
    weight = PART.replace("<int64 axis", "<float k = {{{k}}}, int64 axis")
    for path, body in zip(paths[:2], ("5.0", "7.0"), strict=True):
        onnx.save(onnx.parser.parse_model(weight.format(k=body, body="output = Add(x, k)")), path)
    high = onnx.parser.parse_model(PART.format(body="k = Neg(x) output = Relu(k)"))
    high.graph.node[0].name = "negative"
    onnx.save(high, paths[3])
    join(paths[0], paths[1], Cut("T", 20), trace, paths[2], nested=True)
    join(paths[2], paths[3], Cut("T", 40), trace, paths[4], nested=True)
    runner = OnnxRuntimeRunner(paths[4])
    for size, value in ((20, 3), (21, 5), (40, 5), (41, 2)):
        assert (runner({"x": np.full((2, size, 4), -2, np.float32)})["output"] == value).all()


def test_weights_of_one_name_stay_apart(tmp_path):
    """A part that was joined itself holds `high/k` already, in whatever order."""
    trace = traced(parse_space(["N=2 T=11:40:70"]), 2, 33)
    parts = [tmp_path / f"{k}.onnx" for k in (1, 2, 3)]
    for path in parts:
        model = onnx.parser.parse_model(PART.format(body="output = Mul(x, k)"))
        model.graph.initializer.append(onnx.helper.make_tensor("k", 1, [], [float(path.stem)]))
        onnx.save(model, path)
    join(parts[1], parts[2], Cut("T", 40), trace, tmp_path / "both.onnx", nested=True)
    both = onnx.load(tmp_path / "both.onnx")
    both.graph.initializer.sort(key=lambda t: t.name)
    onnx.save(both, tmp_path / "both.onnx")
    join(parts[0], tmp_path / "both.onnx", Cut("T", 20), trace, tmp_path / "all.onnx", nested=True)
    runner = OnnxRuntimeRunner(tmp_path / "all.onnx")
    for size, value in ((20, 1), (40, 2), (41, 3)):
        assert (runner({"x": np.ones((2, size, 4), np.float32)})["output"] == value).all()


def test_a_joined_model_is_run_where_both_cuts_turn(tmp_path):
    """It fails at the one pair at which neither dim alone shows it."""
    space = parse_space(["N=2:3:9 T=11:40:70"])
    trace = traced(space, 3, 33)
    body = """n = Shape<start=0, end=2>(x) k = Constant<value_ints=[7, 29]>() e = Equal(n, k) i = Cast<to=7>(e)
m = ReduceSum<keepdims=0>(i) two = Constant<value_int=2>() all = Equal(m, two) low = Less(m, two)
p = If(low) <then_branch = a () => (float[N,U,4] q) { q = Neg(x) },
else_branch = b () => (float[N,U,4] r) { s = Constant<value_ints=[5, 5]>() r = Reshape(x, s) }>
output = If(all) <then_branch = c () => (float[N,U,4] t) { t = Neg(p) },
else_branch = d () => (float[N,U,4] u) { u = Relu(p) }>"""
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(PART.format(body=body)), path)
    assert _runs(path, trace, [{"N": 7}])
    assert not _runs(path, trace, [{"N": 7}, {"T": 29}])


LARGER = """
class Larger(nn.Module):
    def forward(self, x):
        return x.mean((2, 3)) * (2.0 if max(x.shape[2], x.shape[3]) > 64 else 0.5)
"""


def test_a_branch_on_the_larger_of_two_sizes(write_module, export):
    result = export(f"{write_module(LARGER)}:Larger", ["x:float32[1,3,H,W]"], "H=20:32:100 W=20:40:100")
    runner = OnnxRuntimeRunner(result.model)
    for h, w in ((20, 20), (64, 64), (65, 20), (20, 65), (100, 100)):
        expected = 2.0 if max(h, w) > 64 else 0.5
        assert runner({"x": np.ones((1, 3, h, w), np.float32)})["output"] == pytest.approx(expected)


TWO_SIZES = """
class TwoSizes(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[1] <= 32 else x + 1
"""


@pytest.mark.slow
def test_a_dim_of_two_sizes_with_a_way_for_each(write_module, export):
    result = export(f"{write_module(TWO_SIZES)}:TwoSizes", ["x:float32[N,T]"], "N=1:2:3 T=32:32:64%32")
    runner = OnnxRuntimeRunner(result.model)
    assert not any(d.dim_value for d in onnx.load(result.model).graph.output[0].type.tensor_type.shape.dim)
    for size, expected in ((32, 6.0), (64, 4.0)):
        assert (runner({"x": np.full((2, size), 3, np.float32)})["output"] == expected).all()


WINDOWS = """
class Windows(nn.Module):
    def forward(self, x):
        n, c, h, w = x.shape
        windows = x.reshape(n, 2, 3, h // 4, 4, w // 2, 2).permute(0, 3, 5, 1, 4, 6, 2).flatten(1, 2)
        return windows, F.pixel_shuffle(F.channel_shuffle(F.pixel_unshuffle(x, 2), 3), 2)
"""


@pytest.mark.parametrize(
    ("tensor", "dims", "sizes"),
    [
        ("x:float32[2,6,H,12]", "H=4:8:12%4", 3),
        pytest.param("x:float32[N,6,H,W]", "N=1:1:3 H=4:8:24%4 W=4:12:24%4", 108, marks=pytest.mark.slow),
    ],
)
def test_one_window_is_a_case_of_torchs_alone(write_module, export, tensor, dims, sizes):
    result = export(f"{write_module(WINDOWS)}:Windows", [tensor], dims)
    assert result.sizes.tried == result.sizes.total == sizes


TWO_LENGTHS = """
class Longer(nn.Module):
    def forward(self, x, y):
        if y.shape[1] > x.shape[1]:
            return y.mean(1)
        return x.mean(1) * 2


class Cached(nn.Module):
    def forward(self, x, y):
        joined = torch.cat([y, x], 1)
        if joined.shape[1] <= 7:
            return joined.sum(1)
        return joined[:, :2].sum(1)
"""


@pytest.mark.parametrize("name", [pytest.param("Longer", marks=pytest.mark.slow), "Cached"])
def test_a_condition_on_two_sizes_of_unlike_ranges(write_module, export, name):
    """torch states bounds of one size that follow from it, for sizes of more than one."""
    path = write_module(TWO_LENGTHS)
    result = export(f"{path}:{name}", ["x:float32[N,T,4]", "y:float32[N,S,4]"], "N=1:2:3 T=1:5:9 S=1:7:12")
    assert any("joined by an If" in note for note in result.notes)
    assert result.sizes.complete


SHIFTED = """
class Net(nn.Module):
    def forward(self, x):
        n, h, w = x.shape
        shift = 0 if min(h, w) <= 4 else 2
        y = x.roll((-shift, -shift), (1, 2)).view(n, h // 4, 4, w // 4, 4)
        return y.softmax(2).reshape(n, h, w).roll((shift, shift), (1, 2))
"""


@pytest.mark.slow
def test_a_part_of_a_side_is_traced_within_the_side(write_module, export):
    """Of windows of 4, one is a case of its own: sizes with H or W of 4 are cut once more, and have no third part."""
    result = export(f"{write_module(SHIFTED)}:Net", ["x:float32[1,H,W]"], "H=4:8:12%4 W=4:8:12%4")
    assert any("where min(W, H) > 4" in note for note in result.notes)
    assert result.sizes.complete


CROP = """
class Crop(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        c = 16
        if c > w or c > h:
            m, n = max(0, c - w), max(0, c - h)
            x = nn.functional.pad(x, [m // 2, (m + 1) // 2, n // 2, (n + 1) // 2])
            h, w = x.shape[-2:]
            if c == w and c == h:
                return x
        top, left = int(round((h - c) / 2.0)), int(round((w - c) / 2.0))
        return x[..., top : top + c, left : left + c]
"""


@pytest.mark.slow
def test_a_case_at_the_end_of_a_part_is_a_part_of_its_own(write_module, export):
    """torchvision's centre crop: of 16 rows or more, those of 16 are not cut."""
    result = export(f"{write_module(CROP)}:Crop", ["x:float32[N,2,H,W]"], "N=1:2:2 H=1:20:40 W=1:20:40")
    graph = onnx.load(result.model).graph
    assert [d.dim_value for d in graph.output[0].type.tensor_type.shape.dim[1:]] == [2, 16, 16]
    runner = OnnxRuntimeRunner(result.model)
    for h, w in ((1, 1), (16, 16), (15, 17), (16, 3), (17, 40), (40, 9), (23, 23)):
        rows = np.arange(2 * h * w, dtype=np.float32).reshape(1, 2, h, w) + 1
        output = runner({"x": rows})["output"]
        assert output.shape == (1, 2, 16, 16)
        top, left = round(max(0, h - 16) / 2), round(max(0, w - 16) / 2)
        inner = rows[..., top : top + 16, left : left + 16]
        assert output.sum() == inner.sum()
