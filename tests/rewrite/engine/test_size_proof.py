"""A rewrite that computes with sizes is compared at all of them."""

from tests.rewrite.harness import Case, apply, model_of
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.rules.missing.resizing.resize_nearest import RULE as RESIZE_NEAREST


def recorded(space):
    return lambda model: model.metadata_props.add(key=SPACE_KEY, value=space)


def wrong_at(size):
    """Adds the length of the last axis, but nothing at one size."""

    def build(g, node):
        length = g.squeeze(g.size(node.inputs[0], 3), 0)
        right = g.cast(g.logical_not(g.equal(length, g.scalar(size, dtype=7))), 1)
        return g.add(node.inputs[0], g.mul(right, g.cast(length, 1)))

    def find(graph, node):
        if not any(graph.maker(i, "Cast") for i in node.inputs) or node.name != "sum":
            return Skip()
        return Found((node,), lambda g: build(g, node))

    return Rule("wrong", "For a test.", ("Add",), find)


SUM = Case(
    "sum",
    "s = Shape(x) w = Gather(s, three) f = Cast<to=1>(w) y = Add(x, f)",
    "float[1,2,4,W] x",
    constants="int64 three = {3}",
    edit=lambda model: (recorded("W=8:64:1032")(model), setattr(model.graph.node[3], "name", "sum")),
)


def test_one_size_of_a_thousand_is_found():
    model = model_of(SUM)
    record = apply(model, (wrong_at(517),), SUM.target)
    assert not record.entries
    assert "W=517" in record.rejected[0].reason


def test_what_was_covered_stands_in_the_proof():
    model = model_of(SUM)
    record = apply(model, (wrong_at(4000),), SUM.target)
    assert [e.rule for e in record.entries] == ["wrong"]
    assert record.entries[0].proof.sizes == "1,025 of 1,025 joint sizes of W"


def test_a_resize_by_a_scale_is_compared_at_every_pair():
    case = Case(
        "resize",
        'y = Resize<mode="nearest", coordinate_transformation_mode="half_pixel", nearest_mode="round_prefer_ceil">'
        "(x, , scales)",
        "float[1,1,H,W] x",
        constants="float[4] scales = {1.0, 1.0, 1.7, 1.7}",
        target="tensorrt==8.6",
        edit=recorded("H=4:8:12 W=4:8:12"),
    )
    record = apply(model_of(case), (RESIZE_NEAREST,), case.target)
    assert record.entries[0].proof.sizes == "81 of 81 joint sizes of H, W"
