"""The example configs, and the modules that they name."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from trtconv.core.config import Config, read_config

ROOT = Path(__file__).parents[2] / "examples"
HAVE_PNET = importlib.util.find_spec("facenet_pytorch") is not None
_NEEDS_PNET = pytest.mark.skipif(not HAVE_PNET, reason="needs: pip install --no-deps facenet-pytorch")
NAMES = tuple(
    pytest.param(name, marks=_NEEDS_PNET if name == "mtcnn_pnet" else ())
    for name in sorted(p.stem for p in ROOT.glob("*.toml"))
)


def config_of(name: str) -> Config:
    return read_config(ROOT / f"{name}.toml")


@cache
def python_file(name: str) -> ModuleType:
    """`examples/NAME.py`, imported as a user's file is: by its path."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make(name: str, **overrides: Any) -> Any:
    """A new module from the factory of the config."""
    section = config_of(name).model
    file, _, factory = section.module.partition(":")
    return getattr(python_file(Path(file).stem), factory)(**{**section.args, **overrides})


@cache
def shared_module(name: str) -> Any:
    """The module of the config, once per process; tests only read it."""
    return make(name)
