"""Guards that torch.export cannot prove: read, tried over the range, and told in words."""

import pytest

from trtconv.core.shapes import parse_space
from trtconv.export.guards import hold_everywhere, in_words, unproved_guards

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
    made = export(f"{write_module(FOLD)}:make", ["x:float32[N,T]"], "N=1:2:3 T=40:64:100")
    assert made.exporter == "dynamo"
