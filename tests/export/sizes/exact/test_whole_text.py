"""Texts of sizes without fractions: they say what Python computes at every size."""

import math

import numpy as np
import pytest

from trtconv.core.shape_space.space import parse_space
from trtconv.export.sizes.evaluate import evaluate_text
from trtconv.export.sizes.exact.whole_text import in_whole_numbers

SPACE = parse_space(["T=1:20:400", "H=8:16:64"])
TEXTS = {
    "3*CeilToInt((IntTrueDiv(T - 3, 3)) + 1.0) + 4": lambda t: 3 * math.ceil((t - 3) / 3 + 1) + 4,
    "max(T, TruncToInt(0.1 + T / 14))": lambda t: max(t, int(0.1 + t / 14)),
    "FloorToInt((T - 60) / 7.0)": lambda t: math.floor((t - 60) / 7.0),
    "T + 1": lambda t: t + 1,
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_line_takes_the_place_of_what_is_rounded(text):
    whole = in_whole_numbers(text, SPACE)
    assert "/" not in whole.replace("//", "")
    assert "ToInt" not in whole
    sizes = np.array(SPACE["T"].values())
    assert evaluate_text(whole, {"T": sizes}).tolist() == [TEXTS[text](int(t)) for t in sizes]


@pytest.mark.parametrize("text", ["FloorToInt(H / T)", "TruncToInt(0.29*ToFloat(T)) + 1", "no size ("])
def test_what_no_line_gives_stays(text):
    assert in_whole_numbers(text, SPACE).replace(" ", "") == text.replace(" ", "")
