"""Functions of fractions that torch's recording exporter writes as other functions."""

import torch
import torch.nn.functional as F


def softpluses(x):
    return F.softplus(x), F.softplus(x, beta=5.0, threshold=1.0), F.softplus(x, beta=-2.0, threshold=3.0)


def test_softplus_has_its_threshold(differing):
    assert not differing(softpluses, torch.linspace(-5, 25, 61), tolerance=1e-5)


def cosines(x):
    return (
        F.cosine_similarity(x[:, 1:], x[:, :-1], dim=-1), F.cosine_similarity(x, x[:, :1], dim=1),
        F.cosine_similarity(x * 1e-9, x[0], dim=2), F.cosine_similarity(x * 1e-5, x * 1e-6, dim=-1, eps=1e-4),
    )  # fmt: skip


def test_each_length_of_a_cosine_is_clamped(differing):
    torch.manual_seed(0)
    assert not differing(cosines, torch.randn(2, 5, 3) + 2.0, tolerance=1e-5)


def divided(x):
    return x // 0.1, x % 0.1, x % -0.3, torch.div(x, 0.3, rounding_mode="floor"), x // 0.0


def test_fractions_are_divided_by_the_exact_remainder(differing):
    x = torch.arange(-40, 40) * torch.tensor(0.1)
    assert not differing(divided, x, tolerance=1e-5)


def distances(x):
    return torch.cdist(x, x[:1] + 0.5, p=1.0), torch.cdist(x, x.flip(0), compute_mode="donot_use_mm_for_euclid_dist")


def test_distances_are_of_the_differences_alone(differing):
    torch.manual_seed(0)
    assert not differing(distances, torch.randn(2, 5, 3), tolerance=1e-6)
