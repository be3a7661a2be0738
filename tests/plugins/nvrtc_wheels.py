"""NVRTC and CUDA's headers from their wheels, in a folder of their own that is filled once."""

from __future__ import annotations

from pathlib import Path

from tests.wheels import wheel_folder

WHEELS = {
    "13.0": ("nvidia-cuda-nvrtc==13.0.*", "nvidia-cuda-runtime==13.0.*"),
    "12.8": ("nvidia-cuda-nvrtc-cu12==12.8.*", "nvidia-cuda-runtime-cu12==12.8.*"),
}


def nvrtc_site(version: str) -> Path:
    """The folder for one CUDA version. Skips the test where pip cannot get the wheels."""
    return wheel_folder(f"nvrtc-{version}", *WHEELS[version])
