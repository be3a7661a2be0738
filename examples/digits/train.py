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
SCHEDULES = {"vit": (1500, 3e-3), "lstm": (1500, 6e-3), "mobilenet": (800, 1e-2)}


def shifted(images: Tensor) -> Tensor:
    """Each batch moved by up to a pixel, with a little noise: 897 digits are few."""
    x, y = (int(v) for v in torch.randint(-1, 2, (2,)))
    return torch.roll(images, (y, x), (2, 3)) + 0.05 * torch.randn_like(images)


def loss_of(network: nn.Module, kind: str, images: Tensor, labels: Tensor) -> Tensor:
    if kind != "segmenter":
        return F.cross_entropy(network(shifted(images)), labels, label_smoothing=0.05)
    canvas, masks = data.on_canvas(images.numpy(), labels.numpy(), int(torch.randint(1 << 30, (1,))))
    return F.cross_entropy(network(torch.from_numpy(canvas)), torch.from_numpy(masks))


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


def judged(kind: str) -> float:
    """The metric on all held-out digits."""
    from trtconv.tune.metrics.registry import METRICS

    metric, batches = ("miou", data.masks) if kind == "segmenter" else ("top1", data.digits)
    network, outputs, truths = make(kind), [], []
    for images, labels in batches():
        with torch.inference_mode():
            outputs.extend(network(torch.from_numpy(images)).numpy())
        truths.extend(labels)
    return METRICS[metric].compute({"scores": outputs}, truths)


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
