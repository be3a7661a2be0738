"""Calls that users write and no exporter follows at every size: each converts, and is compared at all of its points."""

import pytest

LINES = {
    "spectrum of twice the length": "f = torch.fft.rfft(x, n=2 * x.shape[1], dim=1); return torch.view_as_real(f * f)",
    "spectrum of a fixed length": "return torch.fft.rfft(x, n=16, dim=1).abs(), torch.fft.fft2(x, s=(5, 8)).real",
    "signals of cut spectra": """
        f, g = torch.fft.rfft(x, n=16, dim=1), torch.fft.rfft(x, dim=1)
        h = torch.fft.irfft2(torch.fft.rfft2(x), s=(5, 8))
        return torch.fft.irfft(f, n=15, dim=1), torch.fft.irfft(g, n=12, dim=1), h
    """,
    "a filled diagonal": "s = x[0] @ x[0].T; s.fill_diagonal_(0.0); return s.softmax(-1)",
    "logarithms of sums": "y = x.masked_fill(x < 0, -float('inf')); return y.logsumexp(1), y.logsumexp((0, 1), True)",
    "a solution of several columns": "a = x[:, :3, :3] + 3 * torch.eye(3); return torch.linalg.solve(a, x[:, :3])",
    "a kernel for each channel": """
        s = x.transpose(1, 2).reshape(1, -1, x.shape[1])
        k = torch.arange(-2.0, 3.0).repeat(s.shape[1], 1, 1)
        return F.conv1d(F.pad(s, (2, 2), mode='replicate'), k, groups=s.shape[1])
    """,
    "repeats by a size": """
        n = x.shape[1]
        y = x[:, 0].repeat_interleave(2 * n, dim=-1)
        return x.mean(1).repeat_interleave(n + 1, 0), y, x[0, 0].repeat_interleave(n)
    """,
    "pairs": "i, j = torch.triu_indices(x.shape[1], x.shape[1], 1); return x[:, i] * x[:, j]",
}
RECORDED = {
    "one of all parts": "y = self.gru(x)[0]; return y.unbind(1)[0], y.unbind(-1)[3]",
    "quantiles": "y = self.gru(x)[0]; return torch.quantile(y, 0.7, dim=1), x.quantile(0.25)",
    "statistics of everything": "y = self.gru(x)[0]; return (*torch.std_mean(y), torch.logsumexp(y, (0, 1)), y.var())",
    "results in a slice": "y = self.gru(x)[0]; torch.exp(y[:, 1:], out=y[:, 1:]); return y",
    "where something holds": "y = self.gru(x)[0]; i, j, _ = torch.where(x > 0.5); return y[i, j].sum(0)",
    "a moved axis": "y = self.gru(x)[0]; return y.movedim(-1, 0)",
}
NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(6, 6, batch_first=True)

    def forward(self, x):
"""


def body(lines):
    separate = lines.strip().splitlines() if "\n" in lines else lines.split("; ")
    return "".join(f"        {line.strip()}\n" for line in separate)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("case", LINES)
def test_torch_export_writes_it(case, write_module, export):
    write_module(NET + body(LINES[case]))
    assert export("net.py:Net", ["x:float32[N,T,6]"], "N=1:2:4 T=3:9:20").exporter == "dynamo"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("case", [pytest.param(c, marks=[pytest.mark.slow] * (c == "quantiles")) for c in RECORDED])
def test_a_recording_writes_it(case, write_module, export):
    write_module(NET + body(RECORDED[case]))
    assert export("net.py:Net", ["x:float32[N,T,6]"], "N=1:2:4 T=3:9:20", exporter="torchscript")
