"""Train the networks and write their weights: `python examples/digits/train.py [KIND ...]`, a minute or two each.

Prints what each reaches on the digits that it was not trained on, in the metric of `trtconv tune`.
"""

from __future__ import annotations

import sys
import time

import data
import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn import functional as F

from networks import KINDS, WEIGHTS, make

BATCH = 64
# Steps and the largest learning rate: what has no convolution wants more of the one and less of the other.
USUAL = (500, 1e-2)
SCHEDULES = {
    "vit": (1500, 3e-3),
    "lstm": (1500, 6e-3),
    "mobilenet": (800, 1e-2),
    "denoiser": (600, 6e-3),
    "detector": (1200, 8e-3),
}


def shifted(images: Tensor) -> Tensor:
    """Each batch moved by up to a pixel, with a little noise: 897 digits are few."""
    x, y = (int(v) for v in torch.randint(-1, 2, (2,)))
    return torch.roll(images, (y, x), (2, 3)) + 0.05 * torch.randn_like(images)


def loss_of(network: nn.Module, kind: str, images: Tensor, labels: Tensor) -> Tensor:
    batch, seed = (images.numpy(), labels.numpy()), int(torch.randint(1 << 30, (1,)))
    if kind == "segmenter":
        canvas, masks = data.on_canvas(*batch, seed)
        return F.cross_entropy(network(torch.from_numpy(canvas)), torch.from_numpy(masks))
    if kind == "denoiser":
        noisy, clean = data.noisy(*batch, seed)
        return F.mse_loss(network(torch.from_numpy(noisy)), torch.from_numpy(clean))
    if kind == "detector":
        fields, truths = data.on_field(*batch, seed)
        return detection_loss(network, torch.from_numpy(fields), *(torch.from_numpy(t) for t in truths.values()))
    return F.cross_entropy(network(shifted(images)), labels, label_smoothing=0.05)


def detection_loss(network: nn.Module, fields: Tensor, boxes: Tensor, kinds: Tensor) -> Tensor:
    """Each digit is the matter of the cell in which its centre lies: that one says its class and its sides."""
    predicted, logits = network.logits(fields)
    present = kinds >= 0
    centres = ((boxes[..., :2] + boxes[..., 2:]) / 2 / network.cell).long()
    cells = (centres[..., 1] * network.cells + centres[..., 0])[present]
    rows = torch.arange(len(fields))[:, None].expand_as(kinds)[present]
    target = torch.zeros_like(logits)
    target[rows, cells, kinds[present]] = 1.0
    scores = torch.sigmoid(logits.detach())
    weight = torch.where(target > 0, 1.0, 0.75 * scores**2)
    judged = (F.binary_cross_entropy_with_logits(logits, target, reduction="none") * weight).sum() / present.sum()
    return judged + F.smooth_l1_loss(predicted[rows, cells], boxes[present], beta=0.5)


def train(kind: str) -> nn.Module:
    torch.manual_seed(0)
    images, labels = (torch.from_numpy(a) for a in data.read(train=True))
    network = KINDS[kind]().train()
    steps, rate = SCHEDULES.get(kind, USUAL)
    optimizer = torch.optim.AdamW(network.parameters(), rate, weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    for _ in range(steps):
        rows = torch.randint(len(images), (BATCH,))
        optimizer.zero_grad()
        loss_of(network, kind, images[rows], labels[rows]).backward()
        optimizer.step()
        schedule.step()
    return network.eval()


METRIC = {"segmenter": ("miou", data.masks), "denoiser": ("psnr", data.clean), "detector": ("map", data.boxes)}


def judged(kind: str) -> float:
    """The metric on all held-out digits."""
    from trtconv.core.data.samples import rows_to_samples
    from trtconv.tune.metrics.registry import METRICS

    metric, batches = METRIC.get(kind, ("top1", data.digits))
    network, outputs, truths = make(kind), {}, []
    for images, labels in batches():
        with torch.inference_mode():
            result = network(torch.from_numpy(images))
        for name, rows in (result if isinstance(result, dict) else {"scores": result}).items():
            outputs.setdefault(name, []).extend(rows.numpy())
        truths.extend(s.label for s in rows_to_samples({"x": images}, labels, "the digits"))
    return METRICS[metric].compute(outputs, truths)


def main(kinds: list[str]) -> None:
    for kind in kinds or list(KINDS):
        start = time.monotonic()
        state = {n: t.half() for n, t in train(kind).state_dict().items() if t.is_floating_point()}
        save_file(state, WEIGHTS / f"{kind}.safetensors")
        size = sum(t.numel() for t in state.values())
        print(f"{kind:<10} {judged(kind):.4f}  {size} weights, {time.monotonic() - start:.0f} s")  # noqa: T201


if __name__ == "__main__":
    torch.set_num_threads(1)
    np.seterr(all="raise")
    main(sys.argv[1:])
