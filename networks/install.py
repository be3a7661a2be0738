"""Installs what networks need into a folder of its own, so that the project's environment stays as it is."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from networks.registry import requirements

ROOT = Path(__file__).parents[1]
# Named as Python names such folders: trtconv takes code below it for a library's, as in a user's environment.
SITE = ROOT / ".venv-networks" / "site-packages"


def site_of(package: str, site: Path = SITE) -> Path:
    """The folder of a package: one for all, but for those that others import when they find them and fail."""
    alone = getattr(importlib.import_module(f"networks.packages.{package}"), "ALONE", False)
    return site.parent / package / site.name if alone else site


def install(packages: Iterable[str], site: Path = SITE) -> None:
    """Install the requirements of the packages that their folders lack; no dependencies, so never another torch."""
    by_site: dict[Path, list[str]] = {}
    for package in packages:
        by_site.setdefault(site_of(package, site), []).append(package)
    for folder, names in by_site.items():
        _install(names, folder)


def _install(packages: Sequence[str], site: Path) -> None:
    stamps = site / ".installed"
    missing = [p for p in packages if not (stamps / p).exists()]
    needed = sorted({r for p in missing for r in requirements(p)})
    if not needed:
        return
    print(f"installing {len(needed)} packages for {', '.join(missing)} into {site}", flush=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target", str(site)]
    subprocess.run([*command, *needed], check=True)
    stamps.mkdir(parents=True, exist_ok=True)
    for package in missing:
        remove_unwanted(package, site)
        (stamps / package).touch()


def remove_unwanted(package: str, site: Path) -> None:
    """Remove the files that a package of the registry names in `REMOVED`, patterns below the folder."""
    patterns: Sequence[str] = getattr(importlib.import_module(f"networks.packages.{package}"), "REMOVED", ())
    for pattern in patterns:
        for file in site.glob(pattern):
            file.unlink()
