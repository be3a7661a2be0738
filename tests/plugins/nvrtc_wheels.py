"""NVRTC and CUDA's headers from their wheels, in a folder of their own that is filled once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends.test_real_bindings import CACHE

WHEELS = {
    "13.0": ("nvidia-cuda-nvrtc==13.0.*", "nvidia-cuda-runtime==13.0.*"),
    "12.8": ("nvidia-cuda-nvrtc-cu12==12.8.*", "nvidia-cuda-runtime-cu12==12.8.*"),
}


def nvrtc_site(version: str) -> Path:
    """The folder for one CUDA version. Skips the test where pip cannot get the wheels."""
    target = CACHE / f"nvrtc-{version}"
    if not (target / "done").exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target), *WHEELS[version]]
        process = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if process.returncode:
            pytest.skip(f"pip cannot get NVRTC of CUDA {version}: {process.stderr.strip()[-200:]}")
        (target / "done").write_text("")
    return target
