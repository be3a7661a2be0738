"""All networks by name, and the factory through which trtconv makes one."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

from networks import packages
from networks.network import Network

if TYPE_CHECKING:
    from torch import nn


def package_names() -> tuple[str, ...]:
    """The files in `networks/packages`."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(packages.__path__)))


@cache
def all_networks() -> dict[str, Network]:
    """The networks by `package/name`. Imports none of their packages."""
    networks: dict[str, Network] = {}
    for package in package_names():
        for network in importlib.import_module(f"networks.packages.{package}").NETWORKS:
            key = f"{package}/{network.name}"
            if key in networks:
                raise ValueError(f"two networks are called {key}")
            networks[key] = network
    return networks


def requirements(package: str) -> tuple[str, ...]:
    """What pip installs for a package, without dependencies of their own."""
    return tuple(importlib.import_module(f"networks.packages.{package}").REQUIREMENTS)


def make(network: str) -> nn.Module:
    """The module of a network, with random weights that depend on torch's seed alone.

    Unless it is `plain`, no part of it starts at zero: see `networks.weights`.
    """
    import torch

    from networks.torchvision_operators import define_operators
    from networks.weights import enliven, settled
    from trtconv.core.shape_space.space import parse_space
    from trtconv.core.tensors import parse_tensor
    from trtconv.export.module.binding import bind_inputs
    from trtconv.export.module.runner import to_tensor
    from trtconv.proof.points import SamplePoint, sample_inputs

    define_operators()
    chosen = all_networks()[network]
    module = chosen.make().float().eval()
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    if chosen.plain:
        return module
    state = torch.random.get_rng_state()
    module = enliven(module)
    specs = [parse_tensor(t) for t in chosen.inputs]
    point = SamplePoint("settle", tuple(parse_space([chosen.space]).pick("opt").items()))
    arrays = sample_inputs(specs, point)
    binding = bind_inputs(module.forward, [s.parameter or s.name for s in specs])
    settled(module, *binding.arguments([to_tensor(arrays[s.name]) for s in specs]))
    torch.random.set_rng_state(state)
    return module
