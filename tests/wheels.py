"""Wheels of which tests need the files alone: each set in a folder of its own that is filled once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("TRTCONV_TEST_CACHE", Path.home() / ".cache" / "trtconv-tests"))


def wheel_folder(name: str, *requirements: str) -> Path:
    """The folder with the files of these wheels, without what else they need. Skips the test where pip has none."""
    target = CACHE / name
    if not (target / "done").exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target), *requirements]
        process = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if process.returncode:
            # No package index in reach, or no file there for this Python: that says nothing about trtconv.
            pytest.skip(f"pip cannot get {' '.join(requirements)}: {process.stderr.strip()[-200:]}")
        (target / "done").write_text("")
    return target
