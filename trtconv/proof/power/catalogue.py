"""Which faults are tried: every kind in turn, each at another layer, chosen by a seed."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trtconv.proof.power.constant_faults import epsilon_faults, scale_faults, threshold_faults
from trtconv.proof.power.fault import Fault, FaultGraph, Injector
from trtconv.proof.power.mode_faults import mode_faults, order_faults, pad_faults
from trtconv.proof.power.size_faults import size_faults
from trtconv.proof.power.weight_faults import bias_faults, weight_faults

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

INJECTORS: tuple[Injector, ...] = (
    weight_faults,
    bias_faults,
    epsilon_faults,
    scale_faults,
    threshold_faults,
    mode_faults,
    pad_faults,
    order_faults,
)


def all_faults(graph: FaultGraph, frozen: Mapping[str, Array]) -> list[Fault]:
    """Every fault that the graph has a place for, in the order of its nodes."""
    faults: list[Fault] = []
    for index in range(len(graph.nodes)):
        for injector in INJECTORS:
            faults += injector(graph, index)
        faults += size_faults(graph, index, frozen)
    return faults


def choose_faults(graph: FaultGraph, frozen: Mapping[str, Array], count: int) -> list[Fault]:
    """`count` faults, or all there are: the kinds take turns, and the nodes of a kind come in an order by the seed.

    So the first few already are of all kinds, and more of them reach more layers.
    """
    import numpy as np

    by_kind: dict[str, deque[Fault]] = {}
    for fault in all_faults(graph, frozen):
        by_kind.setdefault(fault.kind, deque()).append(fault)
    random = np.random.default_rng(graph.seed)
    for kind in sorted(by_kind):
        listed = list(by_kind[kind])
        by_kind[kind] = deque(listed[i] for i in random.permutation(len(listed)))
    chosen: list[Fault] = []
    while by_kind and len(chosen) < count:
        for kind in sorted(by_kind):
            if len(chosen) < count:
                chosen.append(by_kind[kind].popleft())
            if not by_kind[kind]:
                del by_kind[kind]
    return chosen
