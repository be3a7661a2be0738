"""What a file ranks within its own rounding stands in the notes, with its line."""

from __future__ import annotations

SORTED = (
    "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    "        self.score = nn.Linear(16, 1)\n\n"
    "    def forward(self, x):\n        scores = self.score(x).squeeze(-1)\n"
    "        return torch.sort(scores, dim=1, descending=True)\n"
)
BEST = SORTED.replace("torch.sort(scores, dim=1, descending=True)", "scores.argmax(1), scores.topk(2)[0]")


def ties_of(result):
    return [n for n in result.notes if "nearly tied" in n]


def test_a_sort_of_many_scores_is_told_with_line_margin_and_noise(write_module, export):
    result = export(f"{write_module(SORTED)}:Net", ["x:float32[N,T,16]"], "N=1:1:2 T=9000:9500:10000")
    (note,) = ties_of(result)
    assert "net.py:12 (TopK at " in note
    assert "part by " in note
    assert "rounding moves them by " in note


def test_a_clear_choice_is_not_told(write_module, export):
    result = export(f"{write_module(BEST)}:Net", ["x:float32[N,T,16]"], "N=1:2:3 T=4:9:20")
    assert ties_of(result) == []
