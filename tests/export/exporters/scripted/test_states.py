"""States of several layers in lists and dictionaries, and lists that are gone through from their end."""

from __future__ import annotations

import pytest

from tests.export.exporters.scripted.lengths import require_equal

NETS = """
class Layered(nn.Module):
    def __init__(self):
        super().__init__()
        self.num_layers, self.config = 2, {"rate": 0.5}
        self.grus = nn.ModuleList([nn.GRUCell(4, 4), nn.GRUCell(4, 4)])
        self.lstms = nn.ModuleList([nn.LSTMCell(4, 4), nn.LSTMCell(4, 4)])


class Absent(Layered):
    def forward(self, x, states=None):
        states = states if states is not None else [None] * len(self.grus)
        outs = []
        for t in range(x.size(1)):
            y = x[:, t]
            for i, cell in enumerate(self.grus):
                if i == 1 and t % 2 == 1:
                    continue
                states[i] = cell(y, states[i])
                y = states[i]
            outs.append(y * self.config["rate"])
        return torch.stack(outs, dim=1), torch.stack(states)


class Pairs(Layered):
    def forward(self, x):
        states = [(torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0]))] * self.num_layers
        outs = []
        for t in range(x.shape[1]):
            y, later = x[:, t], []
            for cell, (h, c) in zip(self.lstms, states):
                h, c = cell(y, (h, c))
                later.append((h, c))
                y = F.relu(h)
            states = later
            outs.append(y)
        hs, cs = zip(*states)
        return torch.stack(outs, 1), torch.stack(hs), torch.stack(cs)


class Named(Layered):
    def forward(self, x):
        state = {"h": [torch.zeros_like(x[:, 0]) for _ in self.lstms], "c": [x[:, 0] * 0] * 2, "fast": x[:, 0]}
        outs = []
        for t in range(x.shape[1]):
            y = x[:, t]
            for i, cell in enumerate(self.lstms):
                state["h"][i], state["c"][i] = cell(y, (state["h"][i], state["c"][i]))
                y = state["h"][i]
            state.update(fast=state["fast"] * 0.5 + y)
            outs.append(y)
        return torch.stack(outs, 1), torch.stack(state["c"], 0), state["fast"]


class Stepped(Layered):
    def step(self, y, states):
        later = []
        for cell, h in zip(self.grus, states):
            y = cell(y, h)
            later.append(y)
        return y, later

    def forward(self, x):
        states, outs = [torch.zeros_like(x[:, 0]) for _ in self.grus], []
        for t in range(x.shape[1]):
            y, states = self.step(x[:, t], states)
            outs.append(y)
        return torch.stack(outs, 1), torch.stack(states)


class Window(nn.Module):
    def forward(self, x):
        window, outs = [torch.zeros_like(x[:, 0])] * 3, []
        for t in range(x.shape[1]):
            window = [x[:, t]] + window[:-1]
            outs.append(sum(window) / len(window) - window[-1])
        return torch.stack(outs, 1)


class Viterbi(nn.Module):
    def forward(self, x):
        s, back = x[:, 0], []
        for t in range(1, x.shape[1]):
            best, at = (s[:, :, None] - torch.eye(4)).max(1)
            s = best + x[:, t]
            back.append(at)
        last = s.argmax(1)
        path = [last]
        for at in reversed(back):
            last = at.gather(1, last[:, None])[:, 0]
            path.append(last)
        return torch.stack(path[::-1], 1)


class ConvLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv2d(4, 8, 3, padding=1) for _ in range(2)])

    def forward(self, x, hidden=None):
        b, steps, _, h, w = x.size()
        if hidden is None:
            hidden = [(torch.zeros(b, 2, h, w), torch.zeros(b, 2, h, w)) for _ in self.layers]
        last = []
        for i, layer in enumerate(self.layers):
            h, c = hidden[i]
            outs = []
            for t in range(steps):
                a, f, o, g = layer(torch.cat([x[:, t], h], 1)).chunk(4, 1)
                c = torch.sigmoid(f) * c + torch.sigmoid(a) * torch.tanh(g)
                h = torch.sigmoid(o) * torch.tanh(c)
                outs.append(h)
            x = torch.stack(outs, 1)
            last.append((h, c))
        return x, last[-1][0]
"""
STEPS = (["x:float32[N,T,4]"], "N=1:1:2 T=1:5:9", (4,))
FRAMES = (["x:float32[N,T,2,H,5]"], "N=1:1:2 T=1:2:4 H=3:4:5", (2, 4, 5))
CASES = {**dict.fromkeys(("Absent", "Pairs", "Named", "Stepped", "Window", "Viterbi"), STEPS), "ConvLstm": FRAMES}


SLOW = ("Absent", "Named", "Stepped", "Pairs", "ConvLstm", "Viterbi")


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in SLOW)) for n in CASES])
def test_it_converts_at_every_length(write_module, export, name):
    require_equal(export, write_module(NETS), name, CASES[name], lengths=(1, 2, 4), atol=2e-6)
