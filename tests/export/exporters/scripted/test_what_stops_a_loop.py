"""A loop over a size that no file can hold: the error says what stops it, in its first line."""

from __future__ import annotations

import pytest

from trtconv.core.errors import AccuracyError

HEAD = "class Net(nn.Module):\n    def forward(self, x):\n"
CASES = {
    "a set": (
        "        y = x[:, 0]\n"
        "        for t in range(x.shape[1]):\n"
        "            for k in sorted({0, t // 2}):\n"
        "                y = y + x[:, k]\n"
        "        return y\n",
        "`for k in sorted({0, t // 2}):` has a form that loops of files lack (Set)",
    ),
    "a state that is None in some steps": (
        "        last, outs = None, []\n"
        "        for t, row in enumerate(x.unbind(1)):\n"
        "            outs.append(row if last is None else row - 0.5 * last)\n"
        "            last = row if t % 2 else None\n"
        "        return torch.stack(outs, 1)\n",
        "`outs.append(row if last is None else row - 0.5 * last)` takes what may be None at some steps",
    ),
    "a state that is None and none in the first step": (
        "        last, outs = None, []\n"
        "        for t in range(x.shape[1]):\n"
        "            if t % 3 == 2:\n"
        "                last = x[:, t]\n"
        "            outs.append(x[:, t] if last is None else last)\n"
        "        return torch.stack(outs, 1)\n",
        "'last' is None before it and a tensor in it",
    ),
    "a list under a second name from a branch on": (
        "        s, kept = [x[:, 0] * 0, x[:, 0]], [x[:, 0], x[:, 0]]\n"
        "        for t in range(x.shape[1]):\n"
        "            s = [s[t % 2] * 0.5, s[1]]\n"
        "            if t == 3:\n"
        "                kept = s\n"
        "            s[0] = s[0] + x[:, t]\n"
        "        return kept[0], s[0]\n",
        "a list has a second name from a branch or a loop on",
    ),
    "an operator that ONNX lacks": (
        "        a, outs = x[:, 0], []\n"
        "        for t in range(x.shape[1]):\n"
        "            a, outs = x[:, t], outs + [torch.stack([a, x[:, t], -a], 0).median(0)[0]]\n"
        "        return torch.stack(outs, 1)\n",
        "the exporter has no form of median",
    ),
    "a row that outlives a write": (
        "        y = torch.zeros_like(x)\n"
        "        for t in range(1, x.shape[1]):\n"
        "            old = y[:, t]\n"
        "            y[:, t] = x[:, t] + y[:, t - 1]\n"
        "            y[:, t - 1] = old * 2\n"
        "        return y\n",
        "writes in place",
    ),
    "a row that the loop carries on": (
        "        y = torch.zeros_like(x)\n"
        "        h = y[:, 0]\n"
        "        for t in range(1, x.shape[1]):\n"
        "            y[:, t] = x[:, t] + h\n"
        "            h = y[:, t]\n"
        "        return y + h.unsqueeze(1)\n",
        "writes in place",
    ),
    "a part that is read behind a write to the whole": (
        "        y = torch.zeros_like(x)\n"
        "        for t in range(x.shape[1]):\n"
        "            y[:, t] = x[:, t] * 2\n"
        "        first = y[:, 0]\n"
        "        y.clamp_(-1, 1)\n"
        "        return y + first.unsqueeze(1)\n",
        "writes in place",
    ),
    "a row from before the loop": (
        "        y = torch.zeros_like(x)\n"
        "        first = y[:, 0]\n"
        "        for t in range(x.shape[1]):\n"
        "            y[:, t] = x[:, t] + y[:, 0]\n"
        "        return y + first.unsqueeze(1)\n",
        "writes in place",
    ),
}


SLOW = "a row that outlives a write"


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("body", "cause"),
    [pytest.param(*case, id=name, marks=[pytest.mark.slow] * (name == SLOW)) for name, case in CASES.items()],
)
def test_the_first_line_names_what_stops_it(write_module, export, body, cause):
    path = write_module(HEAD + body)
    with pytest.raises(AccuracyError, match="the file cannot hold it as a loop: ") as error:
        export(f"{path}:Net", ["x:float32[N,T,4]"], "N=1:2:3 T=2:9:24")
    assert cause in error.value.message
    assert error.value.where.startswith("net.py:")


@pytest.mark.slow
def test_a_fork_that_is_no_loop_is_not_explained_by_one(write_module, export):
    body = (
        "        h = x[:, 0] * 0\n"
        "        for t in range(x.shape[1]):\n"
        "            h = torch.stack([h, x[:, t], -h], 0).median(0)[0]\n"
        "        return h\n"
    )
    path = write_module(HEAD + "        if x[0, 0, 0] > 0:\n            return x[:, 0]\n" + body)
    with pytest.raises(AccuracyError) as error:
        export(f"{path}:Net", ["x:float32[N,T,4]"], "N=1:2:3 T=2:9:24")
    assert "cannot hold it as a loop" not in error.value.message
