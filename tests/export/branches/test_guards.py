"""Guards that torch.export cannot prove: read, tried over the range, and told in words."""

import numpy as np
import pytest

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.shape_space.space import parse_space
from trtconv.export.branches.guard_split import find_guard
from trtconv.export.branches.guards import (
    Guard,
    ask_for_ones,
    bounds_some,
    hold_everywhere,
    in_words,
    unproved_guards,
    without_special_sizes,
)
from trtconv.export.exporters.attempt import requirements

TEXT = """Constraints violated (T)! For more information, run with TORCH_LOGS="+dynamic".
  - Not all values of T = L['x'].size()[1] in the specified range 40 <= T <= 200 satisfy the generated guard {}.
"""
SIZE = "L['x'].size()[1]"
SPACE = parse_space(["N=1:2:4 T=40:64:200"])


@pytest.mark.parametrize(
    ("guard", "words", "holds"),
    [
        (f"(1 % (8*({SIZE} // 8))) != 0", "(1 % (8*(T // 8))) != 0", True),
        (f"{SIZE} != 44", "T != 44", False),
        (f"({SIZE} % 2) != 0", "(T % 2) != 0", False),
        (f"{SIZE} != 300", "T != 300", True),
        (f"Mod({SIZE}, 2) <= 1", "Mod(T, 2) <= 1", True),
    ],
)
def test_a_guard_is_read_and_tried_over_the_range(guard, words, holds):
    text = TEXT.format(guard)
    assert unproved_guards(text)[0].text == words
    assert hold_everywhere(text, SPACE) is holds
    assert words in in_words(text)


def test_the_size_at_which_a_guard_fails_is_found():
    assert unproved_guards(TEXT.format(f"{SIZE} != 44"))[0].fails_at(SPACE) == {"T": 44}


@pytest.mark.parametrize("guard", ["__import__('o').x() > 0", f"{SIZE}.bit_length() > 0", "Unknown(3) > 0", "1 %"])
def test_what_is_no_condition_on_sizes_never_holds(guard):
    assert not hold_everywhere(TEXT.format(guard), SPACE)


def test_other_messages_are_left_alone():
    assert in_words("Constraints violated (T)!\nSuggested fixes:\n  T = 11") == ""
    assert not hold_everywhere("GuardOnDataDependentSymNode", SPACE)


FOLD = """
class Frames(nn.Module):
    def forward(self, x):
        whole = (x.shape[1] - 16) // 8 * 8 + 16
        return F.fold(x.unfold(1, 16, 8).transpose(1, 2), (1, whole), (1, 16), stride=(1, 8)).flatten(1)


def make():
    return Frames().eval()
"""


def test_frames_that_are_added_up_again_are_exported(write_module, export):
    result = export(f"{write_module(FOLD)}:make", ["x:float32[N,T]"], "N=1:2:3 T=40:64:100")
    assert result.exporter == "dynamo"


def test_a_multiple_that_torch_suggests_is_a_condition():
    text = "Constraints violated (T)!\nSuggested fixes:\n  T = 2*_T - 1\n\nThe error above"
    assert [g.text for g in unproved_guards(text)] == ["(T - (-1)) % 2 == 0"]
    assert hold_everywhere(text, parse_space(["T=41:41:41"]))
    assert not hold_everywhere(text, SPACE)
    assert not hold_everywhere(text.replace("\n\n", "\n  N = 3\n\n"), parse_space(["T=41:41:41"]))


def test_a_condition_with_too_many_sizes_is_not_taken_for_true():
    assert not hold_everywhere(TEXT.format(f"{SIZE} > 1"), parse_space(["T=40:64:100000000"]))


BRANCH = """
class Branch(nn.Module):
    def forward(self, x):
        if {condition}:
            return x * 3
        return x + 1


def make():
    return Branch().eval()
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "condition", ["x.shape[1] % 2 == 0", "x.shape[1] == 44", "x.shape[1] % 3 == 1", "x.shape[1] != 29"]
)
def test_a_branch_on_a_condition_becomes_an_if(write_module, export, condition):
    result = export(
        f"{write_module(BRANCH.format(condition=condition))}:make", ["x:float32[N,T]"], "N=1:2:3 T=20:40:60"
    )
    runner = OnnxRuntimeRunner(result.model)
    for size in range(20, 61):
        x = np.ones((2, size), np.float32)
        expected = 3 if eval(condition, {"x": x}) else 2
        assert (runner({"x": x})["output"] == expected).all(), size


def test_a_fix_counts_only_where_no_guard_is_told():
    """A pool in ceil mode: `2*ceil(H/2) - 2 < H` holds at any H, and torch suggests multiples to prove it."""
    space = parse_space(["H=63:96:131"])
    text = (
        "Constraints violated (H)!\n  - Not all values of H = L['tensors'][0].size()[2] in the specified range "
        "63 <= H <= 131 satisfy the generated guard 2*(((-1) + L['tensors'][0].size()[2]) // 8) < "
        "1 + (((-1) + L['tensors'][0].size()[2]) // 4).\nSuggested fixes:\n  _H = Dim('_H', min=3, max=5)\n"
        "  H = 32*_H - 29\n"
    )
    assert hold_everywhere(text, space)
    assert not hold_everywhere(text.replace("< 1 +", "< 0 +"), space)


@pytest.mark.slow
def test_an_expression_by_its_own_name_bounds_nothing(write_module, export):
    """torch's name for the entries of a triangle over T - 1 rows, which running sums are taken apart into."""
    fixes = "Suggested fixes:\n  1 + T*T + ((-2)*T) = Dim('1 + T*T + ((-2)*T)')\n\n"
    guard = "  - Not all values of T = L['x'].size()[1] in the specified range T <= 20 satisfy the generated guard {}."
    text = guard.format("1 + L['x'].size()[1]*L['x'].size()[1] + ((-2)*L['x'].size()[1]) >= 2") + "\n" + fixes
    assert hold_everywhere(text, parse_space(["T=3:9:20"]))
    assert not hold_everywhere(text, parse_space(["T=2:9:20"]))
    assert not hold_everywhere(text.replace("fixes:", "fixes:\n  T = 9"), parse_space(["T=3:9:20"]))
    assert not requirements("Constraints violated (T)!\n" + text)
    path = write_module("class Net(nn.Module):\n    def forward(self, x):\n        return x.diff(dim=1).cumsum(1)\n")
    result = export(f"{path}:Net", ["x:float32[N,T]"], "N=1:2:3 T=2:9:20", exporter="dynamo")
    assert not any("joined by an If" in note for note in result.notes)


@pytest.mark.slow
def test_computed_sizes_of_one_are_no_paths(write_module, export):
    """At H=2 a side is 1 long, and torch asks that of each broadcast; one graph holds all sizes."""
    guard = "  - Not all values of H = L['x'].size()[2] in the specified range 2 <= H satisfy the generated guard {}.\n"
    one = guard.format("math.trunc(0.7*torch.sym_float(L['x'].size()[2])) != 1")
    more = guard.format("math.trunc(0.7*torch.sym_float(L['x'].size()[2])) >= 2")
    assert ask_for_ones(one + more)
    assert not ask_for_ones(one + guard.format("L['x'].size()[2] >= 9"))
    assert not ask_for_ones(one + "  - H was inferred to be 9")
    assert not ask_for_ones("")
    path = write_module(
        "class Net(nn.Module):\n    def forward(self, x):\n"
        "        y = F.interpolate(x, scale_factor=(0.7, 1.3), mode='nearest')\n"
        "        return y, F.interpolate(x, scale_factor=0.7, mode='nearest-exact')\n"
    )
    result = export(f"{path}:Net", ["x:float32[N,2,H,W]"], "N=1:1:2 H=2:8:16 W=2:8:16")
    assert result.exporter == "dynamo"
    assert not any("joined by an If" in note for note in result.notes)


def test_bounds_of_several_dims_hold_where_the_condition_does_from_which_they_follow():
    axis = "L['x'].size()[{}]"
    line = "  - Not all values of {} = {} in the specified range 30 <= {} <= 100 satisfy the generated guard {}\n"
    heights = line.format("H", axis.format(1), "H", f"30 <= {axis.format(1)} and {axis.format(1)} <= 99")
    widths = line.format("W", axis.format(2), "W", f"31 <= {axis.format(2)} and {axis.format(2)} <= 100")
    fixes = "Suggested fixes:\n  H = Dim('H', min=30, max=99)\n  W = Dim('W', min=31, max=100)\n\n"
    text, space = f"{heights}{widths}{fixes}", parse_space(["H=30:64:100 W=30:64:100"])
    assert bounds_some(text)
    assert not hold_everywhere(text, space)
    wider = Guard("W > H", ("W", "H"))
    assert hold_everywhere(text, space, ((wider, True),))
    assert not hold_everywhere(text, space, ((wider, False),))
    both = f"{text.partition('Suggested')[0]}{line.format('W', axis.format(2), 'W', 'W > H')}"
    assert find_guard(both, space).guard == wider


SHORTER_SIDE = """
class Resize(nn.Module):
    def forward(self, x):
        h, w = x.shape[-2:]
        short, long = (w, h) if w <= h else (h, w)
        new_short, new_long = 12, int(12 * long / short)
        nw, nh = (new_short, new_long) if w <= h else (new_long, new_short)
        return F.interpolate(x, size=(nh, nw), mode="bilinear", align_corners=False)


def make():
    return Resize().eval()
"""


@pytest.mark.slow
def test_the_shorter_of_two_sides_becomes_an_if(write_module, export):
    """torchvision's Resize: torch states bounds of H and W that follow from `w <= h`, and not that condition."""
    result = export(f"{write_module(SHORTER_SIDE)}:make", ["x:float32[N,3,H,W]"], "N=1:1:2 H=10:20:31 W=10:24:31")
    runner = OnnxRuntimeRunner(result.model)
    for h, w in ((10, 31), (31, 10), (20, 20), (21, 20), (20, 21), (13, 17)):
        side = 12 * max(h, w) // min(h, w)
        (out,) = runner({"x": np.ones((1, 3, h, w), np.float32)}).values()
        assert out.shape == (1, 3, *((side, 12) if w <= h else (12, side)))


def test_a_branch_on_two_sizes_becomes_an_if(write_module, export):
    source = write_module(BRANCH.format(condition="x.shape[2] > x.shape[3]"))
    result = export(f"{source}:make", ["x:float32[N,3,H,W]"], "N=1:2:3 H=16:24:40 W=16:24:40")
    runner = OnnxRuntimeRunner(result.model)
    for height, width in ((16, 40), (40, 16), (24, 24), (25, 24), (24, 25)):
        (out,) = runner({"x": np.full((1, 3, height, width), 3.0, np.float32)}).values()
        assert (out == (9.0 if height > width else 4.0)).all()


def test_a_single_size_is_one_within_a_region_too():
    space, region = parse_space(["H=2:7:14 W=2:7:14"]), ((Guard("W - 1 != 1", ("W",)), True),)
    axis = "L['x'].size()[2]"
    line = "  - Not all values of H = {0} in the specified range H <= 14 satisfy the generated guard ({0} - 1) != 1."
    cut = find_guard(line.format(axis), space, region)
    assert cut.other_region() == ()
    other = cut.other_space(space)
    assert (other["H"].min, other["H"].max, other["W"].max) == (2, 2, 14)


SLOPES = """
class Slopes(nn.Module):
    def forward(self, x):
        dx = F.pad(x[..., 1:] - x[..., :-1], (0, 1, 0, 0), mode="replicate")
        dy = F.pad(x[..., 1:, :] - x[..., :-1, :], (0, 0, 0, 1), mode="replicate")
        return dx * dy


class Windows(nn.Module):
    def forward(self, x):
        blurred = F.conv2d(x, torch.ones(3, 1, 5, 5), groups=3)
        return F.conv2d(F.pad(blurred, [1] * 4, "replicate"), torch.ones(2, 3, 3, 3))


def make(name="Slopes"):
    return globals()[name]().eval()
"""


@pytest.mark.parametrize(("name", "low"), [("Slopes", 2), ("Windows", 5)])
def test_two_dims_that_leave_one_element_at_their_lowest_size(write_module, export, name, low):
    """torch takes a size of 1 for a case of its own, once for each dim; the lowest may be the one that is traced."""
    source = write_module(SLOPES.replace('name="Slopes"', f'name="{name}"'))
    space = f"N=1:1:2 H={low}:9:17 W={low}:8:15"
    result = export(f"{source}:make", ["x:float32[N,3,H,W]"], space, exporter="dynamo")
    runner = OnnxRuntimeRunner(result.model)
    for h, w in ((low, low), (low, 15), (17, low), (17, 15), (low + 1, low)):
        x = np.random.default_rng(h).standard_normal((1, 3, h, w)).astype(np.float32)
        (out,) = runner({"x": x}).values()
        assert out.shape == ((1, 3, h, w) if name == "Slopes" else (1, 2, h - 4, w - 4))


def test_a_headline_behind_the_last_guard_is_no_part_of_it():
    """torch joins two complaints without a line break; Swin v2 was refused with a condition that "cannot be read"."""
    text = (
        "Constraints violated (W)!\n  - Not all values of W = L['x'].size()[3] in the specified range 64 <= W <= 160 "
        "satisfy the generated guard 32*(L['x'].size()[3] // 4) > 32.Specializations unexpectedly required (H, W)! "
        'For more information, run with TORCH_LOGS="+dynamic".\n'
    )
    assert [g.text for g in unproved_guards(text)] == ["32*(W // 4) > 32"]


def test_ordinary_sizes_are_no_ends_and_differ():
    square = [{"H": h, "W": w} for h in range(16, 40) for w in range(1, 16)]
    assert without_special_sizes(square) == {"H": 19, "W": 6}
    assert without_special_sizes([{"H": n, "W": n} for n in (1, 4, 5)]) == {"H": 4, "W": 4}
    assert without_special_sizes([{"H": 1}, {"H": 2}]) == {"H": 2}
    few = [{"H": h, "W": w} for h in range(8, 25, 4) for w in range(4, 25, 4)]
    assert without_special_sizes(few) == {"H": 16, "W": 12}


def test_outside_of_its_region_a_guard_is_not_evaluated():
    guard, divisible = Guard("T % (T // 16) == 0", ("T",)), Guard("T % 16 == 0", ("T",))
    space = parse_space(["T=1:5:64"])
    assert guard.fails_at(space, ((divisible, True),)) is None
    with pytest.raises(ValueError, match="T // 16"):
        guard.fails_at(space)
    # At 16 there is one window, and more at the others.
    assert [s["T"] for s in Guard("T // 16 > 1", ("T",)).failing(space, ((divisible, True),))] == [16]


WINDOWS = """
class Windows(nn.Module):
    def forward(self, x):
        n, c, h, w = x.shape
        if h % 4 == 0 and w % 4 == 0:
            y = x.view(n, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 3, 5, 1).reshape(-1, 16, c).softmax(1)
            return y.view(n, h // 4, w // 4, 4, 4, c).permute(0, 5, 1, 3, 2, 4).reshape(n, c, h, w)
        return x.flatten(2).softmax(2).view(n, c, h, w)

def make():
    return Windows()
"""


@pytest.mark.slow
def test_windows_where_the_sizes_divide_and_one_else(write_module, export):
    result = export(f"{write_module(WINDOWS)}:make", ["x:float32[N,2,H,W]"], "N=1:1:2 H=4:8:16 W=4:8:16")
    runner = OnnxRuntimeRunner(result.model)
    for height, width in ((4, 4), (8, 4), (16, 12), (8, 9), (5, 16), (7, 13)):
        x = np.random.default_rng(height).standard_normal((1, 2, height, width)).astype(np.float32)
        (out,) = runner({"x": x}).values()
        windows = height % 4 == width % 4 == 0
        sums = out.reshape(2, height // 4, 4, width // 4, 4).sum((2, 4)) if windows else out.sum((2, 3))
        np.testing.assert_allclose(sums, np.ones_like(sums), rtol=1e-5)
