"""Spaces of multiples, the search for a multiple, padding in NumPy, and how outputs follow padded dims."""

import numpy as np
import pytest

from trtconv.core.errors import InvalidRequestError, TrtconvError
from trtconv.core.shape_space.alignment import aligned_space, covering_space
from trtconv.core.shape_space.crops import cropped_axes
from trtconv.core.shape_space.padding import CroppedAxis, PaddedInput, Padding, padded_inputs, parse_padding
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor
from trtconv.proof.undefined_sizes import find_undefined, required_multiples

SPECS = (parse_tensor("x:float32[N,3,H,W]"), parse_tensor("mask:bool[N,H,W]"))


@pytest.mark.parametrize(
    ("ranges", "multiples", "aligned"),
    [
        ("H=17:33:75", {"H": 8}, "H=24:32:72%8"),
        ("H=17:36:75", {"H": 8}, "H=24:40:72%8"),
        ("H=30:60:90%10", {"H": 4}, "H=40:60:80%20"),
        ("H=16:16:16", {"H": 16}, "H=16:16:16%16"),
        ("H=17:18:64", {"H": 32}, "H=32:32:64%32"),
        ("N=1:3:7 H=8:8:9", {"H": 8}, "N=1:3:7 H=8:8:8%8"),
    ],
)
def test_a_space_is_narrowed_to_multiples(ranges, multiples, aligned):
    assert str(aligned_space(parse_space([ranges]), multiples)) == aligned


def test_a_range_without_a_multiple_is_an_error_that_says_what_would_do():
    with pytest.raises(InvalidRequestError, match="H=33:40:60 has no multiple of 32") as error:
        aligned_space(parse_space(["H=33:40:60"]), {"H": 32})
    assert "32 or 64" in error.value.hint


def test_padding_covers_every_size():
    assert str(covering_space(parse_space(["N=1:1:2 H=17:33:75"]), {"H": 16})) == "N=1:1:2 H=32:48:80%16"


@pytest.mark.parametrize("needed", [2, 3, 7, 8, 14, 32, 64])
def test_the_least_multiple_is_found(needed):
    undefined = find_undefined(lambda s: "off" if s["H"] % needed else None, parse_space(["N=1:2:4 H=33:100:200"]))
    assert required_multiples(undefined) == {"H": needed}


def test_nothing_is_found_where_all_is_defined_and_a_floor_is_no_multiple():
    space = parse_space(["N=1:2:4 H=33:100:200"])
    assert not find_undefined(lambda s: None, space)
    undefined = find_undefined(lambda s: "small" if s["H"] < 50 else None, space)
    # 64, 128 and 192 happen to be large enough, and so are the multiples of some smaller number.
    assert required_multiples(undefined)["H"] * -(-33 // required_multiples(undefined)["H"]) >= 50
    never = find_undefined(lambda s: "odd one out" if s["H"] != 100 else None, space)
    with pytest.raises(InvalidRequestError, match="no multiple of H"):
        required_multiples(never)


def test_modes_follow_sizes_and_types():
    space = parse_space(["N=1:1:2 H=17:33:75 W=32:32:64"])
    assert [i.mode for i in padded_inputs(SPECS, space, {"H": 32}, "auto")] == ["reflect", "zero"]
    assert padded_inputs(SPECS, space, {"H": 32}, "auto")[1].axes == ((1, 32),)
    tiny = parse_space(["N=1:1:2 H=9:33:75 W=32:32:64"])
    assert padded_inputs(SPECS, tiny, {"H": 32}, "auto")[0].mode == "edge"
    with pytest.raises(InvalidRequestError, match="H=16 cannot be padded by reflection"):
        padded_inputs(SPECS, tiny, {"H": 32}, "reflect")
    with pytest.raises(InvalidRequestError, match="unknown padding mode"):
        padded_inputs(SPECS, tiny, {"H": 32}, "mirror")


@pytest.mark.parametrize(
    ("mode", "row"),
    [("reflect", [0, 1, 2, 3, 4, 3, 2, 1]), ("edge", [0, 1, 2, 3, 4, 4, 4, 4]), ("zero", [0, 1, 2, 3, 4, 0, 0, 0])],
)
def test_padding_runs_and_cuts(mode, row):
    padding = Padding((PaddedInput("x", mode, ((1, 4),)),), (CroppedAxis("y", 1, "x", 1, 1, 2),))
    visits = {}

    def run(inputs):
        visits.update(inputs)
        return {"y": inputs["x"][:, ::2]}

    out = padding.around(run)({"x": np.arange(5, dtype=np.float32)[None]})
    assert visits["x"].tolist() == [row]
    assert out["y"].tolist() == [row[::2][:3]]
    assert parse_padding(padding.as_text()) == padding


def ratios(outputs):
    multiples = {"H": 8, "W": 8}
    space = covering_space(parse_space(["N=1:1:2 H=17:33:75 W=19:32:64"]), multiples)
    return cropped_axes(lambda s: {"y": outputs(s["N"], s["H"], s["W"])}, SPECS, space, multiples)


def test_outputs_of_a_constant_ratio_are_cut_and_constant_ones_are_left():
    assert ratios(lambda n, h, w: (n, 10)) == ()
    assert ratios(lambda n, h, w: (n, 1, 2 * h, w // 4)) == (
        CroppedAxis("y", 2, "x", 2, 2, 1),
        CroppedAxis("y", 3, "x", 3, 1, 4),
    )
    assert ratios(lambda n, h, w: (n, w, h))[0] == CroppedAxis("y", 1, "x", 3, 1, 1)


def test_a_size_that_is_defined_by_chance_is_not_padded_to():
    defined = {39, *range(8, 200, 8)}
    space = parse_space(["H=37:37:37"])
    undefined = find_undefined(lambda s: None if s["H"] in defined else "off", space, cover=True)
    assert required_multiples(undefined) == {"H": 8}


def test_one_observation_tells_nothing():
    def outputs(sizes):
        if sizes["H"] > 40:
            raise TrtconvError("off")
        return {"y": (sizes["N"], sizes["H"])}

    space = covering_space(parse_space(["N=1:1:2 H=37:37:37 W=8:8:8"]), {"H": 8})
    with pytest.raises(InvalidRequestError, match="cannot tell how the outputs depend on H"):
        cropped_axes(outputs, SPECS, space, {"H": 8})


@pytest.mark.parametrize(
    "outputs",
    [lambda n, h, w: (n, h * w), lambda n, h, w: (n, h - 2), lambda n, h, w: (n * h, 3), lambda n, h, w: (n, h + w)],
)
def test_other_relations_are_refused(outputs):
    with pytest.raises(InvalidRequestError, match="'y' cannot be cut back"):
        ratios(outputs)
