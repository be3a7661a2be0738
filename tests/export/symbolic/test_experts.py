"""Mixtures of experts: the functions that sort tokens by expert have a form that engines take."""

import pytest
import torch

from trtconv.export.symbolic import experts


@pytest.mark.parametrize("ends", [[2, 5, 5, 7], [0, 0, 0, 7], [7, 7, 7, 7], [1, 2, 3, 4]])
def test_rows_are_multiplied_by_the_matrix_of_their_group(ends):
    rows, matrices = torch.randn(7, 5), torch.randn(4, 5, 3)
    expected, start = torch.zeros(7, 3), 0
    for group, end in enumerate(ends):
        expected[start:end] = rows[start:end] @ matrices[group]
        start = end
    product = experts.grouped_product(None, rows, matrices, torch.tensor(ends, dtype=torch.int32))
    torch.testing.assert_close(product, expected)


def test_infinities_of_another_groups_matrix_stay_there():
    matrices = torch.stack([torch.eye(2), torch.full((2, 2), torch.inf)])
    product = experts.grouped_product(None, torch.ones(3, 2), matrices, torch.tensor([2, 3]))
    assert product.isfinite().tolist() == [[True, True], [True, True], [False, False]]


def test_matrices_without_groups_are_left_to_torch():
    rows, matrices = torch.randn(2, 7, 5), torch.randn(2, 5, 3)
    assert experts.grouped_product(None, rows, matrices) is NotImplemented


@pytest.mark.parametrize(("bins", "low", "high"), [(8, 0, 7), (5, -1.0, 1.0), (3, -0.1, 0.7), (10, -1000.0, 1000.0)])
def test_histograms(bins, low, high):
    x = torch.cat([torch.randn(4, 500).flatten(), torch.tensor([low, high, torch.nan, torch.inf, -torch.inf])])
    x = torch.cat([x, torch.arange(9.0), torch.linspace(low, high, bins + 1)])
    assert torch.equal(experts.histogram(None, x, bins, low, high), torch.histc(x[x.isfinite()], bins, low, high))


@pytest.mark.parametrize("x", [torch.randn(999), torch.full((4,), 2.5), torch.tensor([-1.0, 0.0, 1.0, 3.0])])
def test_the_range_of_the_values(x):
    for bins in (1, 3, 4, 10):
        assert torch.equal(experts.histogram(None, x, bins), torch.histc(x, bins))
    assert experts.histogram(None, x, 3, 2.0, 1.0) is NotImplemented


# As transformers computes its mixtures: tokens sorted by expert, one product for each group of them.
SORTED_BY_EXPERT = """
@torch.library.custom_op("trtconv_test::grouped_mm_fallback", mutates_args=())
def product_of_groups(rows: torch.Tensor, weight: torch.Tensor, offs: torch.Tensor) -> torch.Tensor:
    out, start = rows.new_zeros(rows.shape[0], weight.shape[2]), 0
    for group, end in enumerate(offs.tolist()):
        out[start:end] = rows[start:end] @ weight[group]
        start = end
    return out


@product_of_groups.register_fake
def _(rows, weight, offs):
    return rows.new_empty(rows.shape[0], weight.shape[2])


class SortedByExpert(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(6, 4)
        self.weight = nn.Parameter(torch.randn(4, 6, 5) / 3)

    def forward(self, x):
        score, expert = self.router(x).topk(2, -1)
        order = expert.reshape(-1).argsort(stable=True)
        counts = torch.histc(expert.reshape(-1).float(), bins=4, min=0, max=3)
        ends = counts.cumsum(0, dtype=torch.int32)
        product = torch.ops.trtconv_test.grouped_mm_fallback(x[order // 2], self.weight, ends)
        back = product[order.argsort()]
        return (back.view(-1, 2, 5) * score.softmax(-1).unsqueeze(-1)).sum(1)
"""


def test_a_mixture_of_experts_is_exported(export, write_module):
    write_module(SORTED_BY_EXPERT)
    result = export("net.py:SortedByExpert", ["x:float32[N,6]"], "N=1:4:9")
    assert result.exporter == "dynamo"
